"""The entity pairs and first names that fill the templates, read from the data folder."""

from dataclasses import dataclass
from functools import cache

from interp_experiments.packaged import packaged_rows


@dataclass(frozen=True, slots=True)
class EntityPair:
    """B is in A (a city in its country) or is a kind of A (an instance of its type)."""

    category: str
    """ "cities", or the type, such as "brass instrument"."""
    entity_a: str
    """Country or type."""
    entity_b: str
    """City or instance, bare."""


@dataclass(frozen=True, slots=True)
class FirstName:
    """A person's first name with the pronoun that goes with it."""

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
    """(country, city) combinations that are no fact of the data set but may nevertheless be true.

    A place of that name is in that country too, or the statement is disputed. Such a combination
    never makes a non-rulebreaker.
    """
    rows = packaged_rows(__package__, "namesakes.csv")
    return frozenset((row["country"], row["city"]) for row in rows)


def aliases(entity_a: str) -> tuple[str, ...]:
    """Other names of a country or type that a model may complete a fact by."""
    return _by_entity("aliases.csv", "alias").get(entity_a, ())


def lookalikes(entity_a: str) -> tuple[str, ...]:
    """Names that contain a country's name, denote something else, and are no answer."""
    return _by_entity("lookalikes.csv", "name").get(entity_a, ())


@cache
def _by_entity(file: str, column: str) -> dict[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {}
    for row in packaged_rows(__package__, file):
        names[row["entity_a"]] = (*names.get(row["entity_a"], ()), row[column])
    return names
