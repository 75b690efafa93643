"""The profiled deviance of a linear mixed model with one grouping, and its minimum.

The random effects of a group are an intercept and a slope, which may be correlated, and blocks of
independent effects that share a variance, such as the levels of a factor.

1. Subtract the least-squares fit, to avoid cancellation in sums of squares; scale the columns, and
   center the covariate of the random effects.
2. Sum the products of the columns over the rows of each group.
3. Given a relative Cholesky factor L of the random effects, integrate them out: for each group,
   subtract C'C from the sums of products, with C = chol(L'Z'ZL + 1)^-1 L'Z'[X y].
4. Minimize the remaining deviance over the elements of L, from several starting points.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import block_diag
from scipy.optimize import minimize

STARTS = (1.0, 0.1)
"""Relative standard deviations of the random effects at which the search starts."""

TOLERANCE = 1e-9
"""The search ends when the parameter step and the change in the deviance are both below this."""

BOUNDARY = 1e-4
"""Relative standard deviation below which a random effect is considered not to vary."""


@dataclass(frozen=True)
class ProfiledFit:
    """The minimum of the profiled deviance."""

    coefficients: Float[np.ndarray, " columns"]
    covariance: Float[np.ndarray, "columns columns"]
    """Covariance of the coefficients."""
    random_covariance: Float[np.ndarray, "effects effects"]
    residual_variance: float
    random_effects: Float[np.ndarray, "groups effects"]
    """Conditional modes (BLUPs): each group's deviations from the fixed effects; no columns if
    there are no random effects.
    """
    deviance: float
    """Minus twice the log-likelihood or the restricted log-likelihood."""
    singular: bool
    """Whether a variance is zero or a correlation 1 or -1."""
    converged: bool


@dataclass(frozen=True)
class _Sums:
    """Sums of products over the rows of each group and over all rows."""

    zz: Float[np.ndarray, "groups effects effects"]
    z_xy: Float[np.ndarray, "groups effects columns_and_response"]
    xy_xy: Float[np.ndarray, "columns_and_response columns_and_response"]
    rows: int


@dataclass(frozen=True)
class _Profile:
    """The fit for one relative Cholesky factor, in units of the scaled columns."""

    deviance: float
    coefficients: Float[np.ndarray, " columns"]
    residual_variance: float
    precision: Float[np.ndarray, "columns columns"]
    """Precision of the coefficients, in units of the residual precision."""


def fit_profiled(
    fixed: Float[np.ndarray, "rows columns"],
    random: Float[np.ndarray, "rows effects"],
    response: Float[np.ndarray, " rows"],
    groups: Int[np.ndarray, " rows"],
    *,
    reml: bool,
    blocks: tuple[int, ...] = (),
) -> ProfiledFit:
    """The fit that maximizes the likelihood or the restricted likelihood.

    Args:
        fixed: matrix of full rank.
        random: either no columns, or a column of ones, optionally a covariate, and the columns of
            the blocks.
        response: the values to explain.
        groups: index of each row's group, from 0.
        reml: whether to maximize the restricted likelihood.
        blocks: sizes of the blocks, which are the last columns of `random`.
    """
    correlated = random.shape[1] - sum(blocks)
    scales = np.sqrt((fixed**2).mean(axis=0))
    scales = np.where(scales > 0, scales, 1.0)
    x, change = fixed / scales, _standardizing(random, correlated)
    start = np.linalg.lstsq(x, response, rcond=None)[0]
    sums = _sums(np.column_stack([x, response - x @ start]), random @ change, groups)
    factor, converged = _search(sums, correlated=correlated, blocks=blocks, reml=reml)
    best = _profile(factor, sums, reml=reml)
    root = change @ factor
    return ProfiledFit(
        coefficients=(start + best.coefficients) / scales,
        covariance=best.residual_variance
        * np.linalg.inv(best.precision)
        / np.outer(scales, scales),
        random_covariance=best.residual_variance * root @ root.T,
        residual_variance=best.residual_variance,
        random_effects=_random_effects(factor, sums, best.coefficients) @ change.T,
        # The restricted likelihood depends on the units of the columns.
        deviance=best.deviance + 2 * float(np.log(scales).sum()) * reml,
        singular=bool((np.diag(factor) < BOUNDARY).any()),
        converged=converged,
    )


def _standardizing(
    random: Float[np.ndarray, "rows effects"], correlated: int
) -> Float[np.ndarray, "effects effects"]:
    """The matrix that turns the columns (1, x) into (1, standardized x).

    The search is then independent of the origin and the unit of x.
    """
    change = np.eye(random.shape[1])
    if correlated > 1:
        sd = float(random[:, 1].std()) or 1.0
        change[:2, 1] = -random[:, 1].mean() / sd, 1 / sd
    return change


def _sums(
    xy: Float[np.ndarray, "rows columns_and_response"],
    z: Float[np.ndarray, "rows effects"],
    groups: Int[np.ndarray, " rows"],
) -> _Sums:
    members = [groups == group for group in range(int(groups.max()) + 1)]
    zz, z_xy = (np.stack([z[rows].T @ other[rows] for rows in members]) for other in (z, xy))
    return _Sums(zz, z_xy, xy.T @ xy, rows=len(xy))


def _factor(
    values: Float[np.ndarray, " elements"], correlated: int, blocks: tuple[int, ...]
) -> Float[np.ndarray, "effects effects"]:
    """A lower triangle of the first elements, followed by a diagonal with one value per block."""
    triangle = np.zeros((correlated, correlated))
    own, shared = np.split(values, [len(values) - len(blocks)])
    triangle[np.tril_indices(correlated)] = own
    return np.asarray(block_diag(triangle, np.diag(np.repeat(shared, blocks))))


def _search(
    sums: _Sums, *, correlated: int, blocks: tuple[int, ...], reml: bool
) -> tuple[Float[np.ndarray, "effects effects"], bool]:
    """The best relative Cholesky factor, and whether the search for it converged."""
    if not correlated:
        return np.zeros((0, 0)), True
    on_diagonal = np.equal(*np.tril_indices(correlated))
    diagonal = np.append(on_diagonal, np.ones(len(blocks), dtype=bool))
    found = [
        minimize(
            lambda values: _profile(_factor(values, correlated, blocks), sums, reml=reml).deviance,
            np.where(diagonal, start, 0.0),
            method="Nelder-Mead",
            bounds=[(0 if on else None, None) for on in diagonal],
            options={"xatol": TOLERANCE, "fatol": TOLERANCE, "maxiter": 4000, "maxfev": 4000},
        )
        for start in STARTS
    ]
    best = min(found, key=lambda result: float(result.fun))
    return _factor(best.x, correlated, blocks), bool(best.success)


def _profile(factor: Float[np.ndarray, "effects effects"], sums: _Sums, *, reml: bool) -> _Profile:
    inner = factor.T @ sums.zz @ factor + np.eye(len(factor))
    root = np.linalg.cholesky(inner)
    taken = np.linalg.solve(root, factor.T @ sums.z_xy)
    left = sums.xy_xy - np.einsum("gei,gej->ij", taken, taken)
    precision, cross = left[:-1, :-1], left[:-1, -1]
    coefficients = np.linalg.solve(precision, cross)
    squares = max(float(left[-1, -1] - cross @ coefficients), np.finfo(float).tiny)
    freedom = sums.rows - len(coefficients) if reml else sums.rows
    deviance = 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum()
    deviance += freedom * (1 + np.log(2 * np.pi * squares / freedom))
    if reml:
        deviance += np.linalg.slogdet(precision)[1]
    return _Profile(float(deviance), coefficients, squares / freedom, precision)


def _random_effects(
    factor: Float[np.ndarray, "effects effects"],
    sums: _Sums,
    coefficients: Float[np.ndarray, " columns"],
) -> Float[np.ndarray, "groups effects"]:
    inner = factor.T @ sums.zz @ factor + np.eye(len(factor))
    residual = sums.z_xy[:, :, -1] - sums.z_xy[:, :, :-1] @ coefficients
    relative = np.linalg.solve(inner, (residual @ factor)[:, :, None])[:, :, 0]
    return np.asarray(relative @ factor.T)
