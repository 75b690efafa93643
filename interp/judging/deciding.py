"""Which segment has the largest effect, beside where each method's scores point."""

from collections.abc import Iterator, Sequence

import pandas as pd

from interp.analysis.cautions.caution import SPREAD, Caution
from interp.console import counted
from interp.judging.results import ModelResults, given_scores, tables_of
from interp.judging.verdicts import with_intervals
from interp.measurements.attribution.largest import (
    LARGEST,
    NOISE,
    SCORE_COLUMNS,
    VALUE_COLUMNS,
    largest_effects,
    largest_scores,
    largest_table,
)
from interp.report.formatting import segment_label
from interp.report.page import TableItem
from interp.statistics.proportions import proportions
from interp.studies.folder import StudyFolder

_EFFECTS = "effects"
"""The row of the effects, among those of the methods."""


def deciding_item(folder: StudyFolder, results: Sequence[ModelResults]) -> TableItem:
    """One row per model, for the effects and for each method: pairs by segment, and agreement."""
    table = pd.concat([_of_model(folder, result) for result in results], ignore_index=True)
    counts = table.columns.drop(["model", "source", *_AGREEMENT])
    shown = table[["model", "source"]].join(table[counts].fillna(0).astype(int))
    return TableItem(
        "deciding",
        "Which segment has the largest effect, and to which do scores point?",
        table,
        "Number of pairs in which the segment is the largest on every side, among the judged "
        "segments. effects: by the mean Shapley value over donors, unless the lead is within the "
        "donors' spread (Student's t, 95%). Methods: by the size of the sum of the tokens' scores. "
        "agreement: share of the prompts with a largest effect in which the method's largest score "
        "is that of the same segment [95% interval over clusters].",
        display=shown.assign(agreement=with_intervals(table, "agreement")),
    )


def spread_cautions(deciding: pd.DataFrame) -> Iterator[Caution]:
    """For each model of `deciding_item`, that in most pairs no effect leads beyond the spread."""
    if NOISE not in deciding:
        return
    effects = deciding[deciding["source"] == _EFFECTS].set_index("model")
    counts = effects.drop(columns=["source", *_AGREEMENT]).fillna(0).astype(int)
    for model, row in counts.iterrows():
        within, pairs = int(row[NOISE]), int(row.sum())
        if within > pairs / 2:
            yield Caution(
                SPREAD,
                str(model),
                f"in {within:,} of {counted(pairs, 'pair')}, the largest effect leads only within "
                "the donors' spread; other donors might give methods other verdicts.",
                numbers={"within": within, "pairs": pairs},
            )


_AGREEMENT = ["agreement", "low", "high", "prompts", "clusters"]


def _of_model(folder: StudyFolder, result: ModelResults) -> pd.DataFrame:
    tables = tables_of(folder, result.model)
    prompts, values = tables.prompts, tables.coalition_values.query("donor_kind == 'instance'")
    cluster = tables.cluster if tables.cluster in prompts else "pair_id"
    judged = {name for trials in result.trials for name in trials.segments}
    other_tools = given_scores(folder, result.model, tables).values()
    scores = pd.concat([tables.segment_scores, *other_tools])
    scores = scores[scores["segment"].isin(judged)]
    effects = largest_effects(values[VALUE_COLUMNS]).assign(method=_EFFECTS)
    largest = pd.concat([effects, largest_scores(scores[SCORE_COLUMNS])], ignore_index=True)
    table = largest_table(largest, prompts, by=["method"], cluster=cluster)
    names = table["segment"].map(segment_label).where(table["outcome"] == LARGEST, table["outcome"])
    wide = table.assign(name=names).pivot(index="method", columns="name", values="pairs")
    wide = wide.loc[table["method"].unique(), names.unique()]
    agreement = _agreement(largest, prompts[[*{"prompt_id", cluster}]], cluster)
    wide = wide.join(agreement).rename_axis(index="source", columns=None).reset_index()
    wide.insert(0, "model", result.model)
    return wide


def _agreement(largest: pd.DataFrame, prompts: pd.DataFrame, cluster: str) -> pd.DataFrame:
    """The share of the prompts with a largest effect in which methods point to that segment."""
    is_effect = largest["method"] == _EFFECTS
    clear = largest[is_effect & (largest["outcome"] == LARGEST)][["prompt_id", "segment"]]
    rows = largest[~is_effect].merge(clear, on="prompt_id", suffixes=("", "_effect"))
    if rows.empty:
        return pd.DataFrame(columns=_AGREEMENT, dtype=float)
    rows = rows.assign(same=rows["segment"] == rows["segment_effect"]).merge(prompts)
    table = proportions(rows, values=["same"], by=["method"], cluster=cluster)
    names = {"share": "agreement", "n": "prompts"}
    return table.rename(columns=names).set_index("method")[_AGREEMENT]
