"""The small table of context attributions that a page of effects shows."""

from functools import partial

import pandas as pd

from interp.statistics.means import ClusterMean, cluster_mean
from interp.statistics.summaries import table_by

_KEY = ["model", "method", "segment"]


def context_table(scores: pd.DataFrame, prompts: pd.DataFrame, *, cluster: str) -> pd.DataFrame:
    """One row per model, method and segment: the mean score in logits over prompts.

    Args:
        scores: rows of `interp.measurements.effects.context.context_scores`.
        prompts: the prompts table.
        cluster: the factor whose values group dependent prompts.

    Returns:
        the key, score, its 95% interval (low, high), size (the mean absolute score), prompts,
        clusters and a note.
    """
    rows = scores.merge(prompts[["prompt_id", cluster]], on="prompt_id").assign(weight=1)
    mean = partial(cluster_mean, value="score", cluster=cluster, weight="weight")
    table = table_by(rows, _KEY, ClusterMean, mean)
    sizes = rows["score"].abs().groupby([rows[name] for name in _KEY]).mean().rename("size")
    named = {"mean": "score", "trials": "prompts"}
    table = table.rename(columns=named).merge(sizes.reset_index(), on=_KEY)
    return table[[*_KEY, "score", "low", "high", "size", "prompts", "clusters", "note"]]
