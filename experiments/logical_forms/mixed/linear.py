"""Linear mixed-effects models with one grouping: intercepts, a slope and factors vary by group.

    y = X beta + Z b + e,   b ~ normal(0, covariance) for each group,   e ~ normal(0, variance)

X has the fixed effects, as a formula gives them; Z has a column of ones, the covariate whose slope
varies, and the levels of factors whose effects vary, which share one variance. The likelihood
(`likelihood`) is that of lme4's `lmer` (Bates et al., 2015, Journal of Statistical Software 67(1)).
statsmodels' `MixedLM` has the same, but cannot end at a variance of zero, which is often right for
a model with few groups; for formula 4 its search ended 8.5 nats below the maximum, and finds it
only from several starts with and without each effect, in 15 times the time. With fewer than
`MIN_GROUPS` groups, the spread between groups cannot be estimated, so groups become fixed effects.

For statements about groups in general, the number of observations is the number of groups, not of
rows, so estimates are tested by Student's t with one degree of freedom fewer than there are groups.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from patsy import DesignInfo, dmatrix
from scipy.linalg import block_diag
from scipy.special import stdtrit
from scipy.stats import chi2, f, t

from interp import UserError
from interp.extend.statistics import FEWEST, ONE_SIDED, UPPER
from interp_experiments.logical_forms.mixed.likelihood import Likelihood

MIN_GROUPS = 3
"""Smallest number of groups for random effects: the spread of two groups has one degree of freedom,
so a 95% interval by Student's t extends 12.7 standard errors to either side."""


@dataclass(frozen=True)
class MixedFormula:
    """The model response ~ fixed + (1 + slope | group) + (1 | factor:group) per varying factor."""

    response: str
    fixed: tuple[str, ...]
    """Terms of the fixed effects, such as "modality", "perplexity", "a:b". Text columns are factors
    with their first category as the reference."""
    group: str
    slope: str | None = None
    """Covariate whose slope varies by group; if None, only intercepts vary."""
    varying: tuple[str, ...] = ()
    """Factors whose effects vary by group: each level has a deviation in each group, with one
    variance per factor. Tests of other factors do not generalize to groups that were not measured
    (Barr et al., 2013, Journal of Memory and Language 68)."""

    def __str__(self) -> str:
        random = "1" if self.slope is None else f"1 + {self.slope}"
        terms = [f"({random} | {self.group})", *(f"(1 | {f}:{self.group})" for f in self.varying)]
        return f"{self.response} ~ {self.equation} + {' + '.join(terms)}"

    @property
    def equation(self) -> str:
        """The fixed effects as the right-hand side of a formula."""
        return " + ".join(self.fixed) or "1"

    @property
    def variables(self) -> list[str]:
        """Columns of the fixed effects."""
        return list(dict.fromkeys(part for term in self.fixed for part in term.split(":")))

    @property
    def columns(self) -> list[str]:
        """All columns that the model uses."""
        named = [self.response, *self.variables, self.group, self.slope, *self.varying]
        return list(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True)
class Design:
    """The response and the fixed effects of each row."""

    response: Float[np.ndarray, " rows"]
    fixed: Float[np.ndarray, "rows columns"]
    info: DesignInfo
    """How rows are encoded."""
    levels: Mapping[str, list[str]]
    """The levels of each factor among the terms, with the reference first."""
    means: Mapping[str, float]
    """The mean of each covariate among the terms."""

    @classmethod
    def of(cls, frame: pd.DataFrame, formula: MixedFormula) -> "Design":
        """The design of a formula (UserError as in `fit_mixed_model`)."""
        if frame.empty:
            raise UserError(f"no row has a value in every column of {formula}")
        variables = formula.variables
        numeric = [name for name in variables if pd.api.types.is_numeric_dtype(frame[name])]
        factors = {name: _as_factor(frame[name]) for name in variables if name not in numeric}
        levels = {name: list(column.cat.categories) for name, column in factors.items()}
        for name, values in levels.items():
            if len(values) == 1:
                raise UserError(f"{name} is {values[0]} in every row; remove it from {formula}")
        matrix = dmatrix(formula.equation, frame.assign(**factors))
        fixed, columns = np.asarray(matrix, dtype=float), matrix.design_info.column_names
        scales = np.abs(fixed).max(axis=0)
        rank = np.linalg.matrix_rank(fixed / np.where(scales > 0, scales, 1))
        if rank < len(columns):
            raise UserError(
                f"the rows can distinguish only {rank} of the {len(columns)} coefficients "
                f"({', '.join(columns)}); remove a term, or add rows for the missing combinations"
            )
        response = frame[formula.response].to_numpy(dtype=float)
        means = {name: float(frame[name].mean()) for name in numeric}
        return cls(response, fixed, matrix.design_info, levels, means)

    @property
    def constant(self) -> bool:
        """Whether the response does not vary, so that no term can explain it."""
        return bool(np.ptp(self.response) == 0)


def _as_factor(column: pd.Series) -> pd.Series:
    """The column with the levels that occur: in a factor's own order, otherwise sorted."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(str).astype("category")
    return column.cat.remove_unused_categories()


@dataclass(frozen=True)
class MixedModel(Design):
    """A fitted model; without random effects, its tables have none."""

    formula: MixedFormula
    """The formula as fitted; in the fallback, the grouping is a fixed effect."""
    groups: tuple[str, ...]
    """Values of the grouping, in order of appearance."""
    estimates: Float[np.ndarray, " columns"]
    """The fixed coefficients."""
    covariance: Float[np.ndarray, "columns columns"]
    """Covariance of the coefficients."""
    log_likelihood: float
    """In nats; restricted if the model was fitted so."""
    residual_variance: float
    random_variance: float
    """What the random effects add to the variance of a row, on average."""
    random_spread: pd.DataFrame
    """effect, sd and correlation of each random effect, varying factor, and the residual; the
    correlation is that of the slope with the intercept, NaN for others and without variation."""
    random_effects: pd.DataFrame
    """Conditional modes (BLUPs), one row per group: the group, and how its intercept, slope and
    levels, such as "modality[box]", deviate from the fixed effects."""
    note: str
    """Limitations of this fit: a fallback, a variance of zero, omitted rows."""
    clusters: int | None = None
    """Number of clusters, if the fallback's standard errors are cluster-robust; otherwise None."""

    @property
    def random(self) -> bool:
        """Whether effects vary by group; not in the fallback."""
        return len(self.groups) >= MIN_GROUPS

    @property
    def equation(self) -> str:
        """The formula as fitted; the fallback has no random effects."""
        if self.random:
            return str(self.formula)
        return f"{self.formula.response} ~ {self.formula.equation}"

    @property
    def freedom(self) -> int:
        """Of the tests: groups - 1; in the fallback clusters - 1, or rows - coefficients."""
        if self.random:
            return len(self.groups) - 1
        rows, columns = self.fixed.shape
        return rows - columns if self.clusters is None else self.clusters - 1

    def coefficients(self) -> pd.DataFrame:
        """One row per fixed coefficient: term, estimate, standard_error, t, df, p (two-sided)."""
        errors = np.sqrt(np.diag(self.covariance))
        tests = student_tests(self.estimates, errors, self.freedom)
        table = pd.DataFrame({"term": self.info.column_names, "estimate": self.estimates})
        return table.join(tests[["standard_error", "t", "df", "p"]])


def student_tests(
    estimates: Float[np.ndarray, " n"], errors: Float[np.ndarray, " n"], df: int
) -> pd.DataFrame:
    """Student's 95% interval (low, high) and two-sided test (p, standard_error, t, df) of each.

    One-sided tests exclude values below excluded_below and above excluded_above
    (`interp.statistics.decisions`).
    """
    statistic = estimates / errors
    half, limit = (float(stdtrit(df, level)) * errors for level in (UPPER, ONE_SIDED))
    return pd.DataFrame(
        {
            "low": estimates - half,
            "high": estimates + half,
            "p": 2 * t.sf(np.abs(statistic), df),
            "standard_error": errors,
            "t": statistic,
            "df": df,
            "excluded_below": estimates - limit,
            "excluded_above": estimates + limit,
        }
    )


def fit_mixed_model(
    frame: pd.DataFrame, formula: MixedFormula, *, reml: bool = True, cluster: str | None = None
) -> MixedModel:
    """Fit the model of a formula to one row per observation; rows that lack a value are omitted.

    The likelihood is restricted for unbiased variances, unless `reml` is False, for comparing
    models with different fixed effects. With fewer than `MIN_GROUPS` groups, the model is
    response ~ fixed + group by least squares. If `cluster` is the column of a property, other than
    the group, that dependent rows share, the errors are then cluster-robust (Liang and Zeger, 1986,
    with the correction of Cameron and Miller, 2015); with fewer than `FEWEST` clusters there are no
    errors and no tests, since errors for independent rows would be too small.

    Raises:
        UserError: there are no rows, or the rows cannot distinguish the terms.
    """
    used = frame.dropna(subset=formula.columns)
    groups = tuple(dict.fromkeys(used[formula.group].astype(str)))
    few = len(groups) < MIN_GROUPS
    if few and len(groups) > 1:
        formula = replace(formula, fixed=(*formula.fixed, formula.group))
    design = Design.of(used, formula)
    fitted = _fitted(design, formula, used, random=not few, reml=reml)
    if few and cluster is not None:
        fitted |= _robust(design, fitted["estimates"], used[cluster])
    notes = {
        f"only one {formula.group}: least squares without random effects": len(groups) == 1,
        f"only {len(groups)} {formula.group}s: least squares with {formula.group} as a fixed effect"
        " instead of random effects": few and len(groups) > 1,
        f"{len(frame) - len(used):,} rows without all values were omitted": len(used) < len(frame),
        f"{formula.response} does not vary, so no term can explain it": design.constant,
        fitted["note"]: bool(fitted["note"]),
    }
    fitted["note"] = "; ".join(note for note, holds in notes.items() if holds)
    return MixedModel(**vars(design), formula=formula, groups=groups, **fitted)


def _fitted(
    design: Design, formula: MixedFormula, used: pd.DataFrame, *, random: bool, reml: bool
) -> dict[str, Any]:
    """The estimates and a note, with or without random effects; units do not change the search."""
    names, z, change, blocks = _random_columns(formula, used, random=random)
    scales = np.sqrt((design.fixed**2).mean(axis=0))
    x, (codes, groups) = design.fixed / scales, pd.factorize(used[formula.group].astype(str))
    least = np.linalg.lstsq(x, design.response, rcond=None)[0]
    likelihood = Likelihood.of(x, z, design.response - x @ least, codes, reml=reml)
    factor, converged = likelihood.search(len(names) - sum(blocks), blocks)
    best, root = likelihood.profile(factor), change @ factor
    modes = pd.DataFrame(likelihood.modes(factor, best.coefficients) @ change.T, columns=names)
    flat = bool((np.abs(np.diag(factor)) < 1e-4).any())  # relative to the residual
    notes = {
        "a random effect has a variance of zero or a correlation of 1 or -1": flat,
        "the search for the variances of the random effects did not converge": not converged,
    }
    return {
        "estimates": (least + best.coefficients) / scales,
        "covariance": best.variance * np.linalg.inv(best.precision) / np.outer(scales, scales),
        # The restricted likelihood depends on the units of the columns.
        "log_likelihood": best.log_likelihood - float(np.log(scales).sum()) * reml,
        "residual_variance": best.variance,
        "random_variance": best.variance * float(((z @ factor) ** 2).sum(axis=1).mean()),
        "random_spread": _spread(formula, names, best.variance, root, blocks),
        "random_effects": pd.DataFrame({formula.group: groups}).join(modes),
        "note": "; ".join(note for note, holds in notes.items() if holds),
    }


def _robust(
    design: Design, estimates: Float[np.ndarray, " columns"], clusters: pd.Series
) -> dict[str, Any]:
    """The coefficients' covariance if rows within a cluster are correlated, clusters and a note."""
    codes, names = pd.factorize(clusters)
    count, (rows, columns) = len(names), design.fixed.shape
    if count < FEWEST:
        note = f"no test: fewer than {FEWEST} clusters of {clusters.name}"
        return {"covariance": np.full((columns,) * 2, np.nan), "clusters": count, "note": note}
    scores = np.zeros((count, columns))
    residuals = design.response - design.fixed @ estimates
    np.add.at(scores, codes, design.fixed * residuals[:, None])
    bread = np.linalg.inv(design.fixed.T @ design.fixed)
    correction = count / (count - 1) * (rows - 1) / (rows - columns)
    covariance = correction * bread @ scores.T @ scores @ bread
    note = f"errors robust to {count} clusters of {clusters.name}"
    return {"covariance": covariance, "clusters": count, "note": note}


def _random_columns(
    formula: MixedFormula, used: pd.DataFrame, *, random: bool
) -> tuple[
    list[str], Float[np.ndarray, "rows effects"], Float[np.ndarray, "effects effects"], list[int]
]:
    """Names and standardized columns of the random effects, their change of unit, and levels."""
    if not random:
        return [], np.zeros((len(used), 0)), np.eye(0), []
    names, columns, change = ["intercept"], [np.ones(len(used))], np.eye(1)
    if formula.slope is not None:
        covariate = used[formula.slope].to_numpy(dtype=float)
        center, unit = float(covariate.mean()), float(covariate.std()) or 1.0
        names, columns = [*names, formula.slope], [*columns, (covariate - center) / unit]
        change = np.array([[1.0, -center / unit], [0.0, 1 / unit]])
    levels = [pd.get_dummies(_as_factor(used[name]), dtype=float) for name in formula.varying]
    blocks = [factor.shape[1] for factor in levels]
    for name, dummies in zip(formula.varying, levels, strict=True):
        names += [f"{name}[{level}]" for level in dummies]
    z = np.column_stack([*columns, *(factor.to_numpy() for factor in levels)])
    return names, z, block_diag(change, np.eye(sum(blocks))), blocks


def _spread(
    formula: MixedFormula,
    names: list[str],
    variance: float,
    root: Float[np.ndarray, "effects effects"],
    blocks: list[int],
) -> pd.DataFrame:
    """`MixedModel.random_spread`; the levels of a factor share one variance."""
    single, covariance = len(names) - sum(blocks), variance * root @ root.T
    places = np.r_[0:single, np.cumsum([single, *blocks])[:-1]]
    sds = np.sqrt([*np.diag(covariance)[places], variance])
    correlations = np.full(len(sds), np.nan)
    if single == 2 and sds[:2].min() > 0:
        correlations[1] = covariance[0, 1] / (sds[0] * sds[1])
    effects = [*names[:single], *formula.varying[: len(blocks)], "residual"]
    return pd.DataFrame({"effect": effects, "sd": sds, "correlation": correlations})


def likelihood_ratio_test(frame: pd.DataFrame, formula: MixedFormula, *, without: str) -> pd.Series:
    """Whether a fixed effect matters: term, chi_square, df, p and the note of the full model.

    Both models are fitted by maximum likelihood to the same rows; chi_square is twice the
    difference between their log-likelihoods; NaN if the response does not vary.

    Raises:
        UserError: as in `fit_mixed_model`.
    """
    smaller = replace(formula, fixed=tuple(term for term in formula.fixed if term != without))
    used = frame.dropna(subset=formula.columns)
    full, null = (fit_mixed_model(used, one, reml=False) for one in (formula, smaller))
    gained = max(0.0, 2 * (full.log_likelihood - null.log_likelihood))
    chi_square = float("nan") if full.constant else gained
    df = len(full.estimates) - len(null.estimates)
    test = {"chi_square": chi_square, "df": df, "p": float(chi2.sf(chi_square, df))}
    return pd.Series({"term": without, **test, "note": full.note})


def wald_test(model: MixedModel, term: str) -> pd.Series:
    """Whether a fixed effect matters: term, F, df1, df2 and p, by Wald's F test.

    df2 is groups - 1, so the degrees of freedom of an effect that differs between groups depend on
    their number; the test is conservative for a factor of several levels. Errors robust to G
    clusters are themselves estimates: with q coefficients, the statistic is Hotelling's times
    (G - q) / (G - 1), and df2 is G - q (Pustejovsky and Tipton, 2018, Journal of Business &
    Economic Statistics 36). NaN if the response does not vary, or with no more clusters than
    coefficients.
    """
    chosen = model.info.slice(term)
    estimates, covariance = model.estimates[chosen], model.covariance[chosen, chosen]
    df1 = len(estimates)
    df2 = model.freedom if model.clusters is None else model.clusters - df1
    statistic = p = np.nan
    if not model.constant and df2 > 0:
        statistic = float(estimates @ np.linalg.solve(covariance, estimates)) / df1
        if model.clusters is not None:
            statistic *= df2 / model.freedom
        p = float(f.sf(statistic, df1, df2))
    return pd.Series({"term": term, "F": statistic, "df1": df1, "df2": df2, "p": p})


def r_squared(model: MixedModel) -> tuple[float, float]:
    """Shares of the response's variance: explained by the fixed effects, and also by the groups.

    With v_f = Var(X beta) over the rows, v_g = mean of z' covariance z over the rows (Johnson,
    2014, for random slopes; in the fallback, the variance of the groups' fixed effects) and v_e the
    residual variance: v_f / (v_f + v_g + v_e) and (v_f + v_g) / (v_f + v_g + v_e). NaN if the
    response does not vary.
    """
    if model.constant:
        return float("nan"), float("nan")
    of_terms = model.estimates.copy()
    if model.formula.group in model.formula.fixed:
        of_terms[model.info.slice(model.formula.group)] = 0.0
    by_terms = float(np.var(model.fixed @ of_terms))
    by_group = float(np.var(model.fixed @ (model.estimates - of_terms))) + model.random_variance
    total = by_terms + by_group + model.residual_variance
    return by_terms / total, (by_terms + by_group) / total
