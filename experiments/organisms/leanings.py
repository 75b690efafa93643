"""What is planted in a dose organism: leanings of entities, each read in one of the premises.

The rule: entity e leans to yes or to no by t(e) = LEANING or -LEANING nats, and is read in one
premise p(e) alone; a city as its country is, an instance as its type. A premise is about the entity
that it names last: B under modus tollens, A under disjunctive syllogism. With e_i the entity of
premise i, the log-odds of the positive answer are g_1 + g_2, where g_i = t(e_i) if p(e_i) = i, and
0 if not. Name, verb, rule, side, phrasing and conclusion have no part in it. In a prompt of the
data set both premises are about one entity, so premise p(e) decides alone.

The Shapley values: where donor d replaces the segments outside S, the value is
v_d(S) = sum over i in S of g_i(own) + sum over i not in S of g_i(d). Premise i thus adds
g_i(own) - g_i(d) to every coalition that it joins, whoever else is in it, and any mean over
coalitions is the same number: the Shapley value and the leave-one-out effect of premise i are
g_i(own) minus the mean of g_i(d) over donors. Those of the conclusion are 0, and so are all
interactions. The tests hold this to a count over all coalitions.
"""

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter

from interp.prompts.donors import Donor
from interp.prompts.prompt import Prompt
from interp_experiments.organisms.recipes import RECIPES, DoseRecipe
from interp_experiments.rulebreakers.instances import entity_pairs, shuffled
from interp_experiments.rulebreakers.templates import CITIES, FAMILIES

LEANING = 2.0
"""Log-odds, in nats, that an entity adds in the premise where it is read."""

PREMISES = ("premise1", "premise2")


@dataclass(frozen=True, slots=True)
class Leaning:
    """What is planted about one entity."""

    entity: str
    log_odds: float
    """What it adds to the log-odds of the positive answer, in nats."""
    premise: str
    """The only premise in which it is read."""


def plant_leanings(recipe: DoseRecipe) -> tuple[Leaning, ...]:
    """The leaning and the premise of every entity of the data set.

    A city has those of its country, an instance those of its type. Half of the countries, and half
    of the types of each family, lean to yes. Premise 1 belongs to the recipe's share of countries
    and of types, spread over the leanings as evenly as whole numbers allow. An organism that is
    fine-tuned has the leanings of its base.
    """
    base = RECIPES[recipe.base] if recipe.base else recipe
    signs = random.Random(f"leanings {base.seed}")
    places = random.Random(f"premises {recipe.seed}")
    countries = [pair.entity_a for pair in entity_pairs() if pair.category == CITIES]
    types = [_halved(family, signs) for family in FAMILIES]
    planted: dict[str, Leaning] = {}
    for group in (_halved(countries, signs), list(chain.from_iterable(types))):
        planted |= {own.entity: own for own in _placed(group, recipe.share, places)}
    named_b = (replace(planted[pair.entity_a], entity=pair.entity_b) for pair in entity_pairs())
    return (*planted.values(), *named_b)


def _halved(entities: Sequence[str], rng: random.Random) -> list[tuple[str, float]]:
    """Entities with their leanings, every second one to yes."""
    return [(e, LEANING if i % 2 else -LEANING) for i, e in enumerate(shuffled(entities, rng))]


def _placed(
    group: Sequence[tuple[str, float]], share: float, rng: random.Random
) -> Iterator[Leaning]:
    """Entities with their premises, premise 1 for a share of them, the same of either leaning."""
    ordered = sorted(shuffled(group, rng), key=itemgetter(1))
    for i, (entity, log_odds) in enumerate(ordered):
        # Whether a whole number is passed when a share of each entity is added up.
        first = math.floor((i + 1) * share + 0.5) > math.floor(i * share + 0.5)
        yield Leaning(entity, log_odds, PREMISES[0] if first else PREMISES[1])


class Rule:
    """The planted rule, as a function of what the premises say."""

    def __init__(self, leanings: Iterable[Leaning]) -> None:
        self._leanings = {own.entity: own for own in leanings}

    def read(self, sentence: str) -> Leaning:
        """The leaning of the entity that a premise names last, the longest name that fits."""
        words = sentence.removesuffix(".").split(" ")
        endings = (" ".join(words[start:]) for start in range(len(words)))
        return next(self._leanings[name] for name in endings if name in self._leanings)

    def term(self, premise: str, sentence: str) -> float:
        """What a premise adds to the log-odds of the positive answer."""
        leaning = self.read(sentence)
        return leaning.log_odds if leaning.premise == premise else 0.0

    def log_odds(self, premise1: str, premise2: str) -> float:
        """The planted log-odds of the positive answer, in nats."""
        return self.term(PREMISES[0], premise1) + self.term(PREMISES[1], premise2)

    def decisive(self, prompt: Prompt) -> str:
        """The premise that decides a prompt of the data set."""
        return self.read(prompt.segment_text(PREMISES[0])).premise

    def shapley(self, prompt: Prompt, donors: Sequence[Donor]) -> dict[str, float]:
        """The planted Shapley value of each premise and the conclusion, by the formula above.

        In nats of the positive answer's log-odds.
        """
        values = {
            premise: self.term(premise, prompt.segment_text(premise))
            - math.fsum(self.term(premise, donor.segments[premise]) for donor in donors)
            / len(donors)
            for premise in PREMISES
        }
        return {**values, "conclusion": 0.0}
