"""How much the effects of edges vary with a prompt's phrasing, side and instance.

Effects are positive if they favor the clean answer: y = m(edge as in the clean prompt) - m(edge as
in the corrupt prompt), the effect of `denoising`, or minus that of `noising`. The direction
determines which side of the pair is run. The variance of y has four parts, estimated without bias
from mean products of two observations from *different* clusters (method of moments; for balanced
data, see Searle, Casella and McCulloch 1992, Variance Components, chapter 5). Let M[p, s] be the
mean product of two observations with the same phrasing (p = 1) or different phrasings (p = 0), run
on the same side (s = 1) or different sides (s = 0). Phrasings are compared if they have the same
answer options, because logits of different options, such as True and Yes, are different quantities:

- phrasing: M[1, 0] - M[0, 0]
- side: M[0, 1] - M[0, 0]
- phrasing by side: M[1, 1] - M[1, 0] - M[0, 1] + M[0, 0]
- instance: mean y^2 - M[1, 1], all variation within a phrasing and a side (not noise, since a model
  is deterministic)

The parts add up to the total, mean y^2 - M[0, 0]. The estimate of a small part may be negative.
With one direction, phrasing and instance are the only parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import stdtrit

from interp.statistics.clusters import FEWEST
from interp.statistics.summaries import UPPER, grouped

PERMUTATIONS = 999
"""Number of random orders of the phrasings."""

PARTS = ("phrasing", "side", "phrasing_by_side", "instance")

EDGE = ["writer", "reader"]

_AT_ONCE = 64
"""Number of edges that are computed at a time."""


def component_table(
    edges: pd.DataFrame,
    pairs: pd.DataFrame,
    phrasings: Mapping[str, str],
    clusters: Mapping[str, object],
) -> pd.DataFrame:
    """One row per model, method and edge; the edges that vary most with the phrasing come first.

    effect: mean y in logits; sd: square root of the total variance; each of `PARTS` as a share of
    the total, with the ends of its 95% interval: Student's t with the jackknife over clusters, on
    the scale log(1 - share); phrasings, pairs, clusters. p: the share of random orders of the
    phrasings, among pairs with the same options, in which the edge that varies most with the
    phrasing varies at least as much as this edge (Westfall and Young 1993), so that it holds for
    all edges at once. Intervals and p are NaN for fewer than `FEWEST` clusters.
    """
    ends = [f"{part}{end}" for part in PARTS for end in ("", "_low", "_high")]
    columns = ["model", "method", *EDGE, "effect", "sd", *ends, "p"]
    tables = [pd.DataFrame(columns=[*columns, "phrasings", "pairs", "clusters"])]
    each = pairs.drop_duplicates("pair_id").dropna(subset=["positive_option"])
    alternatives = each["positive_option"] + " or " + each["negative_option"]
    options = dict(zip(each["pair_id"], alternatives, strict=True))
    for key, rows in grouped(edges, ["model", "method"]):
        signs = np.where(rows["direction"] == "denoising", 1.0, -1.0)
        signed = rows.assign(y=rows["effect"] * signs)
        wide = signed.pivot(index=["pair_id", "direction"], columns=EDGE, values="y")
        wide = wide.dropna(axis="columns")
        ids, sides = map(wide.index.get_level_values, ("pair_id", "direction"))
        design = _Design.of(ids.map(phrasings), ids.map(options), sides, ids.map(clusters))
        # At least two phrasings must have the same options.
        if wide.empty or design.phrasing.max(initial=0) <= design.options.max(initial=0):
            continue
        values = wide.to_numpy(float)
        parts, low, high = _components(values, design)
        table = wide.columns.to_frame(index=False)
        table = table.assign(effect=values.mean(0), sd=np.sqrt(np.maximum(parts.sum(0), 0)))
        with np.errstate(divide="ignore", invalid="ignore"):
            for number, part in enumerate(PARTS):
                numbers = (parts[number] / parts.sum(0), low[number], high[number])
                for end, column in zip(("", "_low", "_high"), numbers, strict=True):
                    table[f"{part}{end}"] = column
        means = wide.groupby(level="pair_id", sort=False).mean()
        phrasing, option = (
            np.asarray(pd.factorize(means.index.map(of))[0]) for of in (phrasings, options)
        )
        few = design.cluster.max() + 1 < FEWEST
        table["p"] = np.nan if few else _largest_p(means.to_numpy(), phrasing, option)
        counts = {"phrasings": int(phrasing.max()) + 1, "pairs": len(means)}
        facts = {**key, **counts, "clusters": int(design.cluster.max()) + 1}
        order = (table["phrasing"] * table["sd"] ** 2).sort_values(ascending=False).index
        tables.append(pd.DataFrame({**table.loc[order], **facts})[tables[0].columns])
    return pd.concat([table for table in tables if len(table)] or tables, ignore_index=True)


Labels = Int[np.ndarray, " row"]
"""The group of each row, numbered from 0."""


@dataclass(frozen=True)
class _Design:
    """The groups to which each observation belongs, numbered from 0."""

    both: Labels
    """Observations with the same number share phrasing, options and side."""
    phrasing: Labels
    side: Labels
    """Observations with the same number share side and options."""
    options: Labels
    cluster: Labels

    @classmethod
    def of(
        cls, phrasing: pd.Index, options: pd.Index, side: pd.Index, cluster: pd.Index
    ) -> "_Design":
        def numbered(*labels: pd.Index) -> Labels:
            return np.asarray(pd.MultiIndex.from_arrays(labels).factorize()[0])

        return cls(
            numbered(phrasing, options, side),
            numbered(phrasing, options),
            numbered(options, side),
            numbered(options),
            numbered(cluster),
        )


def _components(
    values: Float[np.ndarray, "observation edge"], design: _Design
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The parts of the variance, (part, edge), and the ends of the intervals for their shares."""
    clusters = int(design.cluster.max()) + 1
    every, without = np.ones((1, clusters)), 1 - np.eye(clusters)
    parts, intervals = [], []
    for start in range(0, values.shape[1], _AT_ONCE):
        some = values[:, start : start + _AT_ONCE]
        parts.append(_parts(some, design, every)[0])
        if clusters < FEWEST:
            intervals.append(np.full((2, *parts[-1].shape), np.nan))
            continue
        left, whole = map(_remaining, (_parts(some, design, without), parts[-1][None]))
        spread = (clusters - 1) / clusters * ((left - left.mean(0)) ** 2).sum(0)
        half = float(stdtrit(clusters - 1, UPPER)) * np.sqrt(spread)
        ends = 1 - np.exp(np.clip(np.stack([whole[0] + half, whole[0] - half]), -50, 50))
        # The shares themselves are between 0 and 1; an estimate may lie outside.
        share = 1 - np.exp(whole[0])
        intervals.append(
            np.stack([np.maximum(ends[0], np.minimum(share, 0)), np.minimum(ends[1], 1)])
        )
    low, high = np.concatenate(intervals, axis=2)
    return np.concatenate(parts, axis=1), low, high


def _remaining(parts: Float[np.ndarray, "set part edge"]) -> Float[np.ndarray, "set part edge"]:
    """The logarithm of what is left of the total without each part; of less than 1e-6, of this."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(np.maximum(1 - parts / parts.sum(1, keepdims=True), 1e-6)))


def _parts(
    values: Float[np.ndarray, "observation edge"],
    design: _Design,
    weights: Float[np.ndarray, "resample cluster"],
) -> Float[np.ndarray, "resample part edge"]:
    """The parts of the variance when each cluster is drawn as often as its weight says."""
    same_both, same_phrasing, same_side, every = (
        _products(values, group, design.cluster, weights)
        for group in (design.both, design.phrasing, design.side, design.options)
    )
    m11, m01 = _mean(same_both), _mean(same_side - same_both)
    squares = weights @ _sums(values**2, design.cluster, weights.shape[1])
    observed = weights @ np.bincount(design.cluster, minlength=weights.shape[1])
    instance = squares / observed[:, None] - m11
    if design.side.max() <= design.options.max():  # prompts of one side were run
        return np.stack([m11 - m01, 0 * m01, 0 * m01, instance], axis=1)
    m10 = _mean(same_phrasing - same_both)
    m00 = _mean(every - same_phrasing - same_side + same_both)
    return np.stack([m10 - m00, m01 - m00, m11 - m10 - m01 + m00, instance], axis=1)


def _products(
    values: Float[np.ndarray, "observation edge"],
    group: Labels,
    cluster: Labels,
    weights: Float[np.ndarray, "resample cluster"],
) -> Float[np.ndarray, "resample edge_or_count"]:
    """Sums and counts of products of two observations from one group but different clusters.

    A cluster drawn twice counts as one cluster, so no observation is multiplied by itself.
    """
    columns = np.column_stack([values, np.ones(len(values))])
    products = np.zeros((len(weights), columns.shape[1]))
    for number in np.unique(group):
        members = group == number
        sums = _sums(columns[members], cluster[members], weights.shape[1])
        products += (weights @ sums) ** 2 - weights**2 @ sums**2
    return products


def _mean(
    products: Float[np.ndarray, "resample edge_or_count"],
) -> Float[np.ndarray, "resample edge"]:
    """The mean product; NaN if there is none."""
    counts = products[:, -1:]
    return np.asarray(products[:, :-1] / np.where(counts < 0.5, np.nan, counts))


def _sums(
    values: Float[np.ndarray, "observation edge"], cluster: Labels, clusters: int
) -> Float[np.ndarray, "cluster edge"]:
    sums = np.zeros((clusters, values.shape[1]))
    np.add.at(sums, cluster, values)
    return sums


def _largest_p(
    values: Float[np.ndarray, "pair edge"], phrasing: Labels, options: Labels
) -> Float[np.ndarray, " edge"]:
    """For each edge, the share of random orders whose largest statistic reaches the edge's own.

    The statistic is the between-phrasing share of the sum of squares within sets of options. Only
    pairs with the same options are permuted.
    """
    strata = [np.flatnonzero(options == number) for number in np.unique(options)]
    centered = values.copy()
    for stratum in strata:
        centered[stratum] -= centered[stratum].mean(0)
    squares = (centered**2).sum(0)
    varies = squares > 0
    members = np.eye(int(phrasing.max()) + 1)[phrasing]
    sizes = members.sum(0)

    def between(order: Int[np.ndarray, " pair"]) -> Float[np.ndarray, " edge"]:
        sums = members[order].T @ centered[:, varies]
        return np.asarray((sums**2 / sizes[:, None]).sum(0) / squares[varies])

    order = np.arange(len(values))
    observed = between(order)
    as_large = np.ones(len(observed))
    chance = np.random.default_rng(0)
    for _ in range(PERMUTATIONS):
        for stratum in strata:
            order[stratum] = chance.permutation(stratum)
        as_large += between(order).max(initial=0.0) >= observed * (1 - 1e-9)
    p = np.ones(values.shape[1])
    p[varies] = as_large / (1 + PERMUTATIONS)
    return p
