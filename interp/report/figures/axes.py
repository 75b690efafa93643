"""What all figures have in common: places and order of values, labels, counts, the legend."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

Interval = tuple[str, str]
"""The columns that hold the lower and the upper end of an interval."""


def distinct(values: pd.Series) -> list[Any]:
    """The different values, in the order in which they first occur."""
    return values.drop_duplicates().tolist()


def positions(values: pd.Series, order: list[Any]) -> NDArray[np.float64]:
    """The index of each value in the order, (row,)."""
    return np.array([order.index(value) for value in values], dtype=float)


def n_of(counts: pd.Series) -> str:
    """What a label says of counts: their common value, or the least and the largest."""
    if counts.empty:
        return "n = 0"
    low, high = int(counts.min()), int(counts.max())
    return f"n = {low:,}" if low == high else f"n = {low:,} to {high:,}"


def interval_errors(
    rows: pd.DataFrame, values: NDArray[np.float64], interval: Interval
) -> NDArray[np.float64]:
    """Distances from the values down and up to the ends of their intervals, (2, row)."""
    low, high = (rows[column].astype(float).to_numpy() for column in interval)
    return np.maximum([values - low, high - values], 0.0)


def jitter(points: int, reach: float) -> NDArray[np.float64]:
    """Random shifts, the same in every run."""
    return np.random.default_rng(0).uniform(-reach, reach, points)


def add_legend(ax: Axes, groups: Sequence[object]) -> None:
    """A legend above the axes, in as many columns as its names leave room for."""
    if not groups:
        return
    longest = max(len(str(group)) for group in groups)
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.01),
        borderaxespad=0,
        ncols=max(1, min(len(groups), 90 // (longest + 7))),
        handlelength=2,
    )
