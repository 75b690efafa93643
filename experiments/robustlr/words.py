"""The words of theories: names, adjectives and family relations, and invented words for these."""

import random
from dataclasses import dataclass
from functools import cache
from typing import Literal

from interp_experiments.chance import happens, pick, some
from interp_experiments.logical_forms.language import names
from interp_experiments.packaged import packaged_rows
from interp_experiments.robustlr.language import Predicate

Vocabulary = Literal["real", "nonce"]
"""Column of the data file: English words, or invented ones, which nobody knows anything about."""

PEOPLE = 5
"""Names that a theory draws its people from."""

RELATIONS = 0.3
"""Share of relations among drawn predicates."""


@dataclass(frozen=True)
class Words:
    """What predicates are drawn from (Section 4.1); genders of names play no part."""

    names: tuple[str, ...]
    adjectives: tuple[str, ...]
    relations: tuple[str, ...]

    @classmethod
    @cache
    def of(cls, vocabulary: Vocabulary) -> "Words":
        """The packaged words."""
        rows = packaged_rows(__package__, "words.csv")
        adjectives, relations = (
            tuple(row[vocabulary] for row in rows if row["kind"] == kind)
            for kind in ("adjective", "relation")
        )
        return cls(names(), adjectives, relations)

    def people(self, rng: random.Random) -> list[str]:
        """The people of one theory."""
        return some(rng, self.names, PEOPLE)

    def predicate(self, rng: random.Random, people: list[str]) -> Predicate:
        """A predicate of one or two of these people."""
        if happens(rng, RELATIONS):
            return Predicate(pick(rng, self.relations), *some(rng, people, 2))
        return Predicate(pick(rng, self.adjectives), pick(rng, people))
