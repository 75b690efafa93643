"""Variance explained by a mixed model (Nakagawa, Johnson and Schielzeth, 2017)."""

from dataclasses import dataclass

import numpy as np

from interp.analysis.mixed.linear import MixedModel


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
    conditional = (v_f + v_g) / (v_f + v_g + v_e). After the fallback, v_g is the variance of the
    groups' fixed effects, which v_f then leaves out. NaN if the response does not vary.
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
