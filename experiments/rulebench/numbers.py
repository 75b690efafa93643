"""Numbers in texts: signs, thousands, decimals and number words."""

import re

_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES = {word: place for place, word in enumerate(_UNITS)}
_VALUES |= {word: 10 * place for place, word in enumerate(_TENS, start=2)}
_SCALES = {"hundred": 100, "thousand": 1000}
_WORD = "|".join([*_VALUES, *_SCALES])

_MINUS = str.maketrans(dict.fromkeys("−‐‑‒–—﹣－", "-"))
_NUMBER = re.compile(
    rf"""
    (?<![\w.,'’/^])(?P<sign>-|\+|(?:minus|negative)\s+)?
    (?: (?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)
      | \b(?P<words>(?:{_WORD})(?:[\s-]+(?:and[\s-]+)?(?:{_WORD}))*) )
    (?![\w]|[.,:]\d|['’]\d|-(?=[^\W\d]|\s*\Z))
    """,
    re.VERBOSE | re.IGNORECASE,
)
_PART_BEFORE = re.compile(
    r"(?:[/×÷*^√<>≤≥±≠]|\\(?:frac|sqrt)\{|[\d)]\s*\+|[\d)]\s*-|(?:^|[\d):])\s*-\s|\b(?:more|less|fewer|greater|larger"
    r"|smaller|higher|lower)\s+than|\bat\s+(?:least|most)|\bup\s+to|\b(?:over|under|above|below"
    r"|between|minus|negative|plus|times))\s*\Z",
    re.IGNORECASE,
)
_PART_AFTER = re.compile(
    r"[^\S\n]*(?:[%‰°^½⅓¼¾]|\}\{|per\s?cent\b|[/×÷*+-][^\S\n]*[\d(]|(?:to|times|plus|minus|over|divided"
    r"\s+by|out\s+of)\s+\d|(?:million|billion|trillion|dozen|point)\b|and\s+an?\s+(?:half|quarter"
    r"|third)|hal(?:f|ves)\b|thirds?\b|quarters?\b|\d)",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"\s+(?:of|can|must|should|has|which|that|we|to|who|in|from|such|rule)\b")
"""Words behind "one" where it is no number."""


def with_minus(text: str) -> str:
    """The text with a hyphen for every kind of minus sign and dash."""
    return text.translate(_MINUS)


def numbers_in(text: str) -> list[re.Match[str]]:
    """All numbers in a text, in digits or words, as long as they can be read."""
    return [
        one
        for one in _NUMBER.finditer(text)
        if one["digits"]
        or (
            _in_words(one["words"]) is not None
            and not (one["words"].lower() == "one" and _PRONOUN.match(text, one.end()))
        )
    ]


def is_part(text: str, number: re.Match[str]) -> bool:
    """Whether a number is only a part of what a text says: of a sum, a range or a percentage."""
    return bool(
        _PART_BEFORE.search(text[: number.start()]) or _PART_AFTER.match(text, number.end())
    )


def written(number: re.Match[str]) -> str:
    """A number in digits, without thousands separators and without zeros that do not count."""
    if number["digits"]:
        whole, _, fraction = number["digits"].replace(",", "").partition(".")
        value = str(int(whole or "0")) + (f".{fraction.rstrip('0')}" if fraction.strip("0") else "")
    else:
        value = str(_in_words(number["words"]))
    negative = (number["sign"] or "").strip().lower() in ("-", "minus", "negative")
    return f"-{value}" if negative and value != "0" else value


def _in_words(text: str) -> int | None:
    """The value of number words; None if they are no number, such as "two three"."""
    total = part = 0
    for word in re.split(r"[\s-]+(?:and[\s-]+)?", text.lower()):
        if word in _SCALES:
            scale = _SCALES[word]
            if scale == 100:
                part = (part or 1) * 100
            else:
                total, part = total + (part or 1) * 1000, 0
            continue
        value, tens, units = _VALUES[word], part % 100, part % 10
        fits = tens == 0 or (value < 10 and value and units == 0 and tens >= 20)
        if part and not fits:
            return None
        part += value
    return total + part
