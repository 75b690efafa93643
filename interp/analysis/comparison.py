"""Two models, or two runs, on the same prompts."""

from collections.abc import Sequence

import pandas as pd

from interp.analysis.accuracy import pairs_of
from interp.analysis.contrasts import difference, mcnemar
from interp.errors import UserError


def judged_pairs(
    answers: pd.DataFrame, prompts: pd.DataFrame, *, model: str, cluster: str
) -> pd.DataFrame:
    """One row per pair of a model: whether each side is right, and all of them (`paired`).

    Further columns are model, pair_id, the cluster, and weight: how many pairs of the data set a
    pair represents.

    Args:
        answers: the answers table.
        prompts: the prompts table.
        model: the model.
        cluster: the column of prompts that says which pairs depend on each other.

    Raises:
        UserError: no answer of the model was judged.
    """
    own = answers[(answers["model"] == model) & answers["correct"].notna()]
    if own.empty:
        raise UserError(f"no answer of {model} was judged, so there is nothing to compare")
    sides = tuple(prompts["side"].unique())
    keep = [] if cluster == "pair_id" else [cluster]
    pairs = pairs_of(own, prompts, keep=keep, sides=sides)
    # As in `accuracies`: where its members are of different strata, a pair counts as its first.
    weights = prompts.groupby("pair_id")["weight"].first()
    return pairs.assign(paired=pairs[list(sides)].all(axis=1), weight=pairs["pair_id"].map(weights))


def measures_of(pairs: pd.DataFrame, *, cluster: str) -> list[str]:
    """The measures of `judged_pairs`: its sides, and all of them."""
    return [str(name) for name in pairs if name not in ("model", "pair_id", "weight", cluster)]


def comparison_table(
    a: pd.DataFrame, b: pd.DataFrame, *, measures: Sequence[str], cluster: str
) -> pd.DataFrame:
    """One row per measure: how often a and b are right, and the difference a - b.

    Each pair counts by its weight, so that the accuracies are those of `accuracy_table`; only_a,
    only_b and p_mcnemar count pairs.

    Columns are measure; accuracy_a, accuracy_b; difference with low and high, its 95% interval, and
    p, two-sided, both with clusters as the unit (`interp.analysis.contrasts`); detectable, the
    difference that would be found with a power of 80%; excluded_below and excluded_above, the
    differences below and above which all are excluded (`interp.analysis.equivalence`); only_a and
    only_b, pairs that one alone has right, and p_mcnemar, McNemar's exact test, which takes pairs
    as independent; pairs, clusters, note.

    Args:
        a: one row per pair, with pair_id, weight, the measures (booleans) and the cluster.
        b: the same pairs.
        measures: what is compared.
        cluster: the column of the clusters within which pairs are correlated.
    """
    both = a.merge(b[["pair_id", *measures]], on="pair_id", suffixes=("_a", "_b"))
    return pd.DataFrame([_row(both, measure, cluster) for measure in measures])


def _row(both: pd.DataFrame, measure: str, cluster: str) -> dict[str, object]:
    judged = both.dropna(subset=[f"{measure}_a", f"{measure}_b"])
    right = [judged[f"{measure}_{side}"].astype(bool) for side in ("a", "b")]
    sums = [
        pd.DataFrame({"hits": side * judged["weight"], "trials": judged["weight"]})
        .groupby(judged[cluster].to_numpy())
        .sum()
        for side in right
    ]
    found = difference(*sums)
    return {
        "measure": measure,
        "accuracy_a": found.share_a,
        "accuracy_b": found.share_b,
        "difference": found.difference,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "detectable": found.detectable,
        "excluded_below": found.excluded_below,
        "excluded_above": found.excluded_above,
        "only_a": int((right[0] & ~right[1]).sum()),
        "only_b": int((right[1] & ~right[0]).sum()),
        "p_mcnemar": mcnemar(right[0].tolist(), right[1].tolist()),
        "pairs": len(judged),
        "clusters": found.clusters,
        "note": found.note,
    }
