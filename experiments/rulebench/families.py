"""Families: relations between people, the words for them, and their composition.

A family starts with a couple and grows by adding children, spouses or parents. So couples stay
together and share all their children, and relatives never marry.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from interp_experiments.chance import pick

MALE, FEMALE = "male", "female"
SEXES = (MALE, FEMALE)

WORDS = {
    "parent": ("father", "mother"),
    "child": ("son", "daughter"),
    "sibling": ("brother", "sister"),
    "spouse": ("husband", "wife"),
    "grandparent": ("grandfather", "grandmother"),
    "grandchild": ("grandson", "granddaughter"),
    "aunt or uncle": ("uncle", "aunt"),
    "niece or nephew": ("nephew", "niece"),
    "parent-in-law": ("father-in-law", "mother-in-law"),
    "child-in-law": ("son-in-law", "daughter-in-law"),
}
"""For each type of relation, the words for a man and for a woman."""

STEPCHILDREN = ("stepson", "stepdaughter")

KINSHIPS = (
    *(word for type_, words in WORDS.items() if type_ != "spouse" for word in words),
    *STEPCHILDREN,
)
"""The answers to CLUTRR's questions (Sinha et al. 2019)."""


def word(type_: str, sex: str) -> str:
    """The word for a relative of this type and sex, such as "aunt"."""
    return WORDS[type_][SEXES.index(sex)]


_INVERSE = {
    "parent": "child",
    "grandparent": "grandchild",
    "aunt or uncle": "niece or nephew",
    "parent-in-law": "child-in-law",
}
_INVERSE |= {back: there for there, back in _INVERSE.items()}
_INVERSE |= {"sibling": "sibling", "spouse": "spouse"}

_COMPOSED = {
    ("parent", "parent"): "grandparent",
    ("parent", "child"): "sibling",
    ("parent", "sibling"): "aunt or uncle",
    ("parent", "spouse"): "parent",
    ("parent", "parent-in-law"): "grandparent",
    ("child", "parent"): "spouse",
    ("child", "sibling"): "child",
    ("child", "spouse"): "child-in-law",
    ("child", "niece or nephew"): "grandchild",
    ("sibling", "sibling"): "sibling",
    ("sibling", "grandparent"): "grandparent",
    ("sibling", "aunt or uncle"): "aunt or uncle",
    ("spouse", "grandchild"): "grandchild",
    ("spouse", "child-in-law"): "child-in-law",
    ("spouse", "parent-in-law"): "parent",
    ("child-in-law", "parent-in-law"): "spouse",
}
COMPOSED = _COMPOSED | {
    (_INVERSE[second], _INVERSE[first]): _INVERSE[whole]
    for (first, second), whole in _COMPOSED.items()
}
"""The relation of C to A, given those of B to A and of C to B, for three different people; with
each, that of A to C.

For other pairs it is undetermined, or `WORDS` has no word for it. Tests derive the same table.
"""


@dataclass(frozen=True)
class Family:
    """People by number: their sexes, and the parents and the spouse of those who have them."""

    sexes: tuple[str, ...]
    parents: Mapping[int, tuple[int, int]]
    spouses: Mapping[int, int]

    def __len__(self) -> int:
        return len(self.sexes)

    @property
    def couples(self) -> list[tuple[int, int]]:
        """The married couples; each couple is listed once."""
        return sorted((a, b) for a, b in self.spouses.items() if a < b)

    @cached_property
    def types(self) -> Mapping[tuple[int, int], str]:
        """How the second of two people is related to the first, as a key of `WORDS`, sorted.

        Only for those who are related by one of the keys.
        """
        types = {}
        for person in range(len(self)):
            for type_, relatives in self._relatives(person).items():
                for relative in relatives:
                    types[person, relative] = type_
                    types[relative, person] = _INVERSE[type_]
        return dict(sorted(types.items()))

    def word(self, person: int, relative: int) -> str:
        """The word that a person uses for a relative, such as "aunt"; empty if there is none."""
        type_ = self.types.get((person, relative))
        return word(type_, self.sexes[relative]) if type_ else ""

    @cached_property
    def splits(self) -> Mapping[tuple[int, int], Sequence[int]]:
        """For each related pair, the people whose relations to both entail the pair's relation."""
        return {
            (first, last): [
                person
                for person in range(len(self))
                if COMPOSED.get(
                    (self.types.get((first, person), ""), self.types.get((person, last), ""))
                )
                == whole
            ]
            for (first, last), whole in self.types.items()
        }

    def with_child(self, couple: tuple[int, int], sex: str) -> "Family":
        """The family, with one more child for a couple."""
        return Family((*self.sexes, sex), {**self.parents, len(self): couple}, self.spouses)

    def with_spouse(self, person: int) -> "Family":
        """The family, with an unrelated spouse for somebody who has none."""
        sex, new = FEMALE if self.sexes[person] == MALE else MALE, len(self)
        return Family((*self.sexes, sex), self.parents, {**self.spouses, person: new, new: person})

    def with_parents(self, person: int) -> "Family":
        """The family, with parents for somebody who has none."""
        he, she = len(self), len(self) + 1
        parents, spouses = {**self.parents, person: (he, she)}, {**self.spouses, he: she, she: he}
        return Family((*self.sexes, MALE, FEMALE), parents, spouses)

    def _relatives(self, person: int) -> Mapping[str, Iterable[int]]:
        """A person's elders, siblings and spouse, by the type of relation."""
        parents = self.parents.get(person, ())
        spouses = [self.spouses[person]] if person in self.spouses else []
        return {
            "parent": parents,
            "grandparent": [kin for parent in parents for kin in self.parents.get(parent, ())],
            "aunt or uncle": [kin for parent in parents for kin in self._siblings(parent)],
            "parent-in-law": [kin for spouse in spouses for kin in self.parents.get(spouse, ())],
            "sibling": self._siblings(person),
            "spouse": spouses,
        }

    def _siblings(self, person: int) -> list[int]:
        couple = self.parents.get(person)
        return [child for child, pair in self.parents.items() if pair == couple and child != person]


FIRST_COUPLE = Family((MALE, FEMALE), {}, {0: 1, 1: 0})


def random_family(size: int, rng: random.Random) -> Family:
    """A family of at least `size` people."""
    family = FIRST_COUPLE
    while len(family) < size:
        family = _grown(family, rng)
    return family


def _grown(family: Family, rng: random.Random) -> Family:
    single, founders = (
        [person for person in range(len(family)) if person not in having]
        for having in (family.spouses, family.parents)
    )
    chance = rng.random()
    if chance < 0.3 and single:
        return family.with_spouse(pick(rng, single))
    if chance < 0.4 and founders:
        return family.with_parents(pick(rng, founders))
    return family.with_child(pick(rng, family.couples), pick(rng, SEXES))
