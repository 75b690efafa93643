"""Estimated marginal means of a mixed model's factors, and pairwise tests between them."""

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import stdtrit
from scipy.stats import t

from interp.analysis.corrections import holm
from interp.analysis.equivalence import ONE_SIDED
from interp.analysis.intervals import UPPER
from interp.analysis.mixed.linear import MixedModel
from interp.errors import UserError

ROUNDING = 1e-12
"""Differences and errors up to this share of the response are none but for rounding."""


def marginal_means(model: MixedModel, factor: str) -> pd.DataFrame:
    """One row per level of a factor: level, mean, standard_error, low, high.

    The mean is that of the response at this level, averaged with equal weights over the levels of
    all other factors, covariates at their means; low and high bound it with a confidence of 95% by
    Student's t with the model's degrees of freedom.

    Raises:
        UserError: the model has no such factor.
    """
    averages = _averages(model, factor)
    means = averages @ model.fit.coefficients
    errors = _standard_errors(model, averages)
    half = float(stdtrit(model.freedom, UPPER)) * errors
    return pd.DataFrame(
        {
            "level": model.design.levels[factor],
            "mean": means,
            "standard_error": errors,
            "low": means - half,
            "high": means + half,
        }
    )


def pairwise_tests(
    model: MixedModel, factor: str, *, pairs: Sequence[tuple[str, str]] | None = None
) -> pd.DataFrame:
    """One row per pair of levels: first, second, difference, its interval, test and limits.

    `difference` is the marginal mean of the first minus that of the second, low and high its 95%
    interval; p, standard_error, t and df are of the two-sided test by Student's t with the model's
    degrees of freedom. The pairs are one family for Holm's correction, p_holm. Differences beyond
    excluded_below and excluded_above are excluded, each side at 5% (`interp.analysis.equivalence`).
    A difference that is rounding is 0, and an error that is rounding is undefined, as is its test.

    Args:
        model: a fitted model.
        factor: one of its factors.
        pairs: the pairs to test; all if None.

    Raises:
        UserError: the model has no such factor, or the factor no such level.
    """
    averages = _averages(model, factor)
    place = {level: index for index, level in enumerate(model.design.levels[factor])}
    chosen = list(combinations(place, 2)) if pairs is None else list(pairs)
    unknown = {level for pair in chosen for level in pair} - set(place)
    if unknown:
        raise UserError(
            f"{factor} has no level {', '.join(sorted(unknown))}; it has {', '.join(place)}"
        )
    contrasts = np.array([averages[place[one]] - averages[place[other]] for one, other in chosen])
    contrasts = contrasts.reshape(len(chosen), len(model.design.columns))
    rounding = ROUNDING * float(np.abs(model.design.response).max())
    differences = contrasts @ model.fit.coefficients
    differences[np.abs(differences) <= rounding] = 0.0
    errors = _standard_errors(model, contrasts)
    errors[errors <= rounding] = np.nan
    statistic = differences / errors
    half, limit = (float(stdtrit(model.freedom, level)) * errors for level in (UPPER, ONE_SIDED))
    tests = pd.DataFrame(
        {
            "first": [one for one, _ in chosen],
            "second": [other for _, other in chosen],
            "difference": differences,
            "low": differences - half,
            "high": differences + half,
            "p": 2 * t.sf(np.abs(statistic), model.freedom),
            "standard_error": errors,
            "t": statistic,
            "df": model.freedom,
            "excluded_below": differences - limit,
            "excluded_above": differences + limit,
        }
    )
    return holm(tests, family=f"pairs of {factor}")


def _averages(model: MixedModel, factor: str) -> Float[np.ndarray, "levels columns"]:
    """For each level, the average row of the design over the grid of the other factors."""
    levels, means = model.design.levels, model.design.means
    if factor not in levels:
        raise UserError(
            f"{model.formula} has no factor {factor!r}; it has {', '.join(levels) or 'none'}"
        )
    grid = pd.DataFrame(list(product(*levels.values())), columns=list(levels)).assign(**means)
    rows = model.design.rows(grid)
    return np.array(
        [rows[(grid[factor] == level).to_numpy()].mean(axis=0) for level in levels[factor]]
    )


def _standard_errors(
    model: MixedModel, contrasts: Float[np.ndarray, "contrasts columns"]
) -> Float[np.ndarray, " contrasts"]:
    variances = ((contrasts @ model.fit.covariance) * contrasts).sum(axis=1)
    return np.asarray(np.sqrt(variances))
