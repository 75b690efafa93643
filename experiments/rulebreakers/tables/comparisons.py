"""What all comparisons share: a row for every model, words for what was found, the paper's test."""

from dataclasses import asdict

import numpy as np
import pandas as pd

from interp.statistics.classical import welch_table
from interp.statistics.clusters import ClusterContrast, ClusterMean
from interp.statistics.decisions import SIGNIFICANT
from interp_experiments.rulebreakers.results import Results

NOT_SHOWN = "no difference shown"
"""The finding where a test shows none."""


def every_model(
    table: pd.DataFrame, results: Results, kind: type[ClusterMean] | type[ClusterContrast]
) -> pd.DataFrame:
    """The table with a row for every model, in their order, also for those without such prompts."""
    nothing = asdict(kind(np.nan, note="undefined: no such pairs"))
    absent = [model for model in results.models if model not in set(table["model"])]
    rows = pd.DataFrame([{"model": model, **nothing} for model in absent])
    whole = pd.concat([part for part in (table, rows) if len(part)], ignore_index=True)
    whole = whole.reindex(columns=table.columns)
    return whole.set_index("model").loc[list(results.models)].reset_index()


def finding_words(
    table: pd.DataFrame, *, more: str, less: str, value: str = "difference"
) -> list[str]:
    """What each row shows, in words that its interval and its corrected p-value support."""
    return [
        "not tested"
        if np.isnan(p)
        else NOT_SHOWN
        if p >= SIGNIFICANT or low <= 0 <= high
        else more
        if difference > 0
        else less
        for difference, low, high, p in table[[value, "low", "high", "p_holm"]].to_numpy(float)
    ]


def papers_test(
    rows: pd.DataFrame, *, value: str, group: str, groups: tuple[str, str]
) -> pd.DataFrame:
    """Welch's test over prompts, as the paper makes it, in columns whose names say so."""
    table = welch_table(rows, value=value, group=group, groups=groups)
    shown = ["difference", "t", "df", "p", "g", "n_a", "n_b", "mean_a", "mean_b"]
    return table[["model", *shown]].rename(columns={name: f"{name}_paper" for name in shown})
