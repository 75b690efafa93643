"""Marginal means of a mixed model's factors, their tests, and estimates pooled over models."""

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd
from jaxtyping import Float
from patsy import build_design_matrices
from scipy.special import stdtrit

from interp.extend.statistics import UPPER
from interp_experiments.logical_forms.mixed.linear import MixedModel, student_tests

ROUNDING = 1e-12
"""Differences and standard errors up to this share of the response are due to rounding."""


def marginal_means(model: MixedModel, factor: str) -> pd.DataFrame:
    """One row per level of a factor: level, mean, standard_error, low, high (95%, Student's t).

    The mean is that of the response at this level, with equal weights for the levels of all other
    factors and with covariates at their means.
    """
    averages = _averages(model, factor)
    means, errors = averages @ model.estimates, _standard_errors(model, averages)
    tests = student_tests(means, errors, model.freedom)[["standard_error", "low", "high"]]
    return pd.DataFrame({"level": model.levels[factor], "mean": means}).join(tests)


def pairwise_tests(
    model: MixedModel, factor: str, *, pairs: Sequence[tuple[str, str]] | None = None
) -> pd.DataFrame:
    """One row per pair of levels (all, or only `pairs`): first, second, difference and its test.

    `difference` is the marginal mean of the first minus that of the second; the other columns are
    those of `student_tests`. A difference within rounding error of 0 is set to 0; if the standard
    error is within rounding error of 0, it and the test are undefined.
    """
    averages = dict(zip(model.levels[factor], _averages(model, factor), strict=True))
    chosen = list(combinations(averages, 2)) if pairs is None else list(pairs)
    contrasts = np.array([averages[one] - averages[other] for one, other in chosen])
    contrasts = contrasts.reshape(len(chosen), len(model.estimates))
    rounding = ROUNDING * float(np.abs(model.response).max())
    differences, errors = contrasts @ model.estimates, _standard_errors(model, contrasts)
    differences[np.abs(differences) <= rounding] = 0.0
    errors[errors <= rounding] = np.nan
    table = pd.DataFrame(chosen, columns=["first", "second"]).assign(difference=differences)
    return table.join(student_tests(differences, errors, model.freedom))


def _averages(model: MixedModel, factor: str) -> Float[np.ndarray, "levels columns"]:
    """For each level, the design's row averaged over the grid of the other factors."""
    levels = model.levels
    grid = pd.DataFrame(list(product(*levels.values())), columns=list(levels)).assign(**model.means)
    factors = {name: pd.Categorical(grid[name], values) for name, values in levels.items()}
    rows = np.asarray(build_design_matrices([model.info], grid.assign(**factors))[0])
    return np.array(
        [rows[(grid[factor] == level).to_numpy()].mean(axis=0) for level in levels[factor]]
    )


def _standard_errors(
    model: MixedModel, contrasts: Float[np.ndarray, "contrasts columns"]
) -> Float[np.ndarray, " contrasts"]:
    variances = ((contrasts @ model.covariance) * contrasts).sum(axis=1)
    return np.asarray(np.sqrt(variances))


MIN_STUDIES = 2
"""Smallest number of estimates to pool, since a single estimate has no spread."""

POOLED = (
    *("estimate", "low", "high", "excluded_below", "excluded_above", "standard_error", "t", "df"),
    *("p", "predicted_low", "predicted_high", "same_sign", "models", "note"),
)
"""The columns of `pool`."""


def pool(
    estimates: Float[np.ndarray, " models"], errors: Float[np.ndarray, " models"]
) -> dict[str, object]:
    """One estimate per model pooled into a mean for models in general: `POOLED`; NaN if undefined.

    Each model is one observation: unequal errors of the models only widen Student's interval
    (Bakirov and Szekely, 2005, Zapiski Nauchnykh Seminarov POMI 328). The next model's estimate,
    measurement error included, is between predicted_low and predicted_high with a probability of
    about 95% or more (Student's prediction interval; rates of both: benchmarks/rates.md).
    same_sign counts the models whose estimate has the sign of the mean; `note` says why a number is
    undefined. Models without a standard error, in `errors`, are omitted.
    """
    used = np.isfinite(estimates) & np.isfinite(errors) & (errors > 0)
    values, count = estimates[used], int(used.sum())
    if count < MIN_STUDIES:
        note = f"undefined: only {count} of the required {MIN_STUDIES} models"
        nothing: dict[str, object] = dict.fromkeys(POOLED, float("nan"))
        return nothing | {"df": 0, "same_sign": count, "models": count, "note": note}
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    notes = [] if used.all() else [f"{int((~used).sum())} models without a standard error omitted"]
    if spread <= ROUNDING * float(np.abs(values).max()):
        spread = float("nan")
        notes.append("no interval: all models have the same estimate")
    error = spread / float(np.sqrt(count))
    further = float(stdtrit(count - 1, UPPER)) * spread * float(np.sqrt(1 + 1 / count))
    (tests,) = student_tests(np.array([mean]), np.array([error]), count - 1).to_dict("records")
    return {
        "estimate": mean,
        **{str(name): value for name, value in tests.items()},
        "predicted_low": mean - further,
        "predicted_high": mean + further,
        "same_sign": int((np.sign(values) == np.sign(mean)).sum()),
        "models": count,
        "note": "; ".join(notes),
    }
