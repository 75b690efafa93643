"""What makes an answer correct: a mixed-effects logistic regression, or a stated fallback.

1. Keep the rows without missing values; standardise the predictors; multiply them pairwise.
2. Leave out what cannot be estimated, with a note: constant predictors, groupings of one level.
3. Give up, and say why, where no estimate exists: a constant outcome, predictors that depend on
   each other, predictors that separate the outcomes.
4. Fit the mixed model by the Laplace approximation.
5. Where that finds no maximum, fit a logistic regression with errors robust to clusters instead.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats
from scipy.optimize import linprog

from interp.analysis.groups import grouped
from interp.analysis.intervals import Z
from interp.analysis.mixed.laplace import fit_laplace
from interp.errors import UserError

INTERCEPT = "intercept"

SEPARATED = 1e-4
"""Log-odds, in the scale of standardised predictors, above which a separating direction is not
rounding of the solver."""

LARGEST_SD = 10.0
"""Log-odds. Beyond it most levels have a single outcome, and the likelihood would reflect the
approximation rather than the data."""

TERM_COLUMNS = ("term", "estimate", "se", "low", "high", "z", "p", "odds_ratio", "note")


@dataclass(frozen=True)
class MixedLogistic:
    """What was fitted and its terms."""

    terms: pd.DataFrame
    """One row per term: term, estimate (log-odds per standard deviation of the predictor; positive
    makes the outcome likelier), se, low and high (95% interval, normal), z, p (two-sided, Wald),
    odds_ratio, note. A term that cannot be estimated is NaN, and its note says why."""
    groups: pd.DataFrame
    """One row per grouping: group, levels, sd (of its random intercepts, in log-odds), note."""
    n: int
    """Rows without missing values."""
    converged: bool
    """Whether the mixed model has an estimate; if not, `terms` are those of the fallback."""
    fitted: str
    """What was fitted, as text, and why if it is not the mixed model."""


def mixed_logistic(
    frame: pd.DataFrame, *, outcome: str, predictors: Sequence[str], groups: Sequence[str]
) -> MixedLogistic:
    """The log-odds of an outcome by standardised predictors and their products of two.

    Each grouping has random intercepts, crossed with those of the others; estimates maximise the
    likelihood in Laplace's approximation, and their errors come from its curvature (see
    `interp.analysis.mixed.laplace`). The first grouping with two levels gives the clusters of the
    fallback.

    Args:
        frame: one row per observation; rows with a missing value are left out.
        outcome: a boolean column.
        predictors: numeric columns; standardised by mean and sample standard deviation, then
            multiplied in pairs for the interactions.
        groups: columns whose levels have random intercepts, such as entity and phrasing.

    Raises:
        UserError: a column that is missing, or no predictor or no grouping.
    """
    _check(frame, [outcome, *predictors, *groups], predictors=predictors, groups=groups)
    rows = frame.dropna(subset=[outcome, *predictors, *groups])
    fit = _fit(rows, outcome=outcome, predictors=predictors, groups=groups)
    return MixedLogistic(
        terms=_terms(fit, predictors),
        groups=_groups(rows, groups, fit.sds),
        n=len(rows),
        converged=fit.converged,
        fitted=fit.fitted,
    )


def mixed_logistic_table(
    frame: pd.DataFrame,
    *,
    outcome: str,
    predictors: Sequence[str],
    groups: Sequence[str],
    by: Sequence[str] = ("model",),
) -> pd.DataFrame:
    """One row for each combination of `by` and term, each combination fitted separately.

    Columns are those of `by` and of `MixedLogistic.terms`, n, {group}_sd for each grouping,
    converged, fitted.
    """
    tables = []
    for cell, rows in grouped(frame, by):
        fit = mixed_logistic(rows, outcome=outcome, predictors=predictors, groups=groups)
        sds = fit.groups.set_index("group")["sd"].add_suffix("_sd")
        whole = {"n": fit.n, **sds, "converged": fit.converged, "fitted": fit.fitted}
        first, last = (pd.DataFrame(part, index=fit.terms.index) for part in (cell, whole))
        tables.append(pd.concat([first, fit.terms, last], axis=1))
    if not tables:
        return pd.DataFrame(columns=[*by, *TERM_COLUMNS])
    return pd.concat(tables, ignore_index=True)


def _check(
    frame: pd.DataFrame,
    columns: Sequence[str],
    *,
    predictors: Sequence[str],
    groups: Sequence[str],
) -> None:
    missing = [column for column in columns if column not in frame]
    if missing:
        raise UserError(
            f"the table lacks the columns {', '.join(missing)}; it has {', '.join(frame.columns)}"
        )
    if not (predictors and groups):
        raise UserError("a mixed model needs at least one predictor and one grouping")


@dataclass(frozen=True)
class _Fit:
    """The result of a fit; without estimates where there are none."""

    estimates: pd.DataFrame
    """estimate and se by term."""
    sds: Mapping[str, float]
    """Standard deviation of the random intercepts of each grouping that has them."""
    converged: bool
    fitted: str


def _fit(
    rows: pd.DataFrame, *, outcome: str, predictors: Sequence[str], groups: Sequence[str]
) -> _Fit:
    """Phases 1 to 5."""
    if rows.empty:
        return _nothing("no row has all values")
    design = _design(rows, [name for name in predictors if _varies(rows[name])])
    outcomes = rows[outcome].astype(bool).to_numpy(dtype=float)
    reason = _why_undefined(outcomes, design)
    if reason:
        return _nothing(reason)
    grouped = rows[[name for name in groups if rows[name].nunique() > 1]]
    mixed = _fit_mixed(outcomes, design, grouped)
    return mixed if mixed.converged else _fit_robust(outcomes, design, grouped, mixed=mixed)


def _nothing(reason: str) -> _Fit:
    return _Fit(pd.DataFrame(columns=["estimate", "se"]), {}, False, f"nothing: {reason}")


def _varies(values: pd.Series) -> bool:
    """Whether values differ by more than rounding."""
    numbers = values.to_numpy(dtype=float)
    return bool(np.ptp(numbers) > 1e-12 * np.abs(numbers).max())


def _design(rows: pd.DataFrame, predictors: Sequence[str]) -> pd.DataFrame:
    """Phase 1: one column per term."""
    values = rows[list(predictors)].astype(float)
    standardised = (values - values.mean()) / values.std()
    columns = {INTERCEPT: pd.Series(1.0, index=rows.index)}
    columns |= {name: standardised[name] for name in predictors}
    columns |= {
        f"{a}:{b}": standardised[a] * standardised[b] for a, b in combinations(predictors, 2)
    }
    return pd.DataFrame(columns)


def _why_undefined(outcomes: Float[np.ndarray, " rows"], design: pd.DataFrame) -> str:
    """Phase 3: why there is no estimate, or nothing."""
    if len(np.unique(outcomes)) < 2:
        return f"the outcome is always {bool(outcomes[0])}"
    values = design.to_numpy()
    if np.linalg.matrix_rank(values) < values.shape[1]:
        return "the predictors and their products depend on each other linearly"
    if _separated(values, outcomes):
        return "the predictors separate the outcomes, so that the estimates would be infinite"
    return ""


def _separated(
    design: Float[np.ndarray, "rows terms"], outcomes: Float[np.ndarray, " rows"]
) -> bool:
    """Whether some direction is wrong for no row and right for one (Albert and Anderson, 1984).

    Found by the linear programme of Konis (2007): as far as possible to the right side on average,
    never to the wrong one.
    """
    signed = (2 * outcomes - 1)[:, None] * design
    solution = linprog(
        -signed.mean(axis=0), A_ub=-signed, b_ub=np.zeros(len(signed)), bounds=(-1, 1)
    )
    return bool((signed @ solution.x).max() > SEPARATED)


def _fit_mixed(
    outcomes: Float[np.ndarray, " rows"], design: pd.DataFrame, grouped: pd.DataFrame
) -> _Fit:
    """Phase 4; where it did not converge, `fitted` says why."""
    levels = [pd.factorize(grouped[name])[0] for name in grouped]
    coded = np.array(levels, dtype=np.int64).reshape(len(levels), len(outcomes)).T
    fit = fit_laplace(design.to_numpy(), outcomes, coded)
    estimates = pd.DataFrame(
        {"estimate": fit.coefficients, "se": fit.standard_errors}, index=design.columns
    )
    sds: dict[str, float] = dict(zip(grouped.columns, fit.sds.tolist(), strict=True))
    if not fit.converged:
        return _Fit(estimates, sds, False, "its likelihood has no clear maximum")
    if endless := [name for name, sd in sds.items() if sd > LARGEST_SD]:
        return _Fit(estimates, sds, False, f"{endless[0]} alone decides nearly every outcome")
    if not sds:
        return _Fit(estimates, sds, True, "logistic regression: no grouping has two levels")
    intercepts = " and ".join(sds)
    fitted = f"mixed logistic regression with random intercepts for {intercepts} (Laplace)"
    return _Fit(estimates, sds, True, fitted)


def _fit_robust(
    outcomes: Float[np.ndarray, " rows"],
    design: pd.DataFrame,
    grouped: pd.DataFrame,
    *,
    mixed: _Fit,
) -> _Fit:
    """Phase 5: an ordinary logistic regression in place of the mixed one."""
    import statsmodels.api as sm

    if grouped.empty:
        return _nothing(mixed.fitted)
    clusters = next(iter(grouped))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = sm.GLM(outcomes, design.to_numpy(), family=sm.families.Binomial()).fit(
            cov_type="cluster", cov_kwds={"groups": pd.factorize(grouped[clusters])[0]}
        )
    told = "".join(f" (warning: {warning.message})" for warning in caught)
    return _Fit(
        pd.DataFrame({"estimate": fit.params, "se": fit.bse}, index=design.columns),
        {},
        False,
        f"logistic regression with errors robust to clusters of {clusters}{told}, because the "
        f"mixed model did not converge: {mixed.fitted}",
    )


def _terms(fit: _Fit, predictors: Sequence[str]) -> pd.DataFrame:
    """The terms with their tests; what was left out of the design is undefined."""
    names = [INTERCEPT, *predictors, *(f"{a}:{b}" for a, b in combinations(predictors, 2))]
    table = fit.estimates.reindex(names).astype(float).rename_axis("term").reset_index()
    z = table["estimate"] / table["se"]
    why = "a constant predictor" if len(fit.estimates) else fit.fitted.removeprefix("nothing: ")
    table = table.assign(
        low=table["estimate"] - Z * table["se"],
        high=table["estimate"] + Z * table["se"],
        z=z,
        p=2 * stats.norm.sf(z.abs()),
        odds_ratio=np.exp(table["estimate"]),
        note=np.where(table["estimate"].isna(), f"undefined: {why}", ""),
    )
    return table[list(TERM_COLUMNS)]


def _groups(rows: pd.DataFrame, groups: Sequence[str], sds: Mapping[str, float]) -> pd.DataFrame:
    table = pd.DataFrame(
        {
            "group": list(groups),
            "levels": [rows[name].nunique() for name in groups],
            "sd": [sds.get(name, float("nan")) for name in groups],
        }
    )
    return table.assign(note=np.where(table["levels"] == 1, "left out: one level", ""))
