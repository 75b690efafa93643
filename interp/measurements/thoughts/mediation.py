"""How much of a prompt's effect on the answer passes through the thought, by model and segment."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from interp.statistics.means import cluster_mean
from interp.statistics.mediation import EFFECTS, cluster_ratio, effects_of_draws, product_of_means
from interp.statistics.summaries import grouped

ANSWERS = ("own", "changed", "own_under_other", "changed_under_other")
"""Columns of the thought_effects table that contain log-odds, draw by draw."""

CELL = ["model", "donor_kind", "segment"]

SHARES = ("share", "share_own", "share_other")
"""Columns of mediated shares: their mean, under own premises, and under changed premises."""

_NUMBERS = ("total", *SHARES)


def effect_products(effects: pd.DataFrame) -> pd.DataFrame:
    """Each effect's E[effect] E[total], in squared nats, with the keys of thought_effects.

    Estimates are unbiased. Rows with an error or without draws are omitted.
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
    """One row per model, kind of donor and segment: effects and the mediated share.

    Columns are model, donor_kind, segment and those of `by`; total: root mean square of the total
    effects over prompts, in nats; share_own: the mediated share if the thought is exchanged under
    the prompt's own premises; share_other: that under the changed premises; share: their mean. Each
    has its 95% interval (`interp.statistics.mediation`). Further columns are prompts, clusters and
    note. The direct share is 1 - share_other if the prompt's own thought is kept, and 1 - share_own
    if the changed prompt's is.

    Under their own premises, prompts in one cluster are alike; under a donor's premises, prompts
    that share the donor are alike. Therefore, share_own is clustered by the prompts' cluster, and
    share_other by the donor. Each end of the interval of `share` is the mean of the corresponding
    ends for share_own and share_other.
    """
    columns = ["prompt_id", "weight", *dict.fromkeys([cluster, *by])]
    trials = products.merge(prompts[columns], on="prompt_id", validate="many_to_one")
    ends = [f"{name}{end}" for name in _NUMBERS for end in ("", "_low", "_high")]
    rows = []
    for cell, members in grouped(trials, [*CELL, *by]):
        squares = cluster_mean(members, value="total", cluster=cluster, weight="weight")
        # Estimates of squares below 0 count as 0.
        total = np.sqrt(np.maximum([squares.mean, squares.low, squares.high], 0.0))
        # The other side of a pair is in the same cluster.
        by_donor = "donor" if cell["donor_kind"] == "instance" else cluster
        own, other = (
            cluster_ratio(members, above=above, below="total", cluster=name, weight="weight")
            for above, name in (("through", cluster), ("through_other", by_donor))
        )
        shares = np.array([[one.mean, one.low, one.high] for one in (own, other)])
        # The mean of the ends is wide enough for any dependence between the two.
        numbers = np.concatenate([total, shares.mean(0), *shares])
        counts = {"prompts": members["prompt_id"].nunique(), "clusters": squares.clusters}
        row = {**cell, **dict(zip(ends, numbers, strict=True)), **counts}
        rows.append({**row, "note": own.note or other.note})
    return pd.DataFrame(rows, columns=[*CELL, *by, *ends, "prompts", "clusters", "note"])
