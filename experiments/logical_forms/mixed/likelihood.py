"""The likelihood of a linear mixed model with one grouping, and the search for its maximum.

Given a relative Cholesky factor L of the random effects, coefficients and residual variance have a
closed form: the random effects are integrated out by subtracting C'C from the sums of products, for
each group, with C = chol(L'Z'ZL + 1)^-1 L'Z'[X y]. Costs do not grow with the number of rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import block_diag
from scipy.optimize import minimize


class Profile(NamedTuple):
    """The best fit for one relative Cholesky factor."""

    log_likelihood: float
    """In nats; restricted if the likelihood is."""
    coefficients: Float[np.ndarray, " columns"]
    variance: float
    """Residual variance."""
    precision: Float[np.ndarray, "columns columns"]
    """Precision of the coefficients, in units of the residual precision."""


@dataclass(frozen=True)
class Likelihood:
    """Sums of products over the rows of each group and over all rows."""

    zz: Float[np.ndarray, "groups effects effects"]
    z_xy: Float[np.ndarray, "groups effects columns_and_response"]
    xy_xy: Float[np.ndarray, "columns_and_response columns_and_response"]
    rows: int
    reml: bool
    """Whether the likelihood is restricted, for unbiased variances."""

    @classmethod
    def of(
        cls,
        x: Float[np.ndarray, "rows columns"],
        z: Float[np.ndarray, "rows effects"],
        y: Float[np.ndarray, " rows"],
        groups: Int[np.ndarray, " rows"],
        *,
        reml: bool,
    ) -> "Likelihood":
        """The likelihood of fixed effects x and random effects z, by the index of each group."""
        xy = np.column_stack([x, y])
        members = [groups == group for group in range(int(groups.max()) + 1)]
        zz, z_xy = (np.stack([z[rows].T @ other[rows] for rows in members]) for other in (z, xy))
        return cls(zz, z_xy, xy.T @ xy, len(y), reml)

    def search(
        self, correlated: int, blocks: Sequence[int]
    ) -> tuple[Float[np.ndarray, "effects effects"], bool]:
        """The most likely relative Cholesky factor, and whether the search converged.

        The factor is a lower triangle of the first, correlated effects, followed by a diagonal with
        one value for each block of effects. Powell's search follows no gradient, which vanishes at
        a variance of zero.
        """
        if not correlated:
            return np.zeros((0, 0)), True
        places = np.tril_indices(correlated)
        diagonal = np.append(np.equal(*places), np.ones(len(blocks), dtype=bool))

        def factor(values: Float[np.ndarray, " values"]) -> Float[np.ndarray, "effects effects"]:
            triangle = np.zeros((correlated, correlated))
            triangle[places] = values[: len(places[0])]
            shared = np.repeat(values[len(places[0]) :], blocks)
            return np.asarray(block_diag(triangle, np.diag(shared)))

        searches = [
            minimize(
                lambda values: -self.profile(factor(values)).log_likelihood,
                np.where(diagonal, start, 0.0),
                method="Powell",
                options={"xtol": 1e-7, "ftol": 1e-13, "maxiter": 1000},
            )
            for start in (2.0, 0.5, 0.1)  # standard deviations, relative to the residual's
        ]
        best = min(searches, key=lambda search: float(search.fun))
        return factor(best.x), bool(best.success)

    def profile(self, factor: Float[np.ndarray, "effects effects"]) -> Profile:
        """The best fit for a relative Cholesky factor."""
        root = np.linalg.cholesky(factor.T @ self.zz @ factor + np.eye(len(factor)))
        taken = np.linalg.solve(root, factor.T @ self.z_xy)
        left = self.xy_xy - np.einsum("gei,gej->ij", taken, taken)
        precision, cross = left[:-1, :-1], left[:-1, -1]
        coefficients = np.linalg.solve(precision, cross)
        squares = max(float(left[-1, -1] - cross @ coefficients), np.finfo(float).tiny)
        freedom = self.rows - self.reml * len(coefficients)
        deviance = 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum()
        deviance += freedom * (1 + np.log(2 * np.pi * squares / freedom))
        deviance += self.reml * np.linalg.slogdet(precision)[1]
        return Profile(-float(deviance) / 2, coefficients, squares / freedom, precision)

    def modes(
        self,
        factor: Float[np.ndarray, "effects effects"],
        coefficients: Float[np.ndarray, " columns"],
    ) -> Float[np.ndarray, "groups effects"]:
        """The conditional modes (BLUPs) of the random effects."""
        inner = factor.T @ self.zz @ factor + np.eye(len(factor))
        residual = self.z_xy[:, :, -1] - self.z_xy[:, :, :-1] @ coefficients
        relative = np.linalg.solve(inner, (residual @ factor)[:, :, None])[:, :, 0]
        return np.asarray(relative @ factor.T)
