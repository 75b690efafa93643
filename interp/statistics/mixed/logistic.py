"""Predictors of an outcome, by mixed-effects logistic regression or the fallback described below.

1. Keep the rows without missing values, standardize the covariates, and write the terms as a
   matrix.
2. Omit, with a note, what cannot be estimated: constant terms and groupings with one level.
3. Stop with a note if no estimate exists, because the outcome is constant, or the terms are
   linearly dependent or separate the outcomes.
4. Fit the mixed model by the Laplace approximation. A term that is constant within every level of a
   grouping has only as many observations as there are levels; the degrees of freedom of its
   standard error and test reflect this.
5. If the likelihood has no maximum, or one grouping determines nearly every outcome, the levels of
   the first grouping become the observations of a quasi-binomial regression on the terms that are
   constant within each level. Terms that vary within levels are then undefined, because hardly any
   level has both outcomes to compare.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy import stats
from scipy.optimize import linprog

from interp.errors import UserError
from interp.statistics.mixed.design import Design, MixedFormula, RankError, make_design
from interp.statistics.mixed.laplace import fit_laplace
from interp.statistics.mixed.linear import RSquared
from interp.statistics.summaries import UPPER, grouped

INTERCEPT = "intercept"

SEPARATED = 1e-4
"""Outcomes that the terms separate by no more than this, in log-odds for coefficients of at most 1,
appear separated only because of rounding.
"""

NAN = float("nan")

LARGEST_SD = 10.0
"""Largest standard deviation of random intercepts, in log-odds. Above it, most levels have a
single outcome, and the likelihood would reflect the approximation rather than the data.
"""

SEPARATES = "the terms separate the outcomes, so the estimates would be infinite"

TERM_COLUMNS = ("term", "estimate", "low", "high", "p", "odds_ratio", "se", "t", "df", "note")


@dataclass(frozen=True)
class MixedLogistic:
    """The fitted model and its terms."""

    terms: pd.DataFrame
    """One row per coefficient: term, estimate (log-odds per standard deviation of a covariate, or
    of a level relative to the reference; positive values favor the outcome), low and high (95%
    interval), p (two-sided, Wald), odds_ratio, se, t = estimate / se, df, and note. If a column of
    the design is the same within every level of a grouping, or levels are the observations, t is
    Student's with df degrees of freedom; otherwise df is infinite and t is normal. A term that
    cannot be estimated is NaN, and its note says why.
    """
    groups: pd.DataFrame
    """One row per grouping: group, levels, sd (of its random intercepts, in log-odds) and note."""
    n: int
    """Number of rows without missing values."""
    converged: bool
    """Whether the mixed model has an estimate; if not, `terms` are those of the fallback."""
    fitted: str
    """The name of the fitted model and, for the fallback, the reason."""
    log_likelihood: float
    """Log-likelihood of the mixed model, in nats; NaN if it has no estimate."""
    r_squared: RSquared
    """R squared on the log-odds scale, on which the residual variance of the outcome is pi squared
    over 3 (Nakagawa and Schielzeth, 2013, Methods in Ecology and Evolution 4); NaN if not
    estimated.
    """


def mixed_logistic(
    frame: pd.DataFrame, *, outcome: str, terms: Sequence[str], groups: Sequence[str]
) -> MixedLogistic:
    """The log-odds of an outcome, as explained by factors, standardized covariates and products.

    Each grouping has random intercepts, crossed with those of all other groupings; estimates
    maximize the Laplace approximation of the likelihood, and their errors come from its curvature
    (see `interp.statistics.mixed.laplace`). The fallback is a regression over the levels of the
    first grouping that has at least two levels.

    Args:
        frame: one row per observation; rows with a missing value are omitted.
        outcome: a boolean column.
        terms: such as "modality", "perplexity" and "modality:perplexity". Numeric columns are
            standardized by mean and sample standard deviation; text columns are factors with their
            first category as the reference.
        groups: columns whose levels have random intercepts, such as entity and phrasing.

    Raises:
        UserError: a column is missing, there is no term or no grouping, or a term cannot be read.
    """
    if not (terms and groups):
        raise UserError("a mixed model needs at least one term and one grouping")
    formula = MixedFormula(outcome, tuple(terms), groups[0])
    columns = [outcome, *formula.variables, *groups]
    if missing := [column for column in columns if column not in frame]:
        raise UserError(
            f"the table lacks the columns {', '.join(missing)}; it has {', '.join(frame.columns)}"
        )
    rows = frame.dropna(subset=columns)
    fit = _fit(rows, formula, groups=groups)
    levels = [rows[name].nunique() for name in groups]
    sds = [fit.sds.get(name, NAN) for name in groups]
    notes = ["omitted: only one level" if count == 1 else "" for count in levels]
    by_groups = sum(sd**2 for sd in fit.sds.values()) if fit.converged else NAN
    total = fit.by_terms + by_groups + np.pi**2 / 3
    return MixedLogistic(
        terms=_terms(fit, formula),
        groups=pd.DataFrame({"group": list(groups), "levels": levels, "sd": sds, "note": notes}),
        n=len(rows),
        converged=fit.converged,
        fitted=fit.fitted,
        log_likelihood=fit.log_likelihood,
        r_squared=RSquared(fit.by_terms / total, (fit.by_terms + by_groups) / total),
    )


def mixed_logistic_table(
    frame: pd.DataFrame,
    *,
    outcome: str,
    terms: Sequence[str],
    groups: Sequence[str],
    by: Sequence[str] = ("model",),
) -> pd.DataFrame:
    """One row per coefficient and combination of `by`; each combination is fitted separately.

    Columns are `by`, those of `MixedLogistic.terms`, fitted, n, {group}_sd for each grouping,
    converged, R2_marginal and R2_conditional.
    """
    tables = []
    for cell, rows in grouped(frame, by):
        fit = mixed_logistic(rows, outcome=outcome, terms=terms, groups=groups)
        sds = fit.groups.set_index("group")["sd"].add_suffix("_sd")
        table = fit.terms.assign(
            fitted=fit.fitted,
            n=fit.n,
            **sds,
            converged=fit.converged,
            R2_marginal=fit.r_squared.marginal,
            R2_conditional=fit.r_squared.conditional,
        )
        tables.append(pd.concat([pd.DataFrame(cell, index=table.index), table], axis=1))
    if not tables:
        return pd.DataFrame(columns=[*by, *TERM_COLUMNS, "fitted"])
    return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True)
class _Fit:
    """The result of a fit, which may lack estimates."""

    estimates: pd.DataFrame
    """estimate, se and df by coefficient."""
    sds: Mapping[str, float]
    """Standard deviation of the random intercepts, for each grouping that has them."""
    converged: bool
    fitted: str
    undefined: str = ""
    """The reason why a coefficient without an estimate is undefined."""
    log_likelihood: float = NAN
    by_terms: float = NAN
    """Variance of the fixed effects over the rows."""


def _fit(rows: pd.DataFrame, formula: MixedFormula, *, groups: Sequence[str]) -> _Fit:
    """Fit the mixed model or its fallback (phases 1 to 5)."""
    if rows.empty:
        return _nothing("no row has a value in every column")
    outcomes = rows[formula.response].astype(bool).to_numpy(dtype=float)
    if len(np.unique(outcomes)) < 2:
        return _nothing(f"the outcome is always {bool(outcomes[0])}")
    numeric = [name for name in formula.variables if pd.api.types.is_numeric_dtype(rows[name])]
    values = rows[numeric].astype(float)
    # A covariate whose values differ only by rounding is constant.
    spread = values.max() - values.min() > 1e-12 * values.abs().max()
    varies = {**(rows[formula.variables].nunique() > 1), **spread}
    varying = tuple(term for term in formula.fixed if all(map(varies.get, term.split(":"))))
    standardized = rows.assign(**((values - values.mean()) / values.std()))
    try:
        design = make_design(
            standardized, MixedFormula(formula.response, varying, formula.group), random=False
        )
    except RankError:
        return _nothing("the terms depend on each other linearly")
    if _separated(design.fixed, outcomes):
        return _nothing(SEPARATES)
    grouped = rows[[name for name in groups if rows[name].nunique() > 1]]
    mixed = _fit_mixed(outcomes, design, grouped)
    return mixed if mixed.converged else _fit_levels(outcomes, design, grouped, mixed=mixed)


def _nothing(reason: str) -> _Fit:
    empty = pd.DataFrame(columns=["estimate", "se", "df"])
    return _Fit(empty, {}, False, f"nothing: {reason}", undefined=reason)


def _names(design: Design) -> list[str]:
    return [INTERCEPT if name == "Intercept" else name for name in design.columns]


def _separated(
    design: Float[np.ndarray, "rows terms"], outcomes: Float[np.ndarray, " rows"]
) -> bool:
    """Whether coefficients exist that are right for some rows and wrong for none.

    This is separation (Albert and Anderson, 1984). The linear program of Konis (2007) finds the
    coefficients that move the rows' log-odds furthest towards their outcomes on average, without
    moving any row away from its outcome.
    """
    signed = (2 * outcomes - 1)[:, None] * design
    solution = linprog(
        -signed.mean(axis=0), A_ub=-signed, b_ub=np.zeros(len(signed)), bounds=(-1, 1)
    )
    return bool((signed @ solution.x).max() > SEPARATED)


def _fit_mixed(outcomes: Float[np.ndarray, " rows"], design: Design, grouped: pd.DataFrame) -> _Fit:
    """Phase 4; if the search did not converge, `fitted` says why."""
    levels = [pd.factorize(grouped[name])[0] for name in grouped]
    coded = np.array(levels, dtype=np.int64).reshape(len(levels), len(outcomes)).T
    fit = fit_laplace(design.fixed, outcomes, coded)
    freedom, inflation = _freedom(design.fixed, coded)
    errors = fit.standard_errors * inflation
    estimates = pd.DataFrame(
        {"estimate": fit.coefficients, "se": errors, "df": freedom}, index=_names(design)
    )
    sds: dict[str, float] = dict(zip(grouped.columns, fit.sds.tolist(), strict=True))
    if not fit.converged:
        return _Fit(estimates, sds, False, "its likelihood has no clear maximum")
    if endless := [name for name, sd in sds.items() if sd > LARGEST_SD]:
        return _Fit(estimates, sds, False, f"{endless[0]} by itself decides nearly every outcome")
    fitted = "logistic regression: no grouping has two levels"
    if sds:
        intercepts = f"random intercepts for {' and '.join(sds)}"
        fitted = f"mixed logistic regression with {intercepts} (Laplace)"
    return _Fit(
        estimates,
        sds,
        True,
        fitted,
        undefined="a constant term",
        log_likelihood=fit.log_likelihood,
        by_terms=float(np.var(design.fixed @ fit.coefficients)),
    )


def _freedom(
    columns: Float[np.ndarray, "rows columns"], levels: Int[np.ndarray, "rows groupings"]
) -> tuple[Float[np.ndarray, " columns"], Float[np.ndarray, " columns"]]:
    """Degrees of freedom of each coefficient, and the factor that corrects its standard error.

    If k independent combinations of the columns are constant within each of a grouping's G levels,
    G - k degrees of freedom remain for a column that is constant within each level (between-within
    degrees of freedom; Schluchter and Elashoff, 1990, Journal of Statistical Computation and
    Simulation 37). Maximum-likelihood variances divide by G, whereas least-squares variances divide
    by G - k. A column that is constant within the levels of several groupings gets the fewest
    degrees of freedom among them; a column that varies within all groupings gets infinitely many.
    """
    freedom, inflation = np.full(columns.shape[1], np.inf), np.ones(columns.shape[1])
    for codes in levels.T:
        sizes = np.bincount(codes)
        means = np.stack([np.bincount(codes, column) / sizes for column in columns.T], axis=1)
        within = np.linalg.matrix_rank(columns - means[codes])
        left = len(sizes) - (columns.shape[1] - within)
        fewer = _constant_within(columns, codes) & (left < freedom)
        freedom[fewer] = left if left > 0 else np.nan
        inflation[fewer] = np.sqrt(len(sizes) / left) if left > 0 else np.nan
    return freedom, inflation


def _fit_levels(
    outcomes: Float[np.ndarray, " rows"], design: Design, grouped: pd.DataFrame, *, mixed: _Fit
) -> _Fit:
    """Phase 5: a regression in which each level of the first grouping is one observation."""
    import statsmodels.api as sm

    if grouped.empty:
        return _nothing(mixed.fitted)
    name = next(iter(grouped))
    codes = pd.factorize(grouped[name])[0]
    constant = _constant_within(design.fixed, codes)
    columns = [column for column, same in zip(_names(design), constant, strict=True) if same]
    firsts = np.unique(codes, return_index=True)[1]
    of_levels = design.fixed[firsts][:, constant]
    hits, sizes = np.bincount(codes, outcomes), np.bincount(codes)
    if len(firsts) <= len(columns):
        return _nothing(f"{len(firsts)} levels of {name} are too few; mixed model: {mixed.fitted}")
    # Two rows represent each level; their outcomes differ if both outcomes occur in the level.
    both = np.column_stack([hits > 0, hits == sizes]).astype(float).ravel()
    if _separated(np.repeat(of_levels, 2, axis=0), both):
        return _nothing(SEPARATES)
    family = sm.families.Binomial()
    fit = sm.GLM(np.column_stack([hits, sizes - hits]), of_levels, family=family).fit()
    # Compute Pearson's dispersion from counts; statsmodels would count a level as one observation.
    expected = sizes * fit.mu
    dispersion = ((hits - expected) ** 2 / (expected * (1 - fit.mu))).sum() / fit.df_resid
    numbers = {"estimate": fit.params, "se": fit.bse * np.sqrt(dispersion), "df": fit.df_resid}
    return _Fit(
        pd.DataFrame(numbers, index=columns, dtype=float),
        {},
        False,
        f"quasi-binomial regression over levels of {name}; mixed model: {mixed.fitted}",
        undefined=f"it varies within {name}, where hardly any level has two outcomes to compare",
    )


def _constant_within(
    columns: Float[np.ndarray, "rows columns"], codes: Int[np.ndarray, " rows"]
) -> Bool[np.ndarray, " columns"]:
    """Mask of the columns that are constant within each level."""
    firsts = np.unique(codes, return_index=True)[1]
    return np.asarray(np.abs(columns - columns[firsts][codes]).max(axis=0) < 1e-9)


def _terms(fit: _Fit, formula: MixedFormula) -> pd.DataFrame:
    """The coefficients with their tests; terms omitted from the design are undefined."""
    # The name without levels: "modality:x" for "modality[T.box]:x".
    terms = {name: re.sub(r"\[[^\]]*\]", "", name) for name in [INTERCEPT, *fit.estimates.index]}
    # A factor omitted from the design has no levels, so the factor itself is listed instead.
    terms |= {term: term for term in formula.fixed if term not in terms.values()}
    order = [INTERCEPT, *formula.fixed]
    names = sorted(terms, key=lambda name: order.index(terms[name]))
    table = fit.estimates.reindex(names).astype(float).rename_axis("term").reset_index()
    t, half = table["estimate"] / table["se"], stats.t.ppf(UPPER, table["df"]) * table["se"]
    table = table.assign(
        low=table["estimate"] - half,
        high=table["estimate"] + half,
        t=t,
        p=2 * stats.t.sf(t.abs(), table["df"]),
        odds_ratio=np.exp(table["estimate"]),
        note=np.select(
            [table["estimate"].isna(), table["df"].isna()],
            [f"undefined: {fit.undefined}", "no test: as many coefficients as levels"],
            "",
        ),
    )
    return table[list(TERM_COLUMNS)]
