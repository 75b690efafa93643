"""Logistic regression with crossed random intercepts, by the Laplace approximation.

    logit P(y = 1) = X beta + sum over groupings g of sigma_g u_g[level],   u ~ normal(0, 1)

1. For given beta and sigma, find the most probable u by Newton steps.
2. Integrate u out around that point (Laplace), with the exact gradient in beta and sigma.
3. Maximize that likelihood over beta and sigma.
4. Compute the standard errors from its curvature at the maximum.

The likelihood is that of lme4's `glmer(family = binomial, nAGQ = 1)` (Bates et al., 2015, Journal
of Statistical Software 67(1)); this project's tests compare the two. The likelihood is an even
function of each sigma, so sigma needs no lower bound at zero. The gradient in a sigma of zero is
zero, and the curvature shows whether the point is a maximum.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import expit

MAX_MODE_STEPS = 100
MODE_TOLERANCE = 1e-10
"""The search for the mode ends at a Newton step below this many standard deviations of u."""

SEARCH_TOLERANCE = 1e-6
"""Largest gradient, in nats per row, at which Newton's method takes over from BFGS."""

MAX_REFINEMENTS = 10
DECREMENT_TOLERANCE = 1e-8
"""The log-likelihood is maximal if another Newton step is expected to add fewer nats than this."""

DIFFERENCE = 1e-4
"""Step of the parameters for computing the curvature by finite differences of the gradient."""


@dataclass(frozen=True)
class LaplaceFit:
    """Maximum of the approximate likelihood, or the last point if the search did not converge."""

    coefficients: Float[np.ndarray, " terms"]
    """Log-odds per unit of each column of the design."""
    standard_errors: Float[np.ndarray, " terms"]
    sds: Float[np.ndarray, " groupings"]
    """Standard deviations of the random intercepts, in log-odds."""
    log_likelihood: float
    """Log-likelihood in nats."""
    converged: bool


def fit_laplace(
    design: Float[np.ndarray, "rows terms"],
    outcomes: Float[np.ndarray, " rows"],
    levels: Int[np.ndarray, "rows groupings"],
) -> LaplaceFit:
    """The mixed logistic model that makes the outcomes most probable.

    Args:
        design: fixed effects, with a column of ones for the intercept and columns of about unit
            scale.
        outcomes: 0 or 1.
        levels: the level of each row in each grouping, counted from 0; without columns, the model
            is an ordinary logistic regression.

    Returns:
        The fit. It has not converged if the likelihood has no well-defined maximum, for instance
        because predictors separate the outcomes.
    """
    likelihood = _Likelihood(design, outcomes, levels)
    terms, groupings = design.shape[1], levels.shape[1]
    start = np.concatenate([np.zeros(terms), np.ones(groupings)])
    options = {"gtol": SEARCH_TOLERANCE * len(outcomes)}
    rough = minimize(likelihood, start, jac=True, method="BFGS", options=options).x
    point, covariance = _refine(likelihood, rough)
    variances = np.full(len(point), np.nan) if covariance is None else np.diag(covariance)
    return LaplaceFit(
        coefficients=point[:terms],
        standard_errors=np.sqrt(variances[:terms]),
        sds=np.abs(point[terms:]),
        log_likelihood=-float(likelihood(point)[0]),
        converged=covariance is not None,
    )


def _refine(
    likelihood: "_Likelihood", point: Float[np.ndarray, " parameters"]
) -> tuple[Float[np.ndarray, " parameters"], Float[np.ndarray, "parameters parameters"] | None]:
    """Phases 3 and 4: the point reached by Newton steps, and its covariance if it is a maximum."""
    for _ in range(MAX_REFINEMENTS):
        gradient = likelihood(point)[1]
        covariance = _inverse(likelihood.curvature(point))
        if covariance is None or gradient @ covariance @ gradient / 2 < DECREMENT_TOLERANCE:
            return point, covariance
        point = _newton_step(likelihood, point, covariance @ gradient)
    return point, None


def _newton_step(
    likelihood: "_Likelihood",
    point: Float[np.ndarray, " parameters"],
    step: Float[np.ndarray, " parameters"],
) -> Float[np.ndarray, " parameters"]:
    """The point after the step, which is halved until the loss decreases."""
    value = likelihood(point)[0]
    for _ in range(20):
        if likelihood(point - step)[0] <= value:
            return np.asarray(point - step)
        step = step / 2
    return point


def _inverse(
    matrix: Float[np.ndarray, "parameters parameters"],
) -> Float[np.ndarray, "parameters parameters"] | None:
    """The inverse; None if the matrix is not (numerically) positive definite."""
    values, vectors = np.linalg.eigh(matrix)
    if not values.min() > values.max() * 1e-12:
        return None
    return np.asarray((vectors / values) @ vectors.T)


class _Likelihood:
    """Negative Laplace log-likelihood as a function of (beta, sigma), with its gradient.

    Each search for a mode starts from the mode at the previous point, because successive points are
    close to each other, and the loss has a single minimum.
    """

    def __init__(
        self,
        design: Float[np.ndarray, "rows terms"],
        outcomes: Float[np.ndarray, " rows"],
        levels: Int[np.ndarray, "rows groupings"],
    ) -> None:
        self.design, self.outcomes = design, outcomes
        self.sizes = np.asarray(levels.max(axis=0, initial=-1) + 1)
        """Number of levels of each grouping, (groupings,)."""
        self.grouping = np.repeat(np.arange(len(self.sizes)), self.sizes)
        """The grouping of each level, with levels numbered across all groupings."""
        self.members = np.asarray(levels + np.cumsum(self.sizes) - self.sizes)
        """The levels of each row, numbered across all groupings, (rows, groupings)."""
        pairs = self.members[:, :, None] * len(self.grouping) + self.members[:, None, :]
        self._cells = pairs.ravel()
        """The indices of each row's pairs of levels in a flattened levels-by-levels matrix."""
        self._last_mode = np.zeros(len(self.grouping))

    def __call__(
        self, point: Float[np.ndarray, " parameters"]
    ) -> tuple[float, Float[np.ndarray, " parameters"]]:
        """Negative log-likelihood in nats, and its gradient."""
        beta, sigma = np.split(point, [self.design.shape[1]])
        scale = sigma[self.grouping]
        u = self._mode(self.design @ beta, scale)
        log_odds = self.design @ beta + self._per_row(scale * u)
        p = expit(log_odds)
        gram = self._cross_products(p * (1 - p))
        factor = self._factor(gram, scale)
        value = _loss(log_odds, self.outcomes) + u @ u / 2 + np.log(np.diag(factor[0])).sum()
        return float(value), self._gradient(p, u, scale=scale, gram=gram, factor=factor)

    def curvature(
        self, point: Float[np.ndarray, " parameters"]
    ) -> Float[np.ndarray, "parameters parameters"]:
        """Second derivatives, by central differences of the gradient."""
        columns = [
            (self(point + step)[1] - self(point - step)[1]) / (2 * DIFFERENCE)
            for step in np.eye(len(point)) * DIFFERENCE
        ]
        return np.asarray(columns + np.transpose(columns)) / 2

    def _mode(
        self, fixed: Float[np.ndarray, " rows"], scale: Float[np.ndarray, " levels"]
    ) -> Float[np.ndarray, " levels"]:
        """Phase 1: the most probable u, by Newton steps, each halved until it improves the fit."""

        def loss(u: Float[np.ndarray, " levels"]) -> float:
            return _loss(fixed + self._per_row(scale * u), self.outcomes) + float(u @ u) / 2

        u = min(np.zeros(len(scale)), self._last_mode, key=loss)
        for _ in range(MAX_MODE_STEPS):
            p = expit(fixed + self._per_row(scale * u))
            slope = u - scale * self._per_level(self.outcomes - p)
            factor = self._factor(self._cross_products(p * (1 - p)), scale)
            step = cho_solve(factor, slope)
            if np.abs(step).max(initial=0.0) < MODE_TOLERANCE:
                break
            before = loss(u)
            while loss(u - step) > before + 1e-9 * abs(before):
                step = step / 2
            u = u - step
        self._last_mode = u
        return u

    def _gradient(
        self,
        p: Float[np.ndarray, " rows"],
        u: Float[np.ndarray, " levels"],
        *,
        scale: Float[np.ndarray, " levels"],
        gram: Float[np.ndarray, "levels levels"],
        factor: tuple[Float[np.ndarray, "levels levels"], bool],
    ) -> Float[np.ndarray, " parameters"]:
        """Phase 2: the gradient, as derivatives at fixed u plus the effect of the mode's shift."""
        weights = p * (1 - p)
        # The derivatives of the log-odds with respect to each parameter, for fixed u.
        change = np.column_stack([self.design, u[self.members]])
        # Half the log-determinant changes with the weights, and the weights change with the
        # log-odds.
        inverse = cho_solve(factor, np.eye(len(scale)))
        variance = scale[:, None] * inverse * scale
        pairs = variance[self.members[:, :, None], self.members[:, None, :]]
        bend = pairs.sum(axis=(1, 2)) / 2 * weights * (1 - 2 * p)
        moving = np.column_stack([self._per_level(weights * column) for column in change.T])
        moving = moving * scale[:, None]
        terms = self.design.shape[1]
        of_level = np.arange(len(scale)), terms + self.grouping
        moving[of_level] -= self._per_level(self.outcomes - p)
        through_mode = scale * self._per_level(bend) @ cho_solve(factor, moving)
        slope = change.T @ (p - self.outcomes + bend) - through_mode
        # The log-determinant also changes with sigma itself.
        slope[terms:] += np.bincount(
            self.grouping,
            weights=np.einsum("ij,ji->i", gram * scale, inverse),
            minlength=len(self.sizes),
        )
        return np.asarray(slope)

    def _factor(
        self, gram: Float[np.ndarray, "levels levels"], scale: Float[np.ndarray, " levels"]
    ) -> tuple[Float[np.ndarray, "levels levels"], bool]:
        """Cholesky factor of the curvature in u."""
        factor, lower = cho_factor(np.eye(len(scale)) + scale[:, None] * gram * scale)
        return factor, bool(lower)

    def _per_row(self, values: Float[np.ndarray, " levels"]) -> Float[np.ndarray, " rows"]:
        return np.asarray(values[self.members].sum(axis=1))

    def _per_level(self, values: Float[np.ndarray, " rows"]) -> Float[np.ndarray, " levels"]:
        repeated = np.repeat(values, self.members.shape[1])
        sums = np.bincount(self.members.ravel(), repeated, minlength=len(self.grouping))
        return sums.astype(float)  # Without rows, numpy returns integer counts.

    def _cross_products(
        self, weights: Float[np.ndarray, " rows"]
    ) -> Float[np.ndarray, "levels levels"]:
        """Total weight of the rows that two levels share, for each pair of levels."""
        count = len(self.grouping)
        repeated = np.repeat(weights, self.members.shape[1] ** 2)
        sums = np.bincount(self._cells, repeated, minlength=count**2)
        return sums.astype(float).reshape(count, count)


def _loss(log_odds: Float[np.ndarray, " rows"], outcomes: Float[np.ndarray, " rows"]) -> float:
    """Negative Bernoulli log-likelihood, in nats."""
    return float((np.logaddexp(0.0, log_odds) - outcomes * log_odds).sum())
