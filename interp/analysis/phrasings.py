"""How much the effects of edges vary with the phrasing of a prompt, its side, and its instance.

An effect is counted towards the clean answer: y = m(edge as in the clean prompt) - m(edge as in the
corrupt prompt), the effect of `denoising`, and minus the effect of `noising`. The direction is the
side of the pair that is run. The variance of y has four parts, estimated without bias from mean
products of two observations of *different* clusters (method of moments; Searle, Casella and
McCulloch 1992, Variance Components, chapter 5, has it for balanced data). Let M[p, s] be the mean
product of two observations with the same phrasing (p = 1) or different ones (0), run on the same
side (s = 1) or different ones (0):

- phrasing: M[1, 0] - M[0, 0]
- side: M[0, 1] - M[0, 0]
- phrasing by side: M[1, 1] - M[1, 0] - M[0, 1] + M[0, 0]
- instance: mean y^2 - M[1, 1], all that differs within a phrasing and a side; a model is
  deterministic, so this is no noise

They add up to the total, mean y^2 - M[0, 0]. An estimate may be negative where the part is small.
With one direction there are only phrasing and instance.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from interp.statistics.clusters import FEWEST
from interp.statistics.resampling import bootstrap_counts
from interp.statistics.summaries import LEVEL, UPPER, grouped

RESAMPLES = 500
"""Bootstrap resamples of the clusters."""

PERMUTATIONS = 999
"""Random orders of the phrasings."""

PARTS = ("phrasing", "side", "phrasing_by_side", "instance")

_EDGE = ["writer", "reader"]

_AT_ONCE = 64
"""Edges whose resamples are in memory at a time."""


def component_table(
    edges: pd.DataFrame, phrasings: Mapping[str, str], clusters: Mapping[str, object]
) -> pd.DataFrame:
    """One row per model, method and edge, those that vary most with the phrasing first.

    effect: mean y in logits; sd: square root of the total variance; each of `PARTS` as a share of
    the total, with _low and _high, the ends of its 95% percentile interval from a bootstrap over
    clusters (NaN for fewer than `FEWEST`); p: the share of random orders of the phrasings over the
    pairs in which the edge that varies most with them, of all edges, does so as much as this edge
    (Westfall and Young 1993), so that under 0.05 any edge is reported in at most 5% of studies in
    which no edge varies; phrasings, pairs, clusters.

    Args:
        edges: rows of the edges table.
        phrasings: the phrasing of each pair.
        clusters: the cluster of each pair.
    """
    ends = [f"{part}{end}" for part in PARTS for end in ("", "_low", "_high")]
    columns = ["model", "method", *_EDGE, "effect", "sd", *ends, "p"]
    tables = [pd.DataFrame(columns=[*columns, "phrasings", "pairs", "clusters"])]
    for key, rows in grouped(edges, ["model", "method"]):
        signs = np.where(rows["direction"] == "denoising", 1.0, -1.0)
        signed = rows.assign(y=rows["effect"] * signs)
        wide = signed.pivot(index=["pair_id", "direction"], columns=_EDGE, values="y")
        wide = wide.dropna(axis="columns")
        pairs = wide.index.get_level_values("pair_id")
        of = [
            pd.factorize(pd.Index(labels))[0]
            for labels in (
                pairs.map(phrasings),
                wide.index.get_level_values("direction"),
                pairs.map(clusters),
            )
        ]
        values = wide.to_numpy(float)
        if not values.size or of[0].max() < 1:
            continue
        parts, low, high = _components(values, *of)
        table = wide.columns.to_frame(index=False)
        table = table.assign(effect=values.mean(0), sd=np.sqrt(np.maximum(parts.sum(0), 0)))
        with np.errstate(divide="ignore", invalid="ignore"):
            for number, part in enumerate(PARTS):
                ends = (parts[number] / parts.sum(0), low[number], high[number])
                for end, own in zip(("", "_low", "_high"), ends, strict=True):
                    table[f"{part}{end}"] = own
        means = wide.groupby(level="pair_id", sort=False).mean()
        table["p"] = _largest_p(means.to_numpy(), pd.factorize(means.index.map(phrasings))[0])
        table = table.assign(
            **key, phrasings=of[0].max() + 1, pairs=len(means), clusters=of[2].max() + 1
        )
        order = table.assign(by=table["phrasing"] * table["sd"] ** 2)
        tables.append(order.sort_values("by", ascending=False)[tables[0].columns])
    return pd.concat([table for table in tables if len(table)] or tables, ignore_index=True)


Labels = Int[np.ndarray, " observation"]


def _components(
    values: Float[np.ndarray, "observation edge"], phrasing: Labels, side: Labels, cluster: Labels
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The parts of the variance (part, edge), and both ends of the intervals of their shares."""
    clusters = int(cluster.max()) + 1
    levels = _groupings(phrasing, side)
    ones = np.ones((1, clusters))
    drawn = bootstrap_counts(clusters, RESAMPLES).astype(float)
    parts, lows, highs = [], [], []
    for start in range(0, values.shape[1], _AT_ONCE):
        own = values[:, start : start + _AT_ONCE]
        parts.append(_parts(own, levels, cluster, ones)[0])
        if clusters < FEWEST:
            lows.append(np.full_like(parts[-1], np.nan))
            highs.append(lows[-1])
            continue
        resampled = _parts(own, levels, cluster, drawn)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = resampled / resampled.sum(1, keepdims=True)
        low, high = np.quantile(shares, [(1 - LEVEL) / 2, UPPER], axis=0)
        lows.append(low)
        highs.append(high)
    found = (np.concatenate(each, axis=1) for each in (parts, lows, highs))
    first, low, high = found
    return first, low, high


def _groupings(phrasing: Labels, side: Labels) -> dict[tuple[int, int], Labels]:
    """The group of each observation if two of the same group share phrasing (1, _), side (_, 1)."""
    sides = int(side.max()) + 1
    return {
        (1, 1): phrasing * sides + side,
        (1, 0): phrasing,
        (0, 1): side,
        (0, 0): np.zeros_like(side),
    }


def _parts(
    values: Float[np.ndarray, "observation edge"],
    levels: Mapping[tuple[int, int], Labels],
    cluster: Labels,
    weights: Float[np.ndarray, "resample cluster"],
) -> Float[np.ndarray, "resample part edge"]:
    """The parts of the variance, with clusters drawn as often as the weights say."""
    found = {key: _products(values, group, cluster, weights) for key, group in levels.items()}
    both, same_phrasing, same_side, every = (found[key] for key in ((1, 1), (1, 0), (0, 1), (0, 0)))
    means = {
        (1, 1): _mean(both),
        (1, 0): _mean(same_phrasing - both),
        (0, 1): _mean(same_side - both),
        (0, 0): _mean(every - same_phrasing - same_side + both),
    }
    squares = weights @ _sums(values**2, cluster, weights.shape[1])
    observed = weights @ np.bincount(cluster, minlength=weights.shape[1])
    total = squares / observed[:, None]
    if not levels[0, 1].any():  # all observations share the side
        none = np.zeros_like(total)
        return np.stack([means[1, 1] - means[0, 1], none, none, total - means[1, 1]], axis=1)
    phrasing, side = means[1, 0] - means[0, 0], means[0, 1] - means[0, 0]
    by_side = means[1, 1] - means[1, 0] - means[0, 1] + means[0, 0]
    return np.stack([phrasing, side, by_side, total - means[1, 1]], axis=1)


def _products(
    values: Float[np.ndarray, "observation edge"],
    group: Labels,
    cluster: Labels,
    weights: Float[np.ndarray, "resample cluster"],
) -> Float[np.ndarray, "resample edge_or_count"]:
    """Sums of products of two observations of one group and two clusters; last, their number.

    A cluster that is drawn twice counts as one, so no observation is multiplied with itself.
    """
    columns = np.column_stack([values, np.ones(len(values))])
    found = np.zeros((len(weights), columns.shape[1]))
    for number in np.unique(group):
        own = group == number
        sums = _sums(columns[own], cluster[own], weights.shape[1])
        found += (weights @ sums) ** 2 - weights**2 @ sums**2
    return found


def _mean(
    products: Float[np.ndarray, "resample edge_or_count"],
) -> Float[np.ndarray, "resample edge"]:
    """The mean product; NaN if there is none."""
    counts = products[:, -1:]
    return np.asarray(products[:, :-1] / np.where(counts < 0.5, np.nan, counts))


def _sums(
    values: Float[np.ndarray, "observation edge"], cluster: Labels, clusters: int
) -> Float[np.ndarray, "cluster edge"]:
    found = np.zeros((clusters, values.shape[1]))
    np.add.at(found, cluster, values)
    return found


def _largest_p(
    values: Float[np.ndarray, "pair edge"], phrasing: Int[np.ndarray, " pair"]
) -> Float[np.ndarray, " edge"]:
    """For each edge, the share of orders whose largest statistic of all edges is as large.

    The statistic is the share of the sum of squares that lies between phrasings.
    """
    centred = values - values.mean(0)
    squares = (centred**2).sum(0)
    varies = squares > 0
    members = np.eye(int(phrasing.max()) + 1)[phrasing]
    sizes = members.sum(0)

    def between(order: Int[np.ndarray, " pair"]) -> Float[np.ndarray, " edge"]:
        sums = members[order].T @ centred[:, varies]
        return np.asarray((sums**2 / sizes[:, None]).sum(0) / squares[varies])

    observed = between(np.arange(len(values)))
    as_large = np.ones(len(observed))
    for order in _orders(len(values)):
        as_large += between(order).max(initial=0.0) >= observed * (1 - 1e-9)
    p = np.ones(values.shape[1])
    p[varies] = as_large / (1 + PERMUTATIONS)
    return p


def _orders(rows: int) -> Iterator[Int[np.ndarray, " pair"]]:
    chance = np.random.default_rng(0)
    return (chance.permutation(rows) for _ in range(PERMUTATIONS))
