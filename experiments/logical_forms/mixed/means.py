"""Marginal means of a mixed model's factors, their tests, and estimates pooled over models.

`pool` treats each model as one observation:

1. The mean over models, with Student's interval and test. Unequal errors of the models only widen
   the interval (Bakirov and Szekely, 2005, Zapiski Nauchnykh Seminarov POMI 328), and no estimate
   of the spread between models is needed.
2. The interval for a further model: Student's prediction interval for one more estimate.
3. The spread of the true values, tau, given each model's error (Paule and Mandel, 1982).

benchmarks/rates.md has the measured rates of both intervals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pandas as pd
from jaxtyping import Float
from patsy import build_design_matrices
from scipy.special import stdtrit

from interp.extend.statistics import UPPER, table_by
from interp_experiments.logical_forms.mixed.linear import MixedModel, student_tests

NAN = float("nan")

ROUNDING = 1e-12
"""Differences and standard errors up to this share of the response are due to rounding."""


def marginal_means(model: MixedModel, factor: str) -> pd.DataFrame:
    """One row per level of a factor: level, mean, standard_error, low, high (95%, Student's t).

    The mean is that of the response at this level, with equal weights for the levels of all other
    factors and with covariates at their means.
    """
    averages = _averages(model, factor)
    means, errors = averages @ model.fit.coefficients, _standard_errors(model, averages)
    table = pd.DataFrame({"level": model.design.levels[factor], "mean": means})
    return table.join(
        student_tests(means, errors, model.freedom)[["standard_error", "low", "high"]]
    )


def pairwise_tests(
    model: MixedModel, factor: str, *, pairs: Sequence[tuple[str, str]] | None = None
) -> pd.DataFrame:
    """One row per pair of levels (all, or only `pairs`): first, second, difference and its test.

    `difference` is the marginal mean of the first minus that of the second; the other columns are
    those of `student_tests`. A difference within rounding error of 0 is set to 0; if the standard
    error is within rounding error of 0, it and the test are undefined.
    """
    averages = _averages(model, factor)
    place = {level: index for index, level in enumerate(model.design.levels[factor])}
    chosen = list(combinations(place, 2)) if pairs is None else list(pairs)
    contrasts = np.array([averages[place[one]] - averages[place[other]] for one, other in chosen])
    contrasts = contrasts.reshape(len(chosen), len(model.design.columns))
    rounding = ROUNDING * float(np.abs(model.design.response).max())
    differences = contrasts @ model.fit.coefficients
    differences[np.abs(differences) <= rounding] = 0.0
    errors = _standard_errors(model, contrasts)
    errors[errors <= rounding] = np.nan
    levels = {"first": [one for one, _ in chosen], "second": [other for _, other in chosen]}
    tests = student_tests(differences, errors, model.freedom)
    return pd.DataFrame({**levels, "difference": differences}).join(tests)


def _averages(model: MixedModel, factor: str) -> Float[np.ndarray, "levels columns"]:
    """For each level, the design's row averaged over the grid of the other factors."""
    levels, means = model.design.levels, model.design.means
    grid = pd.DataFrame(list(product(*levels.values())), columns=list(levels)).assign(**means)
    told = {name: pd.Categorical(grid[name], own) for name, own in levels.items()}
    rows = np.asarray(build_design_matrices([model.design.info], grid.assign(**told))[0])
    return np.array(
        [rows[(grid[factor] == level).to_numpy()].mean(axis=0) for level in levels[factor]]
    )


def _standard_errors(
    model: MixedModel, contrasts: Float[np.ndarray, "contrasts columns"]
) -> Float[np.ndarray, " contrasts"]:
    variances = ((contrasts @ model.fit.covariance) * contrasts).sum(axis=1)
    return np.asarray(np.sqrt(variances))


MIN_STUDIES = 2
"""Smallest number of estimates to pool, since a single estimate has no spread."""


@dataclass(frozen=True)
class Pooled:
    """A pooled estimate; undefined values are NaN, and `note` gives the reason."""

    estimate: float = NAN
    low: float = NAN
    """Lower end of the 95% interval of the mean over models."""
    high: float = NAN
    excluded_below: float = NAN
    """A one-sided 5% test excludes smaller means (`interp.statistics.decisions`)."""
    excluded_above: float = NAN
    standard_error: float = NAN
    t: float = NAN
    df: int = 0
    p: float = NAN
    """Two-sided p-value for the hypothesis that the mean over models is zero."""
    tau: float = NAN
    """Standard deviation of the true values between models."""
    I2: float = NAN
    """Share of the variance of the estimates that lies between models, from 0 to 1 (Higgins and
    Thompson, 2002, Statistics in Medicine 21)."""
    predicted_low: float = NAN
    """Lower end of Student's prediction interval for one more model, measurement error included: it
    covers the true value with a probability of about 95% or more."""
    predicted_high: float = NAN
    same_sign: int = 0
    """Number of models whose own estimate has the sign of the pooled estimate."""
    models: int = 0
    note: str = ""


def pool(estimates: Float[np.ndarray, " models"], errors: Float[np.ndarray, " models"]) -> Pooled:
    """Pool one estimate per model into a mean for models in general.

    `errors` are their standard errors, for tau and I2; estimates without one are omitted.
    """
    used = np.isfinite(estimates) & np.isfinite(errors) & (errors > 0)
    values, count = estimates[used], int(used.sum())
    if count < MIN_STUDIES:
        note = f"undefined: only {count} of the required {MIN_STUDIES} models"
        return Pooled(same_sign=count, models=count, note=note)
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    notes = [] if used.all() else [f"{int((~used).sum())} models without a standard error omitted"]
    if spread <= ROUNDING * float(np.abs(values).max()):
        spread = NAN
        notes.append("no interval: all models have the same estimate")
    error = spread / float(np.sqrt(count))
    further = float(stdtrit(count - 1, UPPER)) * spread * float(np.sqrt(1 + 1 / count))
    (tests,) = student_tests(np.array([mean]), np.array([error]), count - 1).to_dict("records")
    # statsmodels divides by the spread, so it is not called if all estimates are equal.
    tau, share = (0.0, 0.0) if np.isnan(spread) else _between(values, errors[used] ** 2)
    return Pooled(
        estimate=mean,
        **{str(name): value for name, value in tests.items()},
        tau=tau,
        I2=share,
        predicted_low=mean - further,
        predicted_high=mean + further,
        same_sign=int((np.sign(values) == np.sign(mean)).sum()),
        models=count,
        note="; ".join(notes),
    )


def _between(
    values: Float[np.ndarray, " models"], variances: Float[np.ndarray, " models"]
) -> tuple[float, float]:
    """The spread between models, tau, and I2."""
    # This import is slow, and commands without a report should not wait for it.
    from statsmodels.stats.meta_analysis import combine_effects

    found = combine_effects(values, variances, method_re="iterated")
    return float(np.sqrt(found.tau2)), max(0.0, float(found.i2))


def pooled_table(
    estimates: pd.DataFrame, *, estimate: str, error: str, by: Sequence[str]
) -> pd.DataFrame:
    """One row per combination of `by`: the columns `estimate` pooled, with their errors `error`."""

    def pooled(members: pd.DataFrame) -> Pooled:
        return pool(*(members[column].to_numpy(dtype=float) for column in (estimate, error)))

    return table_by(estimates, by, Pooled, pooled)
