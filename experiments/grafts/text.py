"""What grafts read: three sentences about a person, a country and a city.

Every sentence is written from a `Case`. A prompt of the data has one case; a prompt that is mixed
with a donor takes each sentence from the case of either.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from interp_experiments.rulebreakers.instances import EntityPair, entity_pairs
from interp_experiments.rulebreakers.templates import CITIES, NEGATIONS

COUNTRIES = (
    "Canada", "Egypt", "Finland", "France", "Germany", "Greece", "Hungary", "Italy", "Japan",
    "Kenya", "Norway", "Peru", "Portugal", "Russia", "Spain", "Sweden",
)  # fmt: skip
"""Countries whose names, and those of their cities, are single tokens of SmolLM2."""

OPENINGS = (
    "If", "Whenever", "As long as", "Given that", "In case", "Assuming that", "Provided that",
    "Supposing that",
)  # fmt: skip
"""The words with which premise 1 may begin."""

VERBS = ("was born in", "has been to")

PEOPLE = (
    ("Alice", "she"), ("Anne", "she"), ("Maria", "she"), ("Daniel", "he"), ("John", "he"),
    ("Joseph", "he"), ("Thomas", "he"), ("William", "he"),
)  # fmt: skip

SEGMENTS = ("premise1", "premise2", "conclusion")

QUESTION = "Does the last sentence follow? Answer Yes or No."

ANSWERS = ("Yes", "No")


@cache
def known_pairs() -> tuple[EntityPair, ...]:
    """The countries with their cities."""
    return tuple(
        pair for pair in entity_pairs() if pair.category == CITIES and pair.entity_a in COUNTRIES
    )


@dataclass(frozen=True, slots=True)
class Case:
    """What the sentences of one prompt are about."""

    opening: str
    person: tuple[str, str]
    verb: str
    country: str
    city: str

    def sentence(self, segment: str) -> str:
        """One of the sentences of modus tollens."""
        name, pronoun = self.person
        if segment == "premise2":
            return f"{name} {self.verb} {self.city}."
        if segment == "conclusion":
            return f"{name} {NEGATIONS[self.verb]} {self.country}."
        then = "then " if self.opening == "If" else ""
        return (
            f"{self.opening} {name} {self.verb} {self.country}, "
            f"{then}{pronoun} {NEGATIONS[self.verb]} {self.city}."
        )


def message(sources: Sequence[Case]) -> str:
    """The text of a prompt with a sentence of each case, as a table of pairs composes it."""
    sentences = (case.sentence(name) for name, case in zip(SEGMENTS, sources, strict=True))
    return "\n".join((*sentences, QUESTION))


def draw_case(rng: random.Random) -> Case:
    """A case; in every second one, the city is in the country."""
    pair = rng.choice(known_pairs())
    others = [country for country in COUNTRIES if country != pair.entity_a]
    country = pair.entity_a if rng.random() < 0.5 else rng.choice(others)
    return Case(rng.choice(OPENINGS), rng.choice(PEOPLE), rng.choice(VERBS), country, pair.entity_b)
