"""Summaries in which each row represents as many as its weight says."""

import numpy as np
from jaxtyping import Float

Values = Float[np.ndarray, " n"]


def weighted_mean(values: Values, weights: Values) -> float:
    """The mean; NaN of nothing."""
    return float(np.average(values, weights=weights)) if len(values) else float("nan")


def weighted_sd(values: Values, weights: Values) -> float:
    """The standard deviation; with equal weights that of a sample, over n - 1. NaN below two."""
    if len(values) < 2:
        return float("nan")
    deviations = values - np.average(values, weights=weights)
    bias = len(values) / (len(values) - 1)
    return float(np.sqrt(bias * np.average(deviations**2, weights=weights)))


def weighted_quantile(values: Values, weights: Values, share: float) -> float:
    """The value below which a share of the weight lies, interpolated between rows."""
    order = np.argsort(values)
    below = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    return float(np.interp(share, below, values[order]))


def geometric_mean(values: Values, weights: Values) -> float:
    """The geometric mean, which is 0 where a value is."""
    with np.errstate(divide="ignore"):
        return float(np.exp(weighted_mean(np.log(values), weights)))


def largest_share(values: Values, weights: Values) -> float:
    """The largest part of the weighted sum of values that one of them holds; NaN of a sum of 0."""
    parts = values * weights
    return float(parts.max() / parts.sum()) if parts.sum() > 0 else float("nan")
