"""The entity pairs, and the 25,600 instances made from them with a seed (Sections 3.1 to 3.3)."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Literal, NamedTuple, TypeVar

from interp_experiments.packaged import packaged_rows
from interp_experiments.rulebreakers import templates

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EntityPair:
    """B is in A (a city in its country, "cities") or is a kind of A (an instance of a type)."""

    category: str
    entity_a: str
    entity_b: str
    """City or instance, without an article."""

    @property
    def entity_group(self) -> str:
        """Whether B is in A ("geographical") or is a kind of A ("categorical")."""
        return "geographical" if self.category == templates.CITIES else "categorical"

    @property
    def message(self) -> str:
        """The message that tests a model's knowledge of B (Section 4.1)."""
        relation = "in" if self.category == templates.CITIES else "a type of"
        return f"Complete the sentence: {self.entity_b} is {relation}"

    @property
    def fact_id(self) -> str:
        """The id of the fact."""
        return f"{self.category}/{self.entity_b}"


class FirstName(NamedTuple):
    """A first name and its pronoun."""

    name: str
    pronoun: str


@cache
def entity_pairs() -> tuple[EntityPair, ...]:
    """The 183 (country, city) and 91 (type, instance) pairs, in the order of the data file."""
    return tuple(EntityPair(**row) for row in packaged_rows(__package__, "entities.csv"))


@cache
def first_names() -> tuple[FirstName, ...]:
    """First names from around the world, each with a fixed pronoun."""
    return tuple(FirstName(**row) for row in packaged_rows(__package__, "names.csv"))


@cache
def namesakes() -> frozenset[tuple[str, str]]:
    """(country, city) combinations that may be true or are disputed: never in non-rulebreakers."""
    rows = packaged_rows(__package__, "namesakes.csv")
    return frozenset((row["country"], row["city"]) for row in rows)


@cache
def further_names(of: Literal["aliases", "lookalikes"]) -> Mapping[str, Sequence[str]]:
    """By country or type, its aliases, which also complete a fact, or its lookalikes.

    Lookalikes contain its name but refer to something else.
    """
    names: dict[str, list[str]] = {}
    for row in packaged_rows(__package__, f"{of}.csv"):
        names.setdefault(row["entity_a"], []).append(row["name"])
    return names


@dataclass(frozen=True, slots=True)
class Instance:
    """One row of the data set; `to_row` returns it with the published columns."""

    id: str
    rule: str
    category: str
    name: str
    pronoun: str
    verb: str
    entity_a: str
    entity_b: str
    """City or instance, without an article."""
    premise1: str
    premise2: str
    conclusion: str
    label: bool
    """Whether the premises entail the conclusion: false for rulebreakers."""

    @property
    def pair_id(self) -> str:
        """The id without its side, shared by a rulebreaker and its counterpart."""
        return self.id.rpartition("_")[0]

    @property
    def pair(self) -> EntityPair:
        """The category and the entities."""
        return EntityPair(self.category, self.entity_a, self.entity_b)

    @property
    def reasoning(self) -> templates.Reasoning:
        """The two premises and the conclusion."""
        return templates.Reasoning(self.premise1, self.premise2, self.conclusion)

    def about(self, pair: EntityPair) -> templates.Reasoning:
        """The instance's sentences, rewritten for other entities (`render`)."""
        same = {name: getattr(self, name) for name in ("rule", "name", "pronoun", "verb")}
        about = {"entity_a": pair.entity_a, "entity_b": pair.entity_b}
        return templates.render(group=pair.category, **same, **about)

    def to_row(self) -> dict[str, str | bool]:
        """The instance with the published column names; entity B gets its article."""
        published = templates.with_article(self.entity_b, group=self.category, verb=self.verb)
        row = {column: getattr(self, field) for column, field in COLUMNS.items()}
        return {**row, "entityB": published}


_PUBLISHED = {"rule": "rulebreaker_type", "name": "firstName"}
_PUBLISHED |= {"entity_a": "entityA", "entity_b": "entityB"}
COLUMNS = {_PUBLISHED.get(field, field): field for field in Instance.__dataclass_fields__}
"""For each published column, the field of `Instance` that holds it."""

NAMES_PER_VERB = 5
"""For each entity pair and verb, drawn without replacement (Section 3.1)."""


def generate(seed: int = 0) -> list[Instance]:
    """All 25,600 instances, each rulebreaker followed by its non-rulebreaker.

    The same bytes on every platform: only `random.Random.random` has a sequence that Python
    guarantees.
    """
    rng = random.Random(seed)
    pairs = entity_pairs()
    wrong = wrong_entities(pairs, rng)
    instances: list[Instance] = []
    for pair in pairs:
        sides = (("rb", pair.entity_a, False), ("nonrb", wrong[pair], True))
        for verb in templates.VERBS[pair.category]:
            people = shuffled(first_names(), rng)[:NAMES_PER_VERB]
            for rule, person in product(templates.RULES, people):
                shared = {"rule": rule, **person._asdict(), "verb": verb, "entity_b": pair.entity_b}
                number = len(instances) // 2 + 1
                for suffix, entity_a, label in sides:
                    texts = {**shared, "entity_a": entity_a}
                    texts |= templates.render(group=pair.category, **texts)._asdict()
                    id_ = f"RULEBREAKER_{number:07d}_{suffix}"
                    instances.append(Instance(id=id_, category=pair.category, label=label, **texts))
    return instances


def wrong_entities(pairs: Iterable[EntityPair], rng: random.Random) -> dict[EntityPair, str]:
    """For each pair, a country or type to which B does not belong (Section 3.2).

    Countries and, within each family, types are permuted without a fixed point. If a permutation
    would pair a city with a country that has a place of that name, another one is drawn.
    """
    pairs = list(pairs)
    cities = [pair for pair in pairs if pair.category == templates.CITIES]
    countries = [pair.entity_a for pair in cities]
    permuted = shuffled(countries, rng)
    while any(map(may_contain, permuted, cities)):
        permuted = shuffled(countries, rng)
    wrong = dict(zip(cities, permuted, strict=True))
    for family in templates.FAMILIES:
        types = shuffled(family, rng)
        while any(right == other for right, other in zip(family, types, strict=True)):
            types = shuffled(family, rng)
        replacement = dict(zip(family, types, strict=True))
        wrong |= {
            pair: replacement[pair.category] for pair in pairs if pair.category in replacement
        }
    return wrong


def may_contain(country: str, pair: EntityPair) -> bool:
    """Whether the pair's city is, or may be thought to be, in `country`."""
    return country == pair.entity_a or (country, pair.entity_b) in namesakes()


def shuffled(items: Sequence[T], rng: random.Random) -> list[T]:
    """The items in random order; Python keeps the sequence of `rng.random` the same for a seed."""
    keys = [rng.random() for _ in items]
    return [items[i] for i in sorted(range(len(items)), key=keys.__getitem__)]
