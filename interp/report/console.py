"""Tables on the terminal."""

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from interp.report.cells import FIGURES

_UNBOUNDED = 1000


def print_table(frame: pd.DataFrame, *, title: str) -> None:
    """Print a table to standard output, one word of a heading a line, figures to the right.

    The table is as wide as it needs to be: a narrow terminal wraps it, and no figure is cut.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in frame.columns:
        texts = frame[name].map(_cell)
        table.add_column(
            str(name).replace("_", "\n"),
            justify="right" if texts.str.match(FIGURES).all() else "left",
            vertical="bottom",
            no_wrap=True,
        )
    for row in frame.itertuples(index=False):
        table.add_row(*(_cell(value) for value in row))
    console = Console(markup=False, highlight=False, width=_UNBOUNDED)
    console.width = console.measure(table).maximum
    console.print(title)
    console.print(table)


def mean_with_sd(means: pd.Series, deviations: pd.Series) -> pd.Series:
    """Text such as "0.689 (0.193)", as the paper prints means; empty where there is none."""
    return pd.Series(
        [
            "" if pd.isna(mean) else f"{mean:.3f} ({deviation:.3f})"
            for mean, deviation in zip(means, deviations, strict=True)
        ],
        index=means.index,
    )


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
