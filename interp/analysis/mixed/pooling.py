"""Estimates of several models, pooled by a random-effects meta-analysis.

1. The spread between the models, tau, beside the errors within (Paule and Mandel, 1982).
2. The mean, each model weighed by its whole variance.
3. Its interval by Hartung and Knapp's variance (2001, Statistics in Medicine 20) and Student's t
   with one degree of freedom less than there are models: with few models the usual normal interval
   is too narrow (IntHout, Ioannidis and Borm, 2014, BMC Medical Research Methodology 14).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import stdtrit
from scipy.stats import t

from interp.analysis.groups import table_by
from interp.analysis.intervals import UPPER

MIN_STUDIES = 2
"""Estimates below which nothing is pooled: one has no spread."""


@dataclass(frozen=True)
class Pooled:
    """A pooled estimate; NaN where undefined, and `note` says why."""

    estimate: float
    low: float
    """Lower end of the 95% interval of the mean over models."""
    high: float
    t: float
    df: int
    p: float
    """Two-sided p-value that the mean over models is zero."""
    tau: float
    """Standard deviation of the true values between models."""
    I2: float
    """Share of the variance of the estimates that is between models, from 0 to 1 (Higgins and
    Thompson, 2002, Statistics in Medicine 21)."""
    predicted_low: float
    """Lower end of the interval in which the true value of a further model lies with 95%
    probability (Higgins, Thompson and Spiegelhalter, 2009): t with models - 2 degrees of freedom;
    undefined below three models."""
    predicted_high: float
    same_sign: int
    """Models whose own estimate has the sign of the pooled one."""
    models: int
    note: str


def pool(estimates: Float[np.ndarray, " models"], errors: Float[np.ndarray, " models"]) -> Pooled:
    """The mean of estimates that were made on one model each, for models in general.

    Args:
        estimates: one for each model.
        errors: their standard errors; an estimate without one is left out.
    """
    # Costly to import, and commands without a report need not wait for it.
    from statsmodels.stats.meta_analysis import combine_effects

    used = np.isfinite(estimates) & np.isfinite(errors) & (errors > 0)
    values, variances = estimates[used], errors[used] ** 2
    count = len(values)
    if count < MIN_STUDIES:
        return _undefined(count)
    found = combine_effects(values, variances, method_re="iterated", use_t=True)
    mean, error, tau2 = float(found.mean_effect_re), float(found.sd_eff_w_re_hksj), found.tau2
    half = float(stdtrit(count - 1, UPPER)) * error
    further = float("nan")
    if count > 2:
        further = float(stdtrit(count - 2, UPPER)) * float(np.sqrt(tau2 + error**2))
    statistic = mean / error if error > 0 else float("nan")
    return Pooled(
        estimate=mean,
        low=mean - half,
        high=mean + half,
        t=statistic,
        df=count - 1,
        p=2 * float(t.sf(abs(statistic), count - 1)),
        tau=float(np.sqrt(tau2)),
        I2=max(0.0, float(found.i2)),
        predicted_low=mean - further,
        predicted_high=mean + further,
        same_sign=int((np.sign(values) == np.sign(mean)).sum()),
        models=count,
        note="" if used.all() else f"{int((~used).sum())} models without a standard error left out",
    )


def pooled_table(
    estimates: pd.DataFrame, *, estimate: str, error: str, by: Sequence[str]
) -> pd.DataFrame:
    """One row for each combination of `by`: by and the fields of Pooled.

    Args:
        estimates: one row for each model and combination of `by`.
        estimate: column of the estimates.
        error: column of their standard errors.
        by: what is pooled separately, such as the contrasts.
    """

    def pooled(members: pd.DataFrame) -> Pooled:
        return pool(*(members[column].to_numpy(dtype=float) for column in (estimate, error)))

    return table_by(estimates, by, Pooled, pooled)


def _undefined(count: int) -> Pooled:
    numbers = [name for name, kind in Pooled.__annotations__.items() if kind is float]
    return Pooled(
        **dict.fromkeys(numbers, float("nan")),
        df=0,
        same_sign=count,
        models=count,
        note=f"undefined: {count} of at least {MIN_STUDIES} models",
    )
