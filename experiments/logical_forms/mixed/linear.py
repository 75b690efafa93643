"""Linear mixed-effects models with one grouping: intercepts, a slope and factors vary by group.

    y = X beta + Z b + e,   b ~ normal(0, covariance) for each group,   e ~ normal(0, variance)

1. Write the fixed effects as a matrix X by a formula; Z is a column of ones, the covariate whose
   slope varies, and the levels of factors whose effects vary (`design`).
2. Reduce each group to sums of products, so later costs do not grow with the number of rows.
3. Minimize the profiled deviance over the relative Cholesky factor of the random effects; given
   this factor, coefficients and variances have a closed form (`profiled`).
4. Compute the estimates, their covariance and the most probable random effects.

The deviance is that of lme4's `lmer` (Bates et al., 2015, Journal of Statistical Software 67(1));
this project's tests compare the two. Unlike the search in statsmodels' `MixedLM`, this search may
end at a variance of zero, which is often right for a model with few groups. With fewer than
`MIN_GROUPS` groups, the spread between groups cannot be estimated, so groups become fixed effects.

For statements about groups in general, the number of observations is the number of groups, not of
rows, so estimates are tested by Student's t with one degree of freedom fewer than there are groups.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.stats import chi2, f, t

from interp.errors import UserError
from interp.statistics.clusters import FEWEST
from interp_experiments.logical_forms.mixed.design import MixedFormula, ModelMatrices, make_design
from interp_experiments.logical_forms.mixed.profiled import ProfiledFit, fit_profiled

MIN_GROUPS = 3
"""Smallest number of groups for random effects. With fewer groups, the groups' intercepts are fixed
effects, because the spread of two groups has one degree of freedom, so a 95% interval by Student's
t extends 12.7 standard errors to either side.
"""


@dataclass(frozen=True)
class MixedModel:
    """A fitted model, with its groups and formula."""

    formula: MixedFormula
    """The formula as fitted; in the fallback, the grouping is a fixed effect."""
    design: ModelMatrices
    fit: ProfiledFit
    groups: tuple[str, ...]
    """Values of the grouping, in the order of `fit.random_effects`."""
    note: str
    """Limitations of this fit: a fallback, a variance of zero, omitted rows."""
    clusters: int | None = None
    """Number of clusters, if the fallback's standard errors are cluster-robust; otherwise None."""

    @property
    def equation(self) -> str:
        """The formula as fitted; the fallback has no random effects."""
        if self.design.random_columns:
            return str(self.formula)
        return f"{self.formula.response} ~ {self.formula.equation}"

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the tests.

        They are groups - 1, or clusters - 1 in the fallback. Without groups or clusters, they are
        rows - coefficients.
        """
        if self.design.random_columns:
            return len(self.groups) - 1
        if self.clusters is not None:
            return self.clusters - 1
        return len(self.design.response) - len(self.design.columns)

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood in nats; restricted unless fitted by maximum likelihood."""
        return -self.fit.deviance / 2

    def coefficients(self) -> pd.DataFrame:
        """One row per fixed coefficient: term, estimate, standard_error, t, df, p.

        Estimates are in units of the response; p is two-sided, by Student's t with `freedom`
        degrees of freedom.
        """
        errors = np.sqrt(np.diag(self.fit.covariance))
        statistic = self.fit.coefficients / errors
        return pd.DataFrame(
            {
                "term": self.design.columns,
                "estimate": self.fit.coefficients,
                "standard_error": errors,
                "t": statistic,
                "df": self.freedom,
                "p": 2 * t.sf(np.abs(statistic), self.freedom),
            }
        )

    def random_effects(self) -> pd.DataFrame:
        """One row per group: how its intercept, slope and levels deviate from the fixed effects.

        In the fallback, the only column is the grouping.
        """
        frame = pd.DataFrame(self.fit.random_effects, columns=list(self.design.random_columns))
        frame.insert(0, self.formula.group, list(self.groups))
        return frame

    def random_spread(self) -> pd.DataFrame:
        """One row per random effect or varying factor, and one for the residual.

        Columns are effect, sd and correlation. The correlation is that of the slope with the
        intercept. It is NaN for other effects, and if the slope or the intercept does not vary.
        """
        covariance, blocks = self.fit.random_covariance, self.design.blocks
        sds = np.sqrt(np.diag(covariance))
        alone = len(sds) - sum(blocks)
        # The levels of a block share one variance.
        firsts = [alone + sum(blocks[:place]) for place in range(len(blocks))]
        factors = self.formula.varying if blocks else ()
        shown = [*sds[:alone], *sds[firsts], np.sqrt(self.fit.residual_variance)]
        correlations = np.full(len(shown), np.nan)
        if alone == 2 and sds[:2].min() > 0:
            correlations[1] = covariance[0, 1] / (sds[0] * sds[1])
        return pd.DataFrame(
            {
                "effect": [*self.design.random_columns[:alone], *factors, "residual"],
                "sd": shown,
                "correlation": correlations,
            }
        )


def fit_mixed_model(
    frame: pd.DataFrame,
    formula: MixedFormula,
    *,
    reml: bool = True,
    cluster: str | None = None,
) -> MixedModel:
    """Fit the model of a formula.

    With fewer than `MIN_GROUPS` groups, the model is response ~ fixed + group by least squares, and
    `note` says so. If a column of clusters is given, the errors are then cluster-robust
    (Liang and Zeger, 1986, with the correction of Cameron and Miller, 2015); with fewer than
    `FEWEST` clusters there are no errors and no tests, since errors for independent rows would be
    too small.

    Args:
        frame: one row per observation; rows that lack a value are omitted, and counted in `note`.
        formula: response, fixed effects, grouping and slope.
        reml: restricted maximum likelihood, for unbiased variances; otherwise maximum likelihood,
            which can compare models with different fixed effects.
        cluster: column of a property, other than the group, that dependent rows share, such as the
            words of a question.

    Raises:
        UserError: a column is missing, there are no rows, or the rows cannot distinguish the
            terms.
    """
    if missing := [name for name in formula.columns if name not in frame.columns]:
        raise UserError(
            f"the table lacks {', '.join(missing)} for {formula}; it has "
            f"{', '.join(map(str, frame.columns))}"
        )
    used = frame.dropna(subset=formula.columns)
    names = used[formula.group].astype(str)
    groups = tuple(dict.fromkeys(names))
    random = len(groups) >= MIN_GROUPS
    if len(groups) > 1 and not random:
        formula = replace(formula, fixed=(*formula.fixed, formula.group))
    design = make_design(used, formula, random=random)
    codes = pd.factorize(names)[0]
    fit = fit_profiled(
        design.fixed, design.random, design.response, codes, reml=reml, blocks=design.blocks
    )
    notes = _notes(formula, fit, len(groups))
    if len(used) < len(frame):
        notes.append(f"{len(frame) - len(used):,} rows without all values were omitted")
    if np.ptp(design.response) == 0:
        notes.append(f"{formula.response} does not vary, so no term can explain it")
    clusters = None
    if not random and cluster is not None:
        clusters = int(used[cluster].nunique())
        if clusters >= FEWEST:
            covariance = _robust(design, fit, pd.factorize(used[cluster])[0])
            notes.append(f"errors robust to {clusters} clusters of {cluster}")
        else:
            covariance = np.full_like(fit.covariance, np.nan)
            notes.append(f"no test: fewer than {FEWEST} clusters of {cluster}")
        fit = replace(fit, covariance=covariance)
    return MixedModel(formula, design, fit, groups, "; ".join(notes), clusters)


def _robust(
    design: ModelMatrices, fit: ProfiledFit, clusters: Int[np.ndarray, " rows"]
) -> Float[np.ndarray, "columns columns"]:
    """The covariance of the coefficients if rows within a cluster are correlated."""
    residuals = design.response - design.fixed @ fit.coefficients
    rows, columns = design.fixed.shape
    count = int(clusters.max()) + 1
    scores = np.zeros((count, columns))
    np.add.at(scores, clusters, design.fixed * residuals[:, None])
    bread = np.linalg.inv(design.fixed.T @ design.fixed)
    correction = count / (count - 1) * (rows - 1) / (rows - columns)
    return np.asarray(correction * bread @ scores.T @ scores @ bread)


def likelihood_ratio_test(frame: pd.DataFrame, formula: MixedFormula, *, without: str) -> pd.Series:
    """Whether a fixed effect matters: term, chi_square, df, p and the note of the full model.

    Both models are fitted by maximum likelihood to the same rows; chi_square is twice the
    difference between their log-likelihoods, and df is the number of the term's coefficients. NaN
    if the response does not vary.

    Raises:
        UserError: as in `fit_mixed_model`, or the formula lacks the term.
    """
    smaller = formula.without(without)
    used = frame.dropna(subset=[name for name in formula.columns if name in frame.columns])
    full = fit_mixed_model(used, formula, reml=False)
    null = fit_mixed_model(used, smaller, reml=False)
    chi_square = max(0.0, 2 * (full.log_likelihood - null.log_likelihood))
    if np.ptp(full.design.response) == 0:
        chi_square = float("nan")
    df = len(full.design.columns) - len(null.design.columns)
    p = float(chi2.sf(chi_square, df))
    return pd.Series(
        {"term": without, "chi_square": chi_square, "df": df, "p": p, "note": full.note}
    )


def wald_test(model: MixedModel, term: str) -> pd.Series:
    """Whether a fixed effect matters: term, F, df1, df2 and p, by Wald's F test.

    df2 is groups - 1, so the degrees of freedom of an effect that differs between groups depend on
    the number of groups. For a factor with more than two levels, the test is conservative. Errors
    robust to G clusters are themselves estimates. With q coefficients, the statistic is therefore
    Hotelling's times (G - q) / (G - 1), and df2 is G - q (Pustejovsky and Tipton, 2018, Journal of
    Business & Economic Statistics 36, explain why the plain test rejects too often). NaN if the
    response does not vary, or if there are no more clusters than coefficients.

    Raises:
        UserError: the formula lacks the term.
    """
    chosen = model.design.columns_of(term)
    if not chosen.any():
        raise UserError(f"{model.formula} has no fixed effect {term!r}")
    estimates = model.fit.coefficients[chosen]
    covariance = model.fit.covariance[np.ix_(chosen, chosen)]
    df1 = int(chosen.sum())
    df2 = model.freedom if model.clusters is None else model.clusters - df1
    statistic = p = np.nan
    if np.ptp(model.design.response) > 0 and df2 > 0:
        statistic = float(estimates @ np.linalg.solve(covariance, estimates)) / df1
        if model.clusters is not None:
            statistic *= df2 / model.freedom
        p = float(f.sf(statistic, df1, df2))
    return pd.Series({"term": term, "F": statistic, "df1": df1, "df2": df2, "p": p})


def _notes(formula: MixedFormula, fit: ProfiledFit, groups: int) -> list[str]:
    few = (
        f"only one {formula.group}: least squares without random effects"
        if groups == 1
        else f"only {groups} {formula.group}s: least squares with {formula.group} as a fixed "
        "effect instead of random effects"
    )
    notes = {
        few: groups < MIN_GROUPS,
        "a random effect has a variance of zero or a correlation of 1 or -1": fit.singular,
        "the search for the variances of the random effects did not converge": not fit.converged,
    }
    return [note for note, holds in notes.items() if holds]


@dataclass(frozen=True)
class RSquared:
    """Shares of the variance of the response, from 0 to 1."""

    marginal: float
    """Explained by the fixed effects."""
    conditional: float
    """Explained by the fixed effects and the groups."""


def r_squared(model: MixedModel) -> RSquared:
    """Marginal and conditional R squared of a linear mixed model.

    With v_f = Var(X beta) over the rows, v_g = mean of z' covariance z over the rows (Johnson,
    2014, for random slopes) and v_e the residual variance: marginal = v_f / (v_f + v_g + v_e),
    conditional = (v_f + v_g) / (v_f + v_g + v_e). In the fallback, v_g is the variance of the
    groups' fixed effects, which v_f excludes. NaN if the response does not vary.
    """
    design, fit = model.design, model.fit
    if np.ptp(design.response) == 0:
        return RSquared(float("nan"), float("nan"))
    of_group = design.columns_of(model.formula.group)
    by_terms = float(np.var(design.fixed @ np.where(of_group, 0.0, fit.coefficients)))
    by_group = float(np.var(design.fixed @ np.where(of_group, fit.coefficients, 0.0)))
    random = ((design.random @ fit.random_covariance) * design.random).sum(axis=1)
    by_group += float(random.mean())
    total = by_terms + by_group + fit.residual_variance
    return RSquared(by_terms / total, (by_terms + by_group) / total)
