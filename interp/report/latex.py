"""Tables as LaTeX, in the style of booktabs: https://ctan.org/pkg/booktabs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from interp.report.formatting import heading, holds_p_values, number_text, with_counts
from interp.report.page import TableItem

_ESCAPED = str.maketrans(
    {
        **{mark: f"\\{mark}" for mark in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "|": "$|$",
        "[": "{[}",  # otherwise \\ takes a bracket in the next row as its argument
        "−": "$-$",
        "∞": r"$\infty$",
        "×": r"$\times$",
        "→": r"$\to$",
        "≤": r"$\leq$",
        "≥": r"$\geq$",
    }
)


def latex(item: TableItem) -> str:
    """A table as LaTeX, with its title as caption; needs the package booktabs.

    Each interval stands in brackets behind its number. Long tables have the first `MOST_ROWS` rows;
    their CSV files have all.
    """
    frame = item.on_page
    columns = dict(_columns(frame))
    numeric = [name for name in columns if pd.api.types.is_numeric_dtype(frame[name])]
    form = "".join("r" if name in numeric else "l" for name in columns)
    rows = zip(*columns.values(), strict=True)
    lines = [
        f"% {_one_line(item.rows)}; \\usepackage{{booktabs}}",
        r"\begin{table}",
        rf"\caption{{{escaped(item.title)}}}",
        rf"\label{{tab:{item.name}}}",
        rf"\begin{{tabular}}{{{form}}}",
        r"\toprule",
        _row(list(map(heading, columns))),
        r"\midrule",
        *map(_row, rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """The text without characters that LaTeX would take for commands, on one line."""
    return _one_line(text).translate(_ESCAPED)


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _row(cells: Sequence[str]) -> str:
    return " & ".join(map(escaped, cells)) + r" \\"


def _columns(frame: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """The name and texts of each column; the ends of an interval join their number's column."""
    ends = _ends(list(map(str, frame.columns)))
    taken = {name for pair in ends.values() for name in pair}
    for name in map(str, frame.columns):
        if name in ends:
            low, high = (frame[end] for end in ends[name])
            yield name, [*map(_with_interval, frame[name], low, high)]
        elif name not in taken:
            p_value = holds_p_values(name)
            yield name, [_cell(value, p_value=p_value) for value in with_counts(frame[name])]


def _ends(names: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """The columns with the ends of intervals: x_low and x_high, or low and high behind a number."""
    ends = {n: (f"{n}_low", f"{n}_high") for n in names if {f"{n}_low", f"{n}_high"} <= {*names}}
    if {"low", "high"} <= {*names} and names.index("low") > 0:
        ends[names[names.index("low") - 1]] = "low", "high"
    return ends


def _with_interval(value: Any, low: Any, high: Any) -> str:
    number = _cell(value)
    return number if pd.isna(value) or pd.isna(low) else f"{number} [{_cell(low)}, {_cell(high)}]"


def _cell(value: Any, *, p_value: bool = False) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return ""
    if pd.api.types.is_bool(value):
        return "yes" if value else "no"
    return number_text(value, p_value=p_value) if pd.api.types.is_number(value) else str(value)
