"""Texts that look alike but differ: in spaces, accents, letters or invisible characters."""

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher

_LONGEST = 200
"""Texts are compared up to this number of characters."""

_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Blank characters that Unicode counts as letters or symbols."""

_JOINERS = "\u200c\u200d"
"""Characters that join letters and emoji, or separate joined letters."""

_UNDRAWN = re.compile(
    f"[{_FILLERS}\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
"""Characters that show nothing, beside those of Unicode's categories Cf and Cc."""

UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Control characters other than tabs and line breaks, halves of characters, and noncharacters."""

_DRAWN_ALIKE = str.maketrans(
    "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0423"
    "\u0430\u0435\u0455\u0456\u0458\u043e\u0440\u0441\u0445\u0443"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf"
    "\u2018\u2019\u02bc\u201c\u201d\u2010\u2011\u2012\u2013\u2014\u2212",
    "ABESIJKMHOPCTXY" + "aesijopcxy" + "ABEZHIKMNOPTYXo" + "'''\"\"------",
)
"""Cyrillic and Greek letters, quotation marks and dashes, each with its double in ASCII."""


def is_blank(text: str) -> bool:
    """Whether a text has no visible character."""
    return not any(
        letter.isprintable() and not letter.isspace() and letter not in _FILLERS for letter in text
    )


def unseen(text: str) -> str:
    """A clause about what a tokenizer reads in a text but a reader does not see; empty if nothing.

    Joiners within words of other scripts and within emoji belong to the text, as do spaces around
    it, but no other white space there.
    """
    for at, letter in enumerate(text):
        if _is_unseen(letter, text[:at], text[at + 1 :]):
            return f"has the invisible character {_code_points(letter)}"
    composed = unicodedata.normalize("NFC", text)
    if len(composed) < len(text):
        return f"has an accent apart from its letter ({_first_difference(text, composed)})"
    return ""


def _is_unseen(letter: str, before: str, after: str) -> bool:
    kind = unicodedata.category(letter)
    if letter in _JOINERS:
        return not (before[-1:] > "\x7f" and after[:1] > "\x7f")
    if "\ufe00" <= letter <= "\ufe0f":  # the style of a symbol, or a digit in a box
        return not (before[-1:] > "\x7f" or after[:1] == "\u20e3")
    if letter.isspace():
        outside = not before.strip() or not after.strip()
        return outside and letter not in " \t\n\u3000"
    loose = kind.startswith("M") and not before.strip()
    return loose or kind in ("Cf", "Cc") or bool(_UNDRAWN.match(letter))


def lookalike(got: str, known: Iterable[str]) -> str:
    """A clause about a known text from which `got` does not differ visibly; empty if there is none.

    A difference in case alone is visible; of long texts, only the beginnings are compared.
    """
    seen, start = as_seen(got), got[:_LONGEST].casefold()
    for name in known:
        differs = name[:_LONGEST].casefold() != start
        if differs and got[_LONGEST:] == name[_LONGEST:] and as_seen(name) == seen:
            return f"it looks like {name[:_LONGEST]!r}, but {_first_difference(got, name)}"
    return ""


def as_printed(text: str) -> str:
    """A form that is equal for texts whose difference cannot be seen at all, as in white space."""
    letters = unicodedata.normalize("NFC", text)
    shown = ("" if is_blank(letter) and not letter.isspace() else letter for letter in letters)
    return " ".join("".join(shown).split())


def as_seen(text: str) -> str:
    """A form that is equal for texts that look alike: without case, surplus or invisible space."""
    if text.isascii() and text.isprintable():
        return " ".join(text[:_LONGEST].split()).casefold()
    letters = unicodedata.normalize("NFKC", text[:_LONGEST]).translate(_DRAWN_ALIKE)
    shown = ("" if is_blank(letter) and not letter.isspace() else letter for letter in letters)
    return " ".join("".join(shown).split()).casefold()


def _first_difference(got: str, expected: str) -> str:
    steps = SequenceMatcher(None, got[:_LONGEST], expected[:_LONGEST], autojunk=False).get_opcodes()
    kind, a, b, c, d = next(step for step in steps if step[0] != "equal")
    if kind == "delete":
        return f"has {_code_points(got[a:b])} in addition"
    if kind == "insert":
        return f"lacks {_code_points(expected[c:d])}"
    return f"has {_code_points(got[a:b])} instead of {_code_points(expected[c:d])}"


def _code_points(text: str) -> str:
    named = [f"U+{ord(letter):04X} {unicodedata.name(letter, '')}".strip() for letter in text[:2]]
    return ", ".join(named) + ", ..." * (len(text) > 2)
