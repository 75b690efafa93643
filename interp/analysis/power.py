"""The smallest differences that a set of prompts can show, by simulated studies.

1. Expect: a share of right answers, and how far two answers about one cluster are correlated, at one
   level of the factor and at two: from a pilot's answers, or assumed.
2. Simulate: studies of the prompts at hand, with a difference between the levels and with these
   correlations. An answer is that of its cluster at its level with some probability and else a new
   one; so is that of a cluster at a level, from its cluster (Lunn and Davies, 1998, Biometrika 85).
3. Test: each study as `interp.analysis.contrasts` does, with Student's t in place of permutations.
4. Search: the smallest difference that 80% of the studies find.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy.special import stdtrit
from scipy.stats import studentized_range

from interp.analysis.clusters import FEWEST
from interp.analysis.contrasts import MODEL, POWER, ROUNDING, Contrast
from interp.analysis.intervals import LEVEL

STUDIES = 500
"""Simulated studies of each difference."""

FINEST = 0.002
"""Difference at which the search ends."""

NONE = "none can be found at this size"
"""Said where not even the largest difference is found."""


@dataclass(frozen=True)
class Expected:
    """What is expected of answers, for one contrast."""

    share: float
    """Of right answers, at all levels; differences are hardest to find at 0.5."""
    within: tuple[float, ...]
    """By level: correlation of two answers about one cluster at this level."""
    across: float
    """Correlation of two answers about one cluster at different levels."""


@dataclass(frozen=True)
class Trials:
    """The pairs of a study by cluster and level, in groups of the same weight."""

    clusters: Int[np.ndarray, " groups"]
    levels: Int[np.ndarray, " groups"]
    weights: Float[np.ndarray, " groups"]
    counts: Int[np.ndarray, " groups"]
    """Pairs of each group."""
    names: tuple[str, ...]
    """Of the levels."""

    @classmethod
    def of(cls, pairs: pd.DataFrame, contrast: Contrast, cluster: str) -> "Trials":
        """Those of the contrast's levels; two models answer all pairs."""
        if contrast.factor == MODEL:
            pairs = pd.concat([pairs.assign(**{MODEL: name}) for name in contrast.levels or "ab"])
        names = contrast.levels or tuple(map(str, pairs[contrast.factor].unique()))
        level = pd.Index(names).get_indexer(pd.Index(pairs[contrast.factor].astype(str)))
        table = pd.DataFrame(
            {
                "cluster": pd.factorize(pairs[cluster])[0],
                "level": level,
                "weight": pairs["weight"].to_numpy(dtype=float),
            }
        )
        groups = table[level >= 0].value_counts(sort=False).reset_index()
        columns = (groups[name].to_numpy() for name in ("cluster", "level", "weight", "count"))
        return cls(*columns, names)

    def sums(self, values: Float[np.ndarray, "*studies groups"]) -> Float[np.ndarray, "..."]:
        """The sums by cluster and level, (*studies, cluster, level), of values of the groups."""
        shape = self.clusters.max() + 1, len(self.names)
        place = self.clusters * shape[1] + self.levels
        order = place.argsort(kind="stable")
        there, starts = np.unique(place[order], return_index=True)
        sums = np.zeros((*values.shape[:-1], shape[0] * shape[1]))
        sums[..., there] = np.add.reduceat(values[..., order], starts, axis=-1)
        return sums.reshape(*values.shape[:-1], *shape)

    def fewest(self) -> int:
        """Clusters that a test counts, as `contrasts.difference` does; the least of all levels."""
        has = self.sums(self.counts.astype(float)) > 0
        sizes = has.sum(axis=0)
        return min(
            int((has[:, a] | has[:, b]).sum())
            if 2 * (has[:, a] & has[:, b]).sum() > min(sizes[a], sizes[b])
            else int(min(sizes[a], sizes[b]))
            for a, b in combinations(range(len(self.names)), 2)
        )


def expected(answered: pd.DataFrame, contrast: Contrast, cluster: str) -> Expected:
    """What a pilot's answers make one expect: its share, and its intraclass correlations.

    Pairs count by their weights. Of the levels of a spread, which have few answers each, the
    correlation is that of all levels together.

    Args:
        answered: one row per pair, of two models per model, with paired (whether it is answered),
            weight, the factor and the cluster.
        contrast: what is to be compared.
        cluster: the column of the clusters.
    """
    names = contrast.levels or tuple(map(str, answered[contrast.factor].unique()))
    rows = answered[answered[contrast.factor].astype(str).isin(names)]
    level = rows[contrast.factor].astype(str)
    weight, right = rows["weight"].astype(float), rows["paired"].astype(float)
    shares = (weight * right).groupby(level).sum() / weight.groupby(level).sum()
    spread = np.sqrt(shares * (1 - shares)).where(lambda sd: sd > ROUNDING, np.inf)
    residual = weight * (right - level.map(shares)) / level.map(spread)
    parts = pd.DataFrame({"r": residual, "rr": residual**2, "w": weight, "ww": weight**2})
    sums = parts.groupby([rows[cluster], level]).sum().unstack(fill_value=0.0)
    r, rr, w, ww = (sums[name][list(names)].to_numpy() for name in parts)
    same = (r**2 - rr).sum(axis=0), (w**2 - ww).sum(axis=0)
    if contrast.levels is None:
        same = tuple(np.full(len(names), part.sum()) for part in same)
    across = _ratio(r.sum(axis=1) ** 2 - (r**2).sum(axis=1), w.sum(axis=1) ** 2 - (w**2).sum(axis=1))
    within = (float(np.clip(a / b, 0, 1)) if b > 0 else across for a, b in zip(*same, strict=True))
    return Expected(_typical(shares.to_numpy()), tuple(within), across)


def _typical(shares: Float[np.ndarray, " levels"]) -> float:
    """The share at which answers vary as much as at these on average."""
    away = np.sqrt(max(0.25 - float((shares * (1 - shares)).mean()), 0.0))
    return float(0.5 + (away if shares.mean() > 0.5 else -away))


def _ratio(products: np.ndarray, masses: np.ndarray) -> float:
    """A correlation, from sums of products and of weights; 0 where nothing is in common."""
    mass = float(masses.sum())
    return float(np.clip(products.sum() / mass, 0.0, 1.0)) if mass > ROUNDING else 0.0


def plan_table(
    pairs: pd.DataFrame,
    contrasts: Sequence[tuple[str, Contrast, Expected]],
    *,
    cluster: str,
    family: int,
) -> pd.DataFrame:
    """One row per contrast: model, factor, contrast, pairs_a, pairs_b, clusters and what it finds.

    detectable is the difference of accuracies that a two-sided test at 5% finds with a power of
    80%, as the column of that name in a report; detectable_holm is found where it is the only one
    in its family, which Holm's method tests at 5% divided by the number of tests. Both are NaN
    where even a difference of 1 is not found, or where fewer than ten clusters can be compared.

    Args:
        pairs: one row per pair, with the factors, the cluster and weight.
        contrasts: the name of the model, or "", what is to be compared, and what is expected.
        cluster: the column of the clusters within which outcomes are correlated.
        family: how many tests are corrected together.
    """
    return pd.DataFrame([row for one in contrasts for row in _rows(pairs, *one, cluster, family)])


def _rows(
    pairs: pd.DataFrame,
    model: str,
    contrast: Contrast,
    awaited: Expected,
    cluster: str,
    family: int,
) -> Iterator[dict[str, object]]:
    """The row of a contrast; none where the pairs have one level only."""
    trials = Trials.of(pairs, contrast, cluster)
    sizes = np.bincount(trials.levels, trials.counts, minlength=len(trials.names)).astype(int)
    if (sizes > 0).sum() < 2 or not sizes.all():
        return
    a, b = trials.names[0], trials.names[-1]
    named = contrast.levels is not None or contrast.factor == MODEL
    yield {
        "model": model,
        "factor": contrast.factor,
        "contrast": f"{a} - {b}" if named else "best - worst",
        "pairs_a": sizes[0],
        "pairs_b": sizes[-1],
        "clusters": int(trials.clusters.max()) + 1,
        "detectable": detectable(trials, awaited),
        "detectable_holm": detectable(trials, awaited, tests=family),
    }


def detectable(trials: Trials, awaited: Expected, *, tests: int = 1) -> float:
    """The smallest difference that is found with a power of 80%; NaN if there is none.

    Args:
        trials: what is asked.
        awaited: what is expected of the answers.
        tests: by how many the level of 5% is divided.
    """
    if trials.fewest() < FEWEST or power(trials, awaited, 1.0, tests=tests) < POWER:
        return float("nan")
    low, high = 0.0, 1.0
    while high - low > FINEST:
        middle = (low + high) / 2
        enough = power(trials, awaited, middle, tests=tests) >= POWER
        low, high = (low, middle) if enough else (middle, high)
    return high


def power(trials: Trials, awaited: Expected, difference: float, *, tests: int = 1) -> float:
    """The share of simulated studies that find a difference between the first level and the last.

    Two levels are compared by Student's t, the extremes of several by the studentized range.
    """
    hits = simulated(trials, awaited, difference)
    asked = trials.sums(trials.weights * trials.counts)
    level = (1 - LEVEL) / tests
    if hits.shape[-1] > 2:
        return float(_extremes_told_apart(hits, asked, level).mean())
    return float(_told_apart(hits, asked, trials.fewest(), level).mean())


def _extremes_told_apart(
    hits: Float[np.ndarray, "studies clusters levels"],
    asked: Float[np.ndarray, "clusters levels"],
    level: float,
) -> Bool[np.ndarray, " studies"]:
    """Whether the best level and the worst differ, by study.

    The standard error is that of levels in random order within clusters, as `contrasts.spread`
    draws them.
    """
    total, levels = asked.sum(axis=0), asked.shape[1]
    shares = hits.sum(axis=1) / total
    both = hits.sum(axis=(1, 2)) / total.sum()
    added = (hits - both[:, None, None] * asked) / total
    added -= added.mean(axis=2, keepdims=True)
    error = np.sqrt((added**2).sum(axis=(1, 2)) / (levels - 1))
    far = studentized_range.ppf(1 - level, levels, np.inf) * error
    told: Bool[np.ndarray, " studies"] = np.ptp(shares, axis=1) > far + ROUNDING
    return told


def _told_apart(
    hits: Float[np.ndarray, "studies clusters 2"],
    asked: Float[np.ndarray, "clusters 2"],
    fewest: int,
    level: float,
) -> Bool[np.ndarray, " studies"]:
    """Whether the t test of `contrasts.difference` finds that two levels differ, by study."""
    total, clusters = asked.sum(axis=0), len(asked)
    shares = hits.sum(axis=1) / total
    added = (hits - shares[:, None] * asked) / total
    squares = ((added[..., 0] - added[..., 1]) ** 2).sum(axis=1)
    error = np.sqrt(clusters / (clusters - 1) * squares)
    far = stdtrit(fewest - 1, 1 - level / 2) * error
    told: Bool[np.ndarray, " studies"] = np.abs(shares[:, 0] - shares[:, 1]) > far + ROUNDING
    return told


def simulated(
    trials: Trials, awaited: Expected, difference: float, *, studies: int = STUDIES, seed: int = 0
) -> Float[np.ndarray, "studies clusters levels"]:
    """Weighted sums of right answers by cluster and level, of studies with this difference.

    The first level has the highest share and the last the lowest; others have the expected one.
    """
    chance = np.random.default_rng(seed)
    high = max(min(1.0, awaited.share + difference / 2), difference)
    shares = np.full(len(trials.names), np.clip(awaited.share, high - difference, high))
    shares[0], shares[-1] = high, high - difference
    of_own = np.sqrt(awaited.within)
    scale = of_own[0] * of_own[-1]
    of_cluster = np.sqrt(min(1.0, awaited.across / scale)) if scale > 0 else 0.0
    size = (studies, int(trials.clusters.max()) + 1, len(shares))
    drawn = np.where(
        chance.random(size) < of_cluster, chance.random((*size[:2], 1)), chance.random(size)
    )
    chances = of_own * (drawn < shares) + (1 - of_own) * shares
    right = chance.binomial(trials.counts, chances[:, trials.clusters, trials.levels])
    return trials.sums(right * trials.weights)
