"""The share of an effect that passes through a mediator, from several draws per unit.

A unit, such as a prompt x with a changed version x', has four answers for each draw d: y(x, t),
y(x', t), y(x, t') and y(x', t'), with t drawn given x and t' given x'. Its effects are (Pearl 2001,
Direct and indirect effects; Imai, Keele and Yamamoto 2010, Statistical Science 25):

    total = y(x, t) - y(x', t')
    direct = y(x, t) - y(x', t)        through = y(x, t) - y(x, t')
    direct_other = y(x, t') - y(x', t')    through_other = y(x', t) - y(x', t')

The total is direct + through_other = through + direct_other. The two decompositions differ if x and
t interact.

Effects differ in sign between units and would cancel in a sum, so each effect is multiplied by its
unit's total effect. The mediated share is the slope of the effect through the mediator on the total
effect,

    share = sum over units of E[through] E[total] / sum over units of E[total]^2,

that is, the mean of the shares of individual units, weighted by their squared total effects.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import stdtrit

from interp.statistics.clusters import FEWEST, NAN, too_few
from interp.statistics.means import NO_TRIALS, ClusterMean
from interp.statistics.resampling import ROUNDING
from interp.statistics.summaries import UPPER

EFFECTS = ("total", "direct", "through", "direct_other", "through_other")

Draws = Float[np.ndarray, " draws"]

NO_TOTAL = "undefined: the total effect may be zero"


def effects_of_draws(
    own: Draws, changed: Draws, own_under_other: Draws, changed_under_other: Draws
) -> dict[str, Draws]:
    """The effects of one unit, draw by draw; answers are y(x, t), y(x', t), y(x, t'), y(x', t')."""
    return {
        "total": own - changed_under_other,
        "direct": own - changed,
        "through": own - own_under_other,
        "direct_other": own_under_other - changed_under_other,
        "through_other": changed - changed_under_other,
    }


def product_of_means(one: Draws, other: Draws) -> float:
    """An unbiased estimate of E[one] E[other], even if the two values of a draw are dependent.

    It is the mean product of each draw in `one` with every draw in `other` at a different position.
    A single draw counts as exact, as for a deterministic mediator.
    """
    count = len(one)
    if count == 1:
        return float(one[0] * other[0])
    pairs = one.sum() * other.sum() - (one * other).sum()
    return float(pairs / (count * (count - 1)))


def cluster_ratio(
    trials: pd.DataFrame, *, above: str, below: str, cluster: str, weight: str
) -> ClusterMean:
    """The weighted sum of one column divided by that of another, in place of a mean, untested.

    The interval is Fieller's (1954, J. R. Stat. Soc. B 16): all ratios R for which the mean of
    `above` - R `below` over clusters does not differ significantly from 0, by Student's t. With
    fewer than `FEWEST` clusters, there is no interval. If the denominator does not differ
    significantly from 0 by the same test, the ratio is undefined. Trials with a missing value are
    omitted.
    """
    trials = trials.dropna(subset=[above, below])
    if trials.empty:
        return ClusterMean(NAN, note=NO_TRIALS)
    weighted = trials[[above, below]].astype(float).mul(trials[weight].astype(float), axis=0)
    a, b = weighted.groupby(trials[cluster]).sum().to_numpy().T
    count = len(a)
    ratio = ClusterMean(NAN, trials=len(trials), clusters=count)
    if abs(b.sum()) <= ROUNDING * np.abs(b).sum():
        return replace(ratio, note="undefined: no total effect")
    ratio = replace(ratio, mean=float(a.sum() / b.sum()))
    if count < FEWEST:
        return replace(ratio, note=too_few(count))
    # (A - R B)^2 <= scale * (variance of a - R b over clusters), a quadratic in R.
    scale = count**2 * float(stdtrit(count - 1, UPPER)) ** 2 / count
    (aa, ab), (_, bb) = np.cov(a, b)
    square = b.sum() ** 2 - scale * bb
    if square <= 0:
        return replace(ratio, mean=NAN, note=NO_TOTAL)
    middle = (a.sum() * b.sum() - scale * ab) / square
    rest = (a.sum() ** 2 - scale * aa) / square
    half = float(np.sqrt(max(middle**2 - rest, 0.0)))
    return replace(ratio, low=float(middle - half), high=float(middle + half))
