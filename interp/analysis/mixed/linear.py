"""Linear mixed-effects models with one grouping: intercepts, and a slope, that vary by group.

    y = X beta + Z b + e,   b ~ normal(0, covariance) for each group,   e ~ normal(0, variance)

1. Write the fixed effects as a matrix X by a formula; Z is a column of ones, and the covariate
   whose slope varies (`mixed_design`).
2. Reduce the rows of each group to sums of products: nothing later grows with the number of rows.
3. Minimise the profiled deviance over the relative Cholesky factor of the random effects; given it,
   coefficients and variances have a closed form (`profiled`).
4. Read off estimates, their covariance and the most probable random effects.

The deviance is that of lme4's `lmer` (Bates et al., 2015, Journal of Statistical Software 67(1)),
and the tests hold the two together. Unlike statsmodels' `MixedLM` the search may end at a variance
of zero, where a model with few groups often belongs. With fewer than `MIN_GROUPS` groups their
spread cannot be estimated, and the groups become fixed effects.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.stats import chi2, norm

from interp.analysis.mixed.design import Design, MixedFormula, make_design
from interp.analysis.mixed.profiled import ProfiledFit, fit_profiled
from interp.errors import UserError

MIN_GROUPS = 3
"""With fewer groups, group intercepts are fixed effects."""


@dataclass(frozen=True)
class MixedModel:
    """A fitted model, and what it was fitted to."""

    formula: MixedFormula
    """As it was fitted: after the fallback the grouping is among the fixed effects."""
    design: Design
    fit: ProfiledFit
    groups: tuple[str, ...]
    """Values of the grouping, in the order of `fit.random_effects`."""
    note: str
    """Limits of this fit: a fallback, a variance of zero, rows left out."""

    @property
    def equation(self) -> str:
        """The formula as it was fitted: without random effects after the fallback."""
        if self.design.random_columns:
            return str(self.formula)
        return f"{self.formula.response} ~ {' + '.join(self.formula.fixed)}"

    @property
    def log_likelihood(self) -> float:
        """In nats; of the restricted likelihood unless fitted by maximum likelihood."""
        return -self.fit.deviance / 2

    def coefficients(self) -> pd.DataFrame:
        """One row per fixed coefficient: term, estimate, standard_error, z, p.

        Estimates are in units of the response; p is two-sided, of the normal approximation.
        """
        errors = np.sqrt(np.diag(self.fit.covariance))
        z = self.fit.coefficients / errors
        return pd.DataFrame(
            {
                "term": self.design.columns,
                "estimate": self.fit.coefficients,
                "standard_error": errors,
                "z": z,
                "p": 2 * norm.sf(np.abs(z)),
            }
        )

    def random_effects(self) -> pd.DataFrame:
        """One row per group: how its intercept and slope deviate from the fixed ones.

        No columns but the grouping after the fallback.
        """
        frame = pd.DataFrame(self.fit.random_effects, columns=list(self.design.random_columns))
        frame.insert(0, self.formula.group, list(self.groups))
        return frame

    def random_spread(self) -> pd.DataFrame:
        """One row per random effect, and one for the residual: effect, sd, correlation.

        `correlation` is that of the slope with the intercept; NaN for the others, and where one of
        the two does not vary.
        """
        covariance = self.fit.random_covariance
        sds = np.sqrt(np.diag(covariance))
        correlations = np.full(len(sds) + 1, np.nan)
        if len(sds) == 2 and sds.min() > 0:
            correlations[1] = covariance[0, 1] / (sds[0] * sds[1])
        return pd.DataFrame(
            {
                "effect": [*self.design.random_columns, "residual"],
                "sd": [*sds, np.sqrt(self.fit.residual_variance)],
                "correlation": correlations,
            }
        )


def fit_mixed_model(frame: pd.DataFrame, formula: MixedFormula, *, reml: bool = True) -> MixedModel:
    """The fitted model of a formula.

    With fewer than `MIN_GROUPS` groups: response ~ fixed + group, by least squares; `note` says so.

    Args:
        frame: one row per observation; rows that lack a value are left out, and counted in `note`.
        formula: response, fixed effects, grouping and slope.
        reml: restricted maximum likelihood, for unbiased variances; otherwise maximum likelihood,
            which models with different fixed effects can be compared by.

    Raises:
        UserError: a column that is missing, no rows, or terms that the rows cannot distinguish.
    """
    missing = [name for name in formula.columns if name not in frame.columns]
    if missing:
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
    codes = names.map({group: code for code, group in enumerate(groups)}).to_numpy()
    fit = fit_profiled(design.fixed, design.random, design.response, codes, reml=reml)
    notes = _notes(formula, fit, groups)
    if len(used) < len(frame):
        notes.append(f"{len(frame) - len(used):,} rows lack a value and were left out")
    if np.ptp(design.response) == 0:
        notes.append(f"{formula.response} does not vary, so nothing explains it")
    return MixedModel(formula, design, fit, groups, "; ".join(notes))


def likelihood_ratio_test(frame: pd.DataFrame, formula: MixedFormula, *, without: str) -> pd.Series:
    """Whether a fixed effect matters: term, chi_square, df, p and the note of the full model.

    Both models are fitted by maximum likelihood to the same rows; twice the difference of their
    log-likelihoods is compared with chi-square with as many degrees of freedom as the term has
    coefficients. NaN where the response does not vary.

    Raises:
        UserError: as `fit_mixed_model`, or a term that the formula does not have.
    """
    smaller = formula.without(without)
    used = frame.dropna(subset=[name for name in formula.columns if name in frame.columns])
    full = fit_mixed_model(used, formula, reml=False)
    null = fit_mixed_model(used, smaller, reml=False)
    chi_square = max(0.0, 2 * (full.log_likelihood - null.log_likelihood))
    if np.ptp(full.design.response) == 0:
        chi_square = float("nan")
    df = len(full.design.columns) - len(null.design.columns)
    return pd.Series(
        {
            "term": without,
            "chi_square": chi_square,
            "df": df,
            "p": float(chi2.sf(chi_square, df)),
            "note": full.note,
        }
    )


def _notes(formula: MixedFormula, fit: ProfiledFit, groups: Sequence[str]) -> list[str]:
    notes = []
    if len(groups) == 1:
        notes.append(f"one {formula.group} only: least squares, without random effects")
    elif len(groups) < MIN_GROUPS:
        notes.append(
            f"{len(groups)} {formula.group}s only: least squares, with {formula.group} as a fixed "
            "effect in place of random effects"
        )
    if fit.singular:
        notes.append("a random effect has a variance of zero or a correlation of 1 or -1")
    if not fit.converged:
        notes.append("the search for the random effects' variances did not converge")
    return notes
