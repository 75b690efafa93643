"""Numbers, names and a tokenizer's pieces as text."""

import math
import re
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

FIGURES = r"(?:[\d.,()\[\]% −-]|(?<=\d) to (?=[\d−-]))*$"
"""Texts that are aligned like numbers: "0.689 (0.193)", "0.69 [0.51, 0.82]", "1.9 (0.6 to 3.4)"."""

UNDEFINED = "undefined"
"""Text for an undefined statistic."""

_P_VALUE = re.compile(r"p|p_.*|.*_p|.*p_value.*", re.IGNORECASE)
_SMALLEST_P, _FINE_P = 0.0001, 0.001
"""P-values below the first limit are shown as "< 0.0001", and below the second with four decimals.
"""
_LARGEST = 1e6
"""Smallest value, such as a perplexity, that is shown with three digits."""


def holds_p_values(name: str) -> bool:
    """Whether a column of this name contains p-values."""
    return _P_VALUE.fullmatch(name) is not None


def number_text(value: Any, *, p_value: bool = False) -> str:
    """A number as text; "undefined" if it is NaN."""
    if math.isnan(value):
        return UNDEFINED
    if isinstance(value, Integral):
        return f"{value:,}".replace("-", "−")
    number = float(str(value))
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if p_value:
        return p_text(number)
    # Smaller values would appear as zero.
    form = ".1e" if 0 < abs(number) < 0.0005 else ".2e" if abs(number) >= _LARGEST else ",.3f"
    return without_minus_zero(f"{number:{form}}".replace("-", "−"))


def with_counts(values: Iterable[Any]) -> list[Any]:
    """A column's values, with integers for the counts that a missing value or a mean made floats.

    A column holds counts if all its floats are whole numbers and one is at least 2 in size.
    """
    cells = list(values)
    floats = [one for one in cells if isinstance(one, float) and not math.isnan(one)]
    if not all(one.is_integer() for one in floats) or max(map(abs, floats), default=0) < 2:
        return cells
    return [int(one) if isinstance(one, float) and not math.isnan(one) else one for one in cells]


def without_minus_zero(text: str) -> str:
    """A number's text, without its sign if it is shown as zero."""
    return text if re.search(r"[1-9]", text) else text.lstrip("-−")


def p_text(number: float) -> str:
    """A p-value as text, such as "0.034", "0.0004" and "< 0.0001"."""
    if number < _SMALLEST_P:
        return f"< {_SMALLEST_P:.4f}"
    return f"{number:.4f}" if number < _FINE_P else f"{number:.3f}"


def signed(number: float) -> str:
    """A difference with its sign and two decimals, such as "−0.10"; zero has no sign."""
    text = f"{number:+.2f}"
    return text.replace("-", "−") if float(text) else text[1:]


def heading(name: str) -> str:
    """A readable name for a column."""
    return name.replace("_", " ")


def segment_label(segment: str) -> str:
    """A readable name for a segment: "premise12" becomes "premise 12"."""
    return _NUMBER_AT_END.sub(r" \1", segment.replace("_", " "))


_NUMBER_AT_END = re.compile(r"(?<=[^\W\d])(\d+)$")


def ratio_title(ratio: Sequence[str]) -> str:
    """The name of a ratio, such as "Premise 2 over premise 1"."""
    above, below = map(segment_label, ratio)
    return f"{above[:1].upper()}{above[1:]} over {below}"
