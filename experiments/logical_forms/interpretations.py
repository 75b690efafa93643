"""The events that p and q denote: first names and verb phrases, and a mirror set."""

import random
from collections.abc import Sequence
from functools import cache
from typing import Literal, TypeVar

from interp_experiments.chance import below
from interp_experiments.logical_forms.language import Event, Interpretation
from interp_experiments.packaged import packaged_rows

T = TypeVar("T")

INTERPRETATIONS = 1000
"""Interpretations of the set; each is applied to every form."""

Vocabulary = Literal["phrase", "nonsense"]
"""Column of the data file: real verb phrases, or pseudo-words that mirror their frames."""


@cache
def names() -> tuple[str, ...]:
    """First names."""
    return tuple(row["name"] for row in packaged_rows(__package__, "names.csv"))


@cache
def verb_phrases(vocabulary: Vocabulary = "phrase") -> tuple[str, ...]:
    """Verb phrases in the present progressive, or the pseudo-words that mirror them, in order."""
    return tuple(row[vocabulary] for row in packaged_rows(__package__, "verb_phrases.csv"))


def interpretations(seed: int, vocabulary: Vocabulary = "phrase") -> list[Interpretation]:
    """The interpretations of a seed: p and q with different names and different verb phrases.

    Both vocabularies give the same names and the same places in the list of phrases. The only
    source of chance is `random.Random.random`, whose sequence Python guarantees.
    """
    rng = random.Random(f"interpretations {seed}")
    return [interpretation(rng, verb_phrases(vocabulary)) for _ in range(INTERPRETATIONS)]


def interpretation(rng: random.Random, phrases: Sequence[str]) -> Interpretation:
    """One interpretation, drawn evenly."""
    people, actions = two_of(names(), rng), two_of(phrases, rng)
    return {
        atom: Event(name, phrase) for atom, name, phrase in zip("pq", people, actions, strict=True)
    }


def two_of(items: Sequence[T], rng: random.Random) -> tuple[T, T]:
    """Two different items, drawn evenly."""
    first, second = below(rng, len(items)), below(rng, len(items) - 1)
    return items[first], items[second + (second >= first)]
