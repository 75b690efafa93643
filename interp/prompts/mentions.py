"""Whether a text names an entity, however the name is written."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

_APOSTROPHES = re.compile("['’‘ʼʻ`]")
_POSSESSIVE = re.compile(r"['’ʼ]s\b", re.IGNORECASE)
_INITIAL = re.compile(r"\b(\w)\.")
_NO_WORD = re.compile(r"[\W_]+")
_ARTICLE = re.compile(r"\bthe\b", re.IGNORECASE)
_SAINT = re.compile(r"\bst\b", re.IGNORECASE)


def mentions(text: str, names: Sequence[str], *, lookalikes: Sequence[str] = ()) -> str:
    """The first of `names` that occurs in the text, spelled as in `names`; "" if none does.

    Names are found as whole words. Case, diacritics, punctuation, apostrophes, a possessive or
    plural s, the article "the", "St." for "Saint" and "&" for "and" make no difference. A name that
    is written in capitals only, such as "US", is found in capitals only.

    Args:
        text: what was said.
        names: the ways to name the entity.
        lookalikes: names of other things that hold one of `names`, such as "South Sudan" for
            "Sudan". What is part of a lookalike, read from the left, is no mention.
    """
    pattern, terms = _search(tuple(names), tuple(lookalikes))
    for match in pattern.finditer(_normalized(text)):
        assert match.lastindex is not None
        term = terms[match.lastindex - 1]
        if term in names:
            return term
    return ""


@lru_cache(maxsize=4096)
def _search(
    names: tuple[str, ...], lookalikes: tuple[str, ...]
) -> tuple[re.Pattern[str], list[str]]:
    """A pattern with one group for each term, and the terms in the order of their groups.

    Longer terms come first, so that of those that begin at a place the longest is found.
    """
    terms = sorted((*names, *lookalikes), key=lambda term: len(_normalized(term)), reverse=True)
    groups = "|".join(f"({_term_pattern(term)})" for term in terms)
    return re.compile(rf"\b(?:{groups})s?\b"), terms


def _term_pattern(term: str) -> str:
    normalized = _normalized(term)
    pattern = re.escape(normalized)
    return pattern if normalized.isupper() else f"(?i:{pattern})"


def _normalized(text: str) -> str:
    """Words of plain letters with one space between them; capitals stay."""
    decomposed = unicodedata.normalize("NFKD", text)
    text = "".join(character for character in decomposed if not unicodedata.combining(character))
    text = _APOSTROPHES.sub("", _POSSESSIVE.sub("", text)).replace("&", " and ")
    text = _ARTICLE.sub(" ", _SAINT.sub("Saint", _INITIAL.sub(r"\1", text)))
    return _NO_WORD.sub(" ", text).strip()
