"""Comparisons that simple tests get wrong: unequal spreads, skewed means and rare hits."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.controls.rates import Tested
from interp.statistics.contrasts import difference
from interp.statistics.decisions import SMALLEST
from interp.statistics.means import cluster_mean

GROUPS = {
    "148 clusters x 60 against 91 x 20": ((148, 60, 0.05), (91, 20, 0.9)),
    "147 clusters x 6 against 30 x 4": ((147, 6, 0.05), (30, 4, 1.0)),
    "32 clusters x 10 against 36 x 10": ((32, 10, 0.3), (36, 10, 0.3)),
}
"""For each group: number of clusters, trials per cluster and intraclass correlation."""

SHARE, EFFECT = 0.3, 0.2
"""Share of hits, and how much an effect adds to the first group's share."""

MEANS = {"normal": False, "skewed": False, "skewed, of unequal clusters": True}
"""Distribution of the cluster means, and whether clusters have 1 to 30 trials with two weights."""


def of_unlike(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """The result of each test on one study."""
    return [*_of_groups(rng, planted), *_of_means(rng, planted), *_of_limits(rng, planted)]


def _of_groups(rng: np.random.Generator, planted: bool) -> Iterator[Tested]:
    for name, (first, second) in GROUPS.items():
        a = _clusters(rng, *first, share=SHARE + EFFECT * planted)
        b = _clusters(rng, *second, share=SHARE)
        found = difference(a, b.set_axis(b.index + len(a)))
        hits = np.array([(x["hits"].sum(), (x["trials"] - x["hits"]).sum()) for x in (a, b)])
        naive = float(stats.chi2_contingency(hits).pvalue)
        yield Tested(f"groups, {name}", found.p, naive=naive, low=found.low, high=found.high)


def _of_means(rng: np.random.Generator, planted: bool) -> Iterator[Tested]:
    for clusters in (10, 30, 100):
        for name, unequal in MEANS.items():
            own = (
                rng.normal(size=clusters)
                if name == "normal"
                else rng.exponential(size=clusters) - 1
            )
            weight = rng.integers(1, 31, clusters) * rng.choice([1.0, 6.0], clusters)
            rows = pd.DataFrame(
                {
                    "value": own + 0.5 * planted,
                    "cluster": range(clusters),
                    "weight": weight if unequal else np.ones(clusters),
                }
            )
            found = cluster_mean(rows, value="value", cluster="cluster", weight="weight")
            yield Tested(
                f"mean, {name}, {clusters} clusters", found.p, low=found.low, high=found.high
            )


def _of_limits(rng: np.random.Generator, planted: bool) -> Iterator[Tested]:
    """Whether a difference of interest is excluded: wrongly if it is real, rightly if it is not."""
    for clusters in (12, 36, 150):
        a = _clusters(rng, clusters, 5, 0.5, share=1e-6 if planted else SMALLEST)
        b = _clusters(rng, clusters, 5, 0.5, share=1e-6)
        found = difference(a, b.set_axis(b.index + len(a)))
        excluded = float(found.excluded_above < SMALLEST)
        yield Tested(f"excluded, a difference of {SMALLEST:g}, {clusters} clusters", 1.0 - excluded)


def _clusters(
    rng: np.random.Generator, clusters: int, trials: int, correlation: float, *, share: float
) -> pd.DataFrame:
    """Hits and trials of clusters whose shares have this mean and intraclass correlation."""
    size = (1 - correlation) / correlation
    own = (
        rng.beta(share * size, (1 - share) * size, clusters)
        if size
        else rng.binomial(1, share, clusters).astype(float)
    )
    hits = rng.binomial(trials, own).astype(float)
    return pd.DataFrame({"hits": hits, "trials": np.full(clusters, float(trials))})
