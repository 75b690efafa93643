"""An index of the words of all pairs, in pieces: a search reads only the pieces of its words."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import pandas as pd

LONGEST = 40
"""Number of letters of a word that are indexed."""

_WORD = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]|[^\W_\u2e80-\u9fff\uac00-\ud7af]+")
"""A word: letters and digits, or one letter of a script that leaves no space between words."""

_BITS = 6
"""Number of pairs for which one letter of a bit set tells whether they have a word."""

_CONTINUED = 45
"""A digit from here on is followed by another of the same number."""

Entry = tuple[str, str]
"""A word, and the coded numbers of the pairs that have it."""


def words_of(text: str) -> set[str]:
    """The words of a text in lower case; of a number with leading zeros, also what follows them."""
    words = {word[:LONGEST] for word in _WORD.findall(text.lower())}
    return words | {word.lstrip("0") for word in words if word.startswith("0")} - {""}


def pairs_by_word(
    prompts: pd.DataFrame, by_pair: Mapping[str, Sequence[int]]
) -> dict[str, list[int]]:
    """Each word of the pairs' ids and prompts, in the order in which a page compares texts.

    Each has the numbers of its pairs, increasing; `by_pair` has the places of each pair's prompts.
    """
    texts = prompts["text"].astype(str).tolist()
    having: dict[str, list[int]] = {}
    for number, (pair, places) in enumerate(by_pair.items()):
        for word in words_of(" ".join([pair, *(texts[place] for place in places)])):
            having.setdefault(word, []).append(number)
    # A page compares texts by their units of UTF-16.
    ordered = sorted(having, key=lambda word: word.encode("utf-16-be", "surrogatepass"))
    return {word: having[word] for word in ordered}


def indexed(having: Mapping[str, Sequence[int]], digits: str) -> Iterator[Entry]:
    """Each word of `pairs_by_word` with its pairs; `digits` are letters of codes, at least 90."""
    for word, numbers in having.items():
        yield word, _shorter(numbers, digits)


def _shorter(numbers: Sequence[int], digits: str) -> str:
    """Increasing numbers as a bit set ("b") or as their differences ("d"), whichever is shorter."""
    forms: dict[str, Iterable[int]] = {"d": _differences(numbers), "b": _bits(numbers)}
    written = (kind + "".join(digits[place] for place in code) for kind, code in forms.items())
    return min(written, key=len)


def _bits(numbers: Sequence[int]) -> list[int]:
    bits = [0] * (numbers[-1] // _BITS + 1)
    for number in numbers:
        bits[number // _BITS] |= 1 << number % _BITS
    return bits


def _differences(numbers: Sequence[int]) -> Iterator[int]:
    """The differences less one, each in digits of which the highest comes first."""
    for before, number in pairwise([-1, *numbers]):
        rest, lowest = divmod(number - before - 1, _CONTINUED)
        higher = []
        while rest:
            rest, digit = divmod(rest, _CONTINUED)
            higher.append(digit + _CONTINUED)
        yield from (*reversed(higher), lowest)
