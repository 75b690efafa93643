"""Differences in accuracy that are named before the data are seen, and the power of their tests.

A cluster's contribution to a difference is linear in its deviations from the two shares, whether it
has trials at both levels (a paired comparison) or at one. The interval is that of a share
(`interp.statistics.proportions.difference_drawn`), so it lies between -1 and 1 and has a width even
if no cluster differs; the test permutes clusters. benchmarks/rates.md says how often these tests
reject true and false null hypotheses.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import bdtr, stdtrit

from interp.prompts.systems import Contrast
from interp.statistics.clusters import FEWEST, RESAMPLES
from interp.statistics.decisions import HOLM_LEAST, LEAST, ONE_SIDED, agreeing, holm, verdicts
from interp.statistics.proportions import difference_drawn
from interp.statistics.resampling import (
    ROUNDING,
    apart,
    least_sign_p,
    permutation_sums,
    random_sign_sums,
    share_as_far,
)
from interp.statistics.summaries import LEVEL, UPPER, grouped

POWER = 0.8
"""Probability of detecting the minimal detectable effect."""

SHUFFLES = 999
"""Number of random orders of the levels within clusters, for the test of a spread."""

MODEL = "model"
"""The factor of a contrast between models."""

CONFIRMATORY, EXPLORATORY = "confirmatory", "exploratory"
"""Whether a contrast was named before the data were seen."""


@dataclass(frozen=True)
class Difference:
    """A difference between two shares; undefined values are NaN, and `note` gives the reason."""

    difference: float
    """share_a - share_b; exactly 0 if the shares differ only by rounding."""
    low: float = np.nan
    high: float = np.nan
    """Ends of the difference's 95% interval, between -1 and 1."""
    p: float = np.nan
    """Two-sided p-value."""
    detectable: float = np.nan
    """The difference that a test at the 5% level detects with 80% power, given the interval's
    width.
    """
    excluded_below: float = np.nan
    """A one-sided 5% test excludes smaller differences (`interp.statistics.decisions`)."""
    excluded_above: float = np.nan
    share_a: float = np.nan
    share_b: float = np.nan
    clusters: int = 0
    paired: bool = False
    """Whether the clusters have trials at both levels."""
    p_least: float = np.nan
    """The smallest p that the test can give with as many clusters and resamples."""
    note: str = ""


def contrast_table(
    pairs: pd.DataFrame,
    *,
    named: Sequence[Contrast],
    exploratory: Sequence[Contrast] = (),
    cluster: str,
    weight: str | None = None,
) -> pd.DataFrame:
    """One row per contrast, and per model unless models are compared.

    Columns are model (empty for contrasts between models), factor, contrast ("a - b"), status
    ("confirmatory" or "exploratory"), and the fields of `Difference`. p is followed by p_holm,
    corrected over all confirmatory rows, p_least is preceded by p_holm_least (`holm`). The verdict
    (`interp.statistics.decisions`) is based on p_holm for confirmatory rows and on p for the
    others.

    Args:
        pairs: one row per model and pair, with the factors (`interp.analysis.accuracy.pairs_of`),
            and `paired`, whether all sides of the pair are answered correctly.
        named: the contrasts that the system fixes before the data are seen.
        exploratory: additional contrasts.
        cluster: the column of the clusters within which outcomes are correlated.
        weight: the column with the number of pairs of the population that each pair represents.
    """
    mass = pairs[weight].astype(float) if weight else 1.0
    counted = pairs.assign(hits=pairs["paired"].astype(float) * mass, trials=mass)
    rows = [
        {**where, "status": status, **asdict(estimate)}
        for status, contrasts in ((CONFIRMATORY, named), (EXPLORATORY, exploratory))
        for contrast in contrasts
        for where, estimate in _rows(counted, contrast, cluster)
    ]
    columns = ["model", "factor", "contrast", "status", *Difference.__dataclass_fields__]
    table = pd.DataFrame(rows, columns=columns)
    p, is_named = table["p"], table["status"] == CONFIRMATORY
    named_only = holm(table.assign(p=p.where(is_named)), family="named contrasts")
    corrected = named_only["p_holm"]
    for name, beside in (("p_holm", "detectable"), (HOLM_LEAST, LEAST)):
        table.insert(list(table.columns).index(beside), name, named_only[name])
    decided = verdicts(table.assign(p=corrected.where(is_named, p)), p="p")
    table.insert(list(table.columns).index("excluded_above") + 1, "verdict", decided)
    return table


def _rows(
    pairs: pd.DataFrame, contrast: Contrast, cluster: str
) -> Iterator[tuple[dict[str, str], Difference]]:
    factor = contrast.factor
    for cell, rows in grouped(pairs, [] if factor == MODEL else [MODEL]):
        of_level = {
            str(level): at_level.groupby(cluster, sort=False)[["hits", "trials"]].sum()
            for level, at_level in rows.groupby(factor, sort=False)
        }
        where = {"model": str(cell.get(MODEL, "")), "factor": factor}
        if contrast.levels is None and factor != MODEL:
            if len(of_level) > 1:
                name, estimate = spread(of_level)
                yield {**where, "contrast": name}, estimate
            continue
        for a, b in combinations(of_level, 2) if contrast.levels is None else [contrast.levels]:
            if a in of_level and b in of_level:
                estimate = difference(of_level[a], of_level[b])
                yield {**where, "contrast": f"{a} - {b}"}, estimate


def difference(a: pd.DataFrame, b: pd.DataFrame) -> Difference:
    """The difference between two shares, from tables of hits and trials by cluster."""
    paired, fewest = _counted(a, b)
    shares = _share(a), _share(b)
    estimate = Difference(
        apart(*shares),
        share_a=shares[0],
        share_b=shares[1],
        clusters=len(a.index.union(b.index)),
        paired=paired,
    )
    if fewest < FEWEST:
        return replace(estimate, note=f"no test: fewer than {FEWEST} clusters on a side")
    drawn = difference_drawn(a, b, paired=paired)
    permuted = (_by_signs if paired else _by_relabeling)(a, b, estimate.difference)
    (low, high), (below, above) = drawn.ends(), drawn.ends(ONE_SIDED)
    detectable = (high - low) / 2 * (1 + beyond_half(fewest))
    low, high, p = agreeing((low, high), drawn.p(0.0), permuted)
    return replace(
        estimate,
        low=low,
        high=high,
        p=p,
        p_least=least_sign_p(estimate.clusters, RESAMPLES) if paired else 1 / (1 + RESAMPLES),
        detectable=detectable,
        excluded_below=below,
        excluded_above=above,
    )


def _counted(a: pd.DataFrame, b: pd.DataFrame) -> tuple[bool, int]:
    """Whether clusters have both levels, and the number of clusters (if not, at the rarer)."""
    fewest = min(len(a), len(b))
    paired = 2 * len(a.index.intersection(b.index)) > fewest
    return paired, len(a.index.union(b.index)) if paired else fewest


def beyond_half(clusters: int) -> float:
    """The detectable difference minus the interval's half-width, divided by that half-width."""
    return float(stdtrit(clusters - 1, POWER) / stdtrit(clusters - 1, UPPER))


def _share(sums: pd.DataFrame) -> float:
    return float(sums["hits"].sum() / sums["trials"].sum())


def _added(sums: pd.DataFrame, share: float) -> pd.Series:
    """Each cluster's contribution to the difference between this share and another."""
    return (sums["hits"] - share * sums["trials"]) / sums["trials"].sum()


def _by_signs(a: pd.DataFrame, b: pd.DataFrame, observed: float) -> float:
    """The p-value from random signs of each cluster's contribution to the difference."""
    pooled = _share(pd.concat([a, b]))
    added = _added(a, pooled).sub(_added(b, pooled), fill_value=0.0).to_numpy()
    return share_as_far(random_sign_sums(added, resamples=RESAMPLES), observed, rounding=ROUNDING)


def _by_relabeling(a: pd.DataFrame, b: pd.DataFrame, observed: float) -> float:
    """The p-value from permuting shares among clusters, which keep their levels and trials.

    The statistic is the difference divided by its standard error, which matters if the groups of
    clusters differ in size and spread (Janssen, 1997; Chung and Romano, 2013, Annals of Statistics
    41).
    """
    # Trials do not move with the shares, because clusters may have more trials at one level.
    sums = pd.concat([a, b])
    trials = sums["trials"].to_numpy(dtype=float)
    first = np.arange(len(trials)) < len(a)
    weights = np.column_stack([trials * first, trials * ~first])
    weights /= weights.sum(axis=0)
    shares = sums["hits"].to_numpy(dtype=float) / trials
    columns = np.column_stack([weights, weights**2])
    of_variance = (weights**2).sum(axis=0), np.array([len(a) / (len(a) - 1), len(b) / (len(b) - 1)])
    drawn = _over_errors(
        permutation_sums(shares, columns, resamples=RESAMPLES),
        # The same seed yields the same orders as for the shares.
        permutation_sums(shares**2, columns[:, 2:], resamples=RESAMPLES),
        *of_variance,
    )
    ratio = _over_errors((shares @ columns)[None], (shares**2 @ columns[:, 2:])[None], *of_variance)
    return share_as_far(drawn, float(ratio[0]) if observed else 0.0)


def _over_errors(
    sums: Float[np.ndarray, "draws 4"],
    squares: Float[np.ndarray, "draws 2"],
    squared_weights: Float[np.ndarray, "2"],
    correction: Float[np.ndarray, "2"],
) -> Float[np.ndarray, " draws"]:
    """Differences of two weighted means by their standard errors; infinite for errors of 0."""
    means, by_squares = sums[:, :2], sums[:, 2:]
    variances = squares - 2 * means * by_squares + means**2 * squared_weights
    variance = (variances * correction).sum(axis=1)
    away = means[:, 0] - means[:, 1]
    # Variances below this are rounding errors from cancellation.
    variance[variance <= ROUNDING * squares.sum(axis=1)] = 0.0
    away[np.abs(away) <= ROUNDING] = 0.0
    errors = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(away == 0.0, 0.0, away / errors)


def spread(of_level: Mapping[str, pd.DataFrame]) -> tuple[str, Difference]:
    """The best and the worst of at least two levels, "best - worst", and their difference.

    Extremes differ because they were selected, so p is the share of random orders of the levels
    within clusters whose extremes are at least as far apart. The interval extends on either side
    by the 95% quantile of the distances between these orders' extremes, so it holds for all pairs
    of levels simultaneously.
    """
    shares = {level: _share(sums) for level, sums in of_level.items()}
    best, worst = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    if not apart(shares[best], shares[worst]):
        best, worst = next(iter(shares)), next(reversed(shares))
    plain = difference(of_level[best], of_level[worst])
    if np.isnan(plain.p):
        return f"{best} - {worst}", plain
    widths = _widths(of_level)
    half, limit = (float(np.quantile(widths, level)) for level in (LEVEL, 2 * ONE_SIDED - 1))
    # If all answers agree, random orders have no spread, but unseen clusters may differ.
    low, high = min(plain.difference - half, plain.low), max(plain.difference + half, plain.high)
    below = min(plain.difference - limit, plain.excluded_below)
    above = max(plain.difference + limit, plain.excluded_above)
    _, fewest = _counted(of_level[best], of_level[worst])
    more = (plain.high - plain.low) / 2 * beyond_half(fewest)
    detectable = (high - low) / 2 + more
    permuted = share_as_far(widths, plain.difference, rounding=ROUNDING)
    low, high, p = agreeing((max(low, 0.0), min(high, 1.0)), plain.p, permuted)
    return f"{best} - {worst}", replace(
        plain,
        low=low,
        high=high,
        p=p,
        p_least=1 / (1 + SHUFFLES),
        detectable=detectable,
        excluded_below=max(below, 0.0),
        excluded_above=min(above, 1.0),
    )


def _widths(of_level: Mapping[str, pd.DataFrame]) -> Float[np.ndarray, " draws"]:
    """The distance between the extremes under random orders of the levels within clusters."""
    clusters = list(dict.fromkeys(name for table in of_level.values() for name in table.index))
    sums = np.stack(
        [t.reindex(clusters, fill_value=0.0).to_numpy(float) for t in of_level.values()]
    )
    chance = np.random.default_rng(0)
    widths = np.empty(SHUFFLES)
    for draw in range(SHUFFLES):
        order = chance.random(sums.shape[:2]).argsort(axis=0)
        hits, trials = np.take_along_axis(sums, order[..., None], axis=0).sum(axis=1).T
        widths[draw] = np.ptp(hits / trials)
    return widths


def mcnemar(a: Sequence[bool], b: Sequence[bool]) -> float:
    """The two-sided p-value of McNemar's exact test for two judgments of the same items."""
    first, second = np.asarray(a, dtype=bool), np.asarray(b, dtype=bool)
    only_a, only_b = int((first & ~second).sum()), int((~first & second).sum())
    return min(1.0, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5)))
