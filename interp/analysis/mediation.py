"""How much of a prompt's effect on the answer passes through the thought, by model and segment."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from interp.statistics.clusters import ClusterMean, cluster_mean
from interp.statistics.mediation import (
    EFFECTS,
    ClusterRatio,
    cluster_ratio,
    effects_of_draws,
    product_of_means,
)
from interp.statistics.summaries import grouped

ANSWERS = ("own", "changed", "own_under_other", "changed_under_other")
"""Columns of the thought_effects table that hold the log-odds of a unit, draw by draw."""

CELL = ["model", "donor_kind", "segment"]

SHARES = {
    "share": ("through", "through_other"),
    "share_own": ("through",),
    "share_other": ("through_other",),
}
"""Mediated shares and the effects that they average: both orders, or one of the two."""


def effect_products(effects: pd.DataFrame) -> pd.DataFrame:
    """The rows of the thought_effects table with an unbiased product of each effect and the total.

    Args:
        effects: the thought_effects table; rows with an error or without draws are omitted.

    Returns:
        Its keys, and a column for each name of `EFFECTS`: E[effect] E[total], in squared nats.
    """
    measured = effects[(effects["error"] == "") & (effects["draws"] > 0)]
    products: list[dict[str, float]] = []
    for row in measured[list(ANSWERS)].itertuples(index=False):
        found = effects_of_draws(*(np.asarray(values, dtype=float) for values in row))
        products.append({name: product_of_means(found[name], found["total"]) for name in EFFECTS})
    table = pd.DataFrame(products, columns=list(EFFECTS), index=measured.index)
    return pd.concat([measured.drop(columns=[*ANSWERS, "error"]), table], axis="columns")


def mediation_table(
    products: pd.DataFrame, prompts: pd.DataFrame, *, cluster: str, by: Sequence[str] = ()
) -> pd.DataFrame:
    """One row per model, kind of donor and segment: effects, and the share through the thought.

    Columns are model, donor_kind, segment and those of `by`; total: root mean square of the total
    effects over prompts, in nats; share, the mediated share as a mean of both orders, share_own and
    share_other, that of each order; each with its 95% interval over clusters
    (`interp.statistics.mediation`); prompts, clusters, note. The direct share is one minus the
    mediated share of the other order.

    Args:
        products: the table of `effect_products`.
        prompts: the prompts table, with prompt_id, weight, the cluster and the columns of `by`.
        cluster: the column of the clusters of prompts, such as their entity.
        by: further columns of the prompts table that groups are made of.
    """
    columns = ["prompt_id", "weight", *dict.fromkeys([cluster, *by])]
    trials = products.merge(prompts[columns], on="prompt_id", validate="many_to_one")
    rows = []
    for cell, members in grouped(trials, [*CELL, *by]):
        squares = cluster_mean(members, value="total", cluster=cluster, weight="weight")
        shares = {name: _share(members, parts, cluster) for name, parts in SHARES.items()}
        row: dict[str, object] = {**cell, **_size(squares)}
        for name, share in shares.items():
            row |= {name: share.ratio, f"{name}_low": share.low, f"{name}_high": share.high}
        count = members["prompt_id"].nunique()
        rows.append(
            {**row, "prompts": count, "clusters": squares.clusters, "note": shares["share"].note}
        )
    return pd.DataFrame(rows, columns=[*CELL, *by, *_columns()])


def _columns() -> list[str]:
    names = ("total", *SHARES)
    return [
        *(f"{name}{end}" for name in names for end in ("", "_low", "_high")),
        *("prompts", "clusters", "note"),
    ]


def _size(squares: ClusterMean) -> dict[str, float]:
    """The root mean square of an effect with its interval; estimates below 0 count as 0."""
    ends = {"": squares.mean, "_low": squares.low, "_high": squares.high}
    return {f"total{end}": float(np.sqrt(max(value, 0.0))) for end, value in ends.items()}


def _share(trials: pd.DataFrame, parts: Sequence[str], cluster: str) -> ClusterRatio:
    passed = trials[list(parts)].mean(axis="columns")
    return cluster_ratio(
        trials.assign(passed=passed),
        above="passed",
        below="total",
        cluster=cluster,
        weight="weight",
    )
