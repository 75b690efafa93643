"""Grouped rows, weighted summaries, and the confidence level of every interval."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import ndtri

LEVEL = 0.95

UPPER = (1 + LEVEL) / 2
"""The probability below the upper end of a two-sided interval: 0.975."""

Z = float(ndtri(UPPER))
"""Half the width of a normal interval, in standard errors: 1.96."""


def percentile_interval(resampled: Float[np.ndarray, " resamples"]) -> tuple[float, float]:
    """Both ends of the percentile bootstrap interval of a resampled statistic; NaN without any."""
    if not len(resampled):
        return float("nan"), float("nan")
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, UPPER])
    return float(low), float(high)


def grouped(
    frame: pd.DataFrame, by: Sequence[str]
) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
    """Each combination of values of the columns `by`, in order of appearance, with its rows.

    Without columns, all rows form one group.
    """
    if not by:
        yield {}, frame
        return
    for values, rows in frame.groupby(list(by), sort=False, observed=True, dropna=False):
        yield dict(zip(by, values, strict=True)), rows


def table_by(
    frame: pd.DataFrame,
    by: Sequence[str],
    kind: type[Any],
    of: Callable[..., Any],
    **options: object,
) -> pd.DataFrame:
    """One row per combination of `by`, with the fields of the dataclass `kind`.

    `of` computes an instance from a group's rows and the options; without rows, there are the
    columns all the same.
    """
    rows = [{**cell, **asdict(of(members, **options))} for cell, members in grouped(frame, by)]
    return pd.DataFrame(rows, columns=[*by, *(field.name for field in fields(kind))])


Values = Float[np.ndarray, " n"]

Summary = Callable[[Values, Values], float]
"""A function that reduces values and their weights to one number."""


def weighted_sd(values: Values, weights: Values) -> float:
    """The weighted standard deviation, or NaN for fewer than two values.

    For equal weights, it is the sample standard deviation.
    """
    if len(values) < 2:
        return float("nan")
    deviations = values - np.average(values, weights=weights)
    bias = len(values) / (len(values) - 1)
    return float(np.sqrt(bias * np.average(deviations**2, weights=weights)))


def weighted_quantile(values: Values, weights: Values, share: float) -> float:
    """The value below which a given share of the weight lies, interpolated between rows."""
    order = np.argsort(values)
    below = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    return float(np.interp(share, below, values[order]))


def weighted_median(values: Values, weights: Values) -> float:
    """The weighted median."""
    return weighted_quantile(values, weights, 0.5)


def largest_share(values: Values, weights: Values) -> float:
    """The largest share of the weighted sum that comes from one value; NaN if the sum is 0."""
    parts = values * weights
    return float(parts.max() / parts.sum()) if parts.sum() > 0 else float("nan")


def effective_number(weights: Values) -> float:
    """The number of equal weights whose mean would vary as much (Kish, 1965); 0 without weights."""
    return float(weights.sum() ** 2 / (weights**2).sum()) if weights.any() else 0.0
