"""The confidence level of every reported interval, and the quantiles that follow from it."""

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

LEVEL = 0.95

UPPER = (1 + LEVEL) / 2
"""The probability below the upper end of a two-sided interval: 0.975."""

Z = float(ndtri(UPPER))
"""Half the width of a normal interval, in standard errors: 1.96."""


def percentile_interval(resampled: Float[np.ndarray, " resamples"]) -> tuple[float, float]:
    """Lower and upper end of the percentile bootstrap interval of a resampled statistic."""
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, UPPER])
    return float(low), float(high)
