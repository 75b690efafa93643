"""Calibration: from a score's share to the probability that the segment decides.

The map is monotone: isotonic regression of who decides on the share, by pooled adjacent violators.
Both segments of a prompt are used, the second with the complementary share, so that the map does
not prefer a place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

Shares = Float[np.ndarray, " prompt"]
Decides = Bool[np.ndarray, " prompt"]

BINS = 10
"""Bins of equal width of the calibration error."""

DRAWS = 4999
"""Draws of who decides, from the probabilities themselves."""

MOST_KNOTS = 32
"""Points of a map that is written down; between them it is linear."""


@dataclass(frozen=True)
class MonotoneMap:
    """A map that never falls, linear between its knots and constant beyond them."""

    shares: tuple[float, ...]
    """Of the score, rising from 0 to 1."""
    probabilities: tuple[float, ...]

    @classmethod
    def fitted(cls, shares: Shares, decides: Decides) -> "MonotoneMap":
        """The isotonic regression of the outcomes on the shares, both segments of each prompt.

        Raises:
            ValueError: no prompt.
        """
        x, y = mirrored(shares, decides)
        regression = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(x, y)
        grid = np.linspace(0, 1, MOST_KNOTS + 1)
        found = regression.predict(grid)
        return cls(tuple(np.round(grid, 6).tolist()), tuple(np.round(found, 6).tolist()))

    def __call__(self, shares: Shares) -> Shares:
        """The probability that a segment of such a share decides; NaN of NaN."""
        return np.asarray(np.interp(shares, self.shares, self.probabilities))


def mirrored(
    shares: Shares, decides: Decides
) -> tuple[Float[np.ndarray, " segment"], Float[np.ndarray, " segment"]]:
    """The shares of both segments, and 1 where a segment decides."""
    return np.concatenate([shares, 1 - shares]), np.concatenate([decides, ~decides]).astype(float)


def calibration_error(probabilities: Shares, decides: Decides) -> float:
    """The expected calibration error, from 0 to 1 (Naeini et al. 2015); NaN of nothing.

    Sum over bins of their share of the prompts times |mean probability - share that decides|, with
    `BINS` bins of equal width.
    """
    if not len(probabilities):
        return float("nan")
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, probabilities - decides, minlength=BINS)
    return float(np.abs(gaps).sum() / len(probabilities))


class NoiseFloor(NamedTuple):
    """The calibration error of probabilities that are right; NaN of nothing."""

    mean: float
    high: float
    """Its 95% quantile: an error above it is found in 5% of predictors that are right."""


def noise_floor(predictions: Sequence[Shares]) -> NoiseFloor:
    """What `calibration_error` is, on average over samples, if the probabilities are right.

    Who decides is drawn from the probabilities themselves (consistency resampling, Bröcker and
    Smith 2007, Weather and Forecasting 22), prompt by prompt.

    Args:
        predictions: the probabilities of each sample, whose errors are averaged.
    """
    chance = np.random.default_rng(0)
    known = [sample for sample in predictions if len(sample)]
    if not known:
        return NoiseFloor(float("nan"), float("nan"))
    errors = np.mean([_errors_if_right(sample, chance) for sample in known], axis=0)
    return NoiseFloor(float(errors.mean()), float(np.quantile(errors, 0.95)))


def _errors_if_right(probabilities: Shares, chance: np.random.Generator) -> np.ndarray:
    decides = chance.random((DRAWS, len(probabilities))) < probabilities
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    gaps = (probabilities - decides) @ (bins[:, None] == np.arange(BINS))
    return np.asarray(np.abs(gaps).sum(1) / len(probabilities))


def area_under_curve(shares: Shares, decides: Decides) -> float:
    """The probability that a segment that decides has the larger share of two, ties half (AUC).

    NaN where all decide or none does.
    """
    if len(set(decides.tolist())) < 2:
        return float("nan")
    return float(roc_auc_score(decides, shares))
