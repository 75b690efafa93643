"""Division that gives NaN where it is undefined."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

NEXT_TO_NOTHING = 1e-12
"""Sums of fp64 numbers that are nothing may differ from zero by so much."""


def ratio(above: ArrayLike, below: ArrayLike) -> NDArray[np.float64]:
    """One array over another of the same or a broadcast shape; NaN where that is nothing."""
    tops, bottoms = np.broadcast_arrays(np.asarray(above, dtype=float), below)
    found = np.full(tops.shape, np.nan)
    np.divide(tops, bottoms, out=found, where=np.abs(bottoms) > NEXT_TO_NOTHING)
    return found
