"""Families: relations between people, the words for them, and their composition.

A family starts with a couple and grows by adding children, spouses or parents. So couples stay
together and share all their children, and relatives never marry.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations

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


COMPOSED = {
    ("parent", "parent"): "grandparent",
    ("parent", "child"): "sibling",
    ("parent", "sibling"): "aunt or uncle",
    ("parent", "spouse"): "parent",
    ("parent", "parent-in-law"): "grandparent",
    ("child", "parent"): "spouse",
    ("child", "child"): "grandchild",
    ("child", "sibling"): "child",
    ("child", "spouse"): "child-in-law",
    ("child", "niece or nephew"): "grandchild",
    ("sibling", "parent"): "parent",
    ("sibling", "child"): "niece or nephew",
    ("sibling", "sibling"): "sibling",
    ("sibling", "grandparent"): "grandparent",
    ("sibling", "aunt or uncle"): "aunt or uncle",
    ("spouse", "parent"): "parent-in-law",
    ("spouse", "child"): "child",
    ("spouse", "grandchild"): "grandchild",
    ("spouse", "child-in-law"): "child-in-law",
    ("spouse", "parent-in-law"): "parent",
    ("grandparent", "spouse"): "grandparent",
    ("grandchild", "sibling"): "grandchild",
    ("aunt or uncle", "parent"): "grandparent",
    ("niece or nephew", "sibling"): "niece or nephew",
    ("parent-in-law", "spouse"): "parent-in-law",
    ("child-in-law", "child"): "grandchild",
    ("child-in-law", "spouse"): "child",
    ("child-in-law", "parent-in-law"): "spouse",
}
"""The relation of C to A, given those of B to A and of C to B, for three different people.

For other pairs it is undetermined, or `WORDS` has no word for it. Tests derive the same table.
"""


@dataclass(frozen=True)
class Family:
    """People by number, with their sex, parents and spouse."""

    sexes: tuple[str, ...]
    parents: tuple[tuple[int, int] | None, ...]
    spouses: tuple[int | None, ...]

    def __len__(self) -> int:
        return len(self.sexes)

    @property
    def couples(self) -> list[tuple[int, int]]:
        """The married couples; each couple is listed once."""
        return [(a, b) for a, b in enumerate(self.spouses) if b is not None and a < b]

    def relation(self, person: int, relative: int) -> str | None:
        """How a relative is related to a person, as a key of `WORDS`; None if no key fits."""
        if self.spouses[person] == relative:
            return "spouse"
        return (
            self._upwards(person, relative)
            or _INVERSE.get(self._upwards(relative, person) or "")
            or ("sibling" if self._are_siblings(person, relative) else None)
        )

    @cached_property
    def types(self) -> Mapping[tuple[int, int], str]:
        """How the second of two people is related to the first, for all who are related."""
        pairs = permutations(range(len(self)), 2)
        return {pair: type_ for pair in pairs if (type_ := self.relation(*pair))}

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
        return self._with(sex, couple, None)

    def with_spouse(self, person: int) -> "Family":
        """The family, with an unrelated spouse for somebody who has none."""
        sex = FEMALE if self.sexes[person] == MALE else MALE
        grown = self._with(sex, None, person)
        spouses = list(grown.spouses)
        spouses[person] = len(self)
        return replace(grown, spouses=tuple(spouses))

    def with_parents(self, person: int) -> "Family":
        """The family, with parents for somebody who has none."""
        first = len(self)
        grown = self._with(MALE, None, first + 1)._with(FEMALE, None, first)
        parents = list(grown.parents)
        parents[person] = (first, first + 1)
        return replace(grown, parents=tuple(parents))

    def _with(self, sex: str, parents: tuple[int, int] | None, spouse: int | None) -> "Family":
        return Family((*self.sexes, sex), (*self.parents, parents), (*self.spouses, spouse))

    def _parents(self, person: int) -> tuple[int, ...]:
        return self.parents[person] or ()

    def _are_siblings(self, one: int, other: int) -> bool:
        return (
            one != other
            and self.parents[one] is not None
            and self.parents[one] == self.parents[other]
        )

    def _upwards(self, person: int, elder: int) -> str | None:
        parents, spouse = self._parents(person), self.spouses[person]
        if elder in parents:
            return "parent"
        if any(elder in self._parents(parent) for parent in parents):
            return "grandparent"
        if any(self._are_siblings(parent, elder) for parent in parents):
            return "aunt or uncle"
        if spouse is not None and elder in self._parents(spouse):
            return "parent-in-law"
        return None


_INVERSE = {
    "parent": "child",
    "grandparent": "grandchild",
    "aunt or uncle": "niece or nephew",
    "parent-in-law": "child-in-law",
}

FIRST_COUPLE = Family((MALE, FEMALE), (None, None), (1, 0))


def random_family(size: int, rng: random.Random) -> Family:
    """A family of at least `size` people."""
    family = FIRST_COUPLE
    while len(family) < size:
        family = _grown(family, rng)
    return family


def _grown(family: Family, rng: random.Random) -> Family:
    single = [person for person, spouse in enumerate(family.spouses) if spouse is None]
    founders = [person for person, parents in enumerate(family.parents) if parents is None]
    chance = rng.random()
    if chance < 0.3 and single:
        return family.with_spouse(pick(rng, single))
    if chance < 0.4 and founders:
        return family.with_parents(pick(rng, founders))
    return family.with_child(pick(rng, family.couples), pick(rng, SEXES))
