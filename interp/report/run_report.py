"""The report on one run folder: the small tables and the heat maps that its tables allow."""

from collections.abc import Iterator
from functools import partial
from itertools import islice

import pandas as pd

from interp.analysis.accuracy import (
    accuracy_table,
    notes_without_answer,
    outcome_table,
    whole_pairs,
)
from interp.analysis.attribution_table import attribution_table
from interp.analysis.decisive import decisive_table
from interp.analysis.segments import (
    TABLE_COLUMNS,
    segment_table,
    token_shares,
)
from interp.console import counted
from interp.report.figures.bars import decisive_segments, decisive_title
from interp.report.formatting import ratio_title
from interp.report.html import token_heat_map
from interp.report.page import (
    FigureItem,
    HeatMapItem,
    Item,
    Report,
    Section,
    TableItem,
    prompts_item,
)
from interp.report.run_tables import run_finds, run_ratios
from interp.runs.folder import RunFolder

HEAT_MAP_PAIRS = 4
"""Pairs that are shown token by token."""


def report_of_run(run: RunFolder) -> Report:
    """The report on a run of `attribute` or `evaluate`, or of generated texts, finished or not.

    Only complete pairs are counted.

    Raises:
        UserError: nothing was measured yet.
    """
    generated = "completions" in run.tables()
    prompts, answers = run.table("prompts"), run.table("completions" if generated else "answers")
    prompts = whole_pairs(prompts, answers)
    answers = answers[answers["prompt_id"].isin(prompts["prompt_id"])]
    note = "" if generated else "; ".join(notes_without_answer(answers))
    items: list[Item] = []
    ratio = run.record.run.ratio
    if ratio is not None and "segment_scores" in run.tables():
        table = attribution_table(run_ratios(run), answers, prompts)
        items.append(TableItem("attribution_table", ratio_title(ratio), table, note))
    else:
        table = accuracy_table(answers, prompts)
        items.append(TableItem("accuracy_table", "Accuracy", table, note))
    if "segment_scores" in run.tables():
        table = segment_table(run.table("segment_scores", TABLE_COLUMNS))
        items.append(TableItem("segment_table", "Scores by segment: means over prompts", table))
    found = run_finds(run)
    if len(found):
        table, title = decisive_table(found), decisive_title(run.record.run.decisive)
        draw = partial(decisive_segments, table)
        items.append(FigureItem("decisive_segments", title, draw))
        items.append(TableItem("decisive_table", title, table))
    if generated:
        items.append(TableItem("outcome_table", "What the texts answer", outcome_table(answers)))
    if "token_scores" in run.tables():
        items += heat_maps(run, prompts, answers, pairs=HEAT_MAP_PAIRS)
    origin = run.record.run
    shown = Section("Prompts", items=(prompts_item(prompts, answers),))
    return Report(
        title=f"{origin.measurement} {origin.system}",
        text=f"{counted(len(prompts), 'prompt')}, {counted(len(run.record.models), 'model')}. "
        f"{headline(accuracy_table(answers, prompts))}",
        sections=(Section("Results", items=tuple(items)), shown),
        record=run_record(run),
        problems=tuple(missing_shards(run)),
    )


def headline(accuracies: pd.DataFrame) -> str:
    """What came out, in one sentence: the highest and the lowest paired accuracy.

    Args:
        accuracies: from `accuracy_table`.
    """
    judged = accuracies.dropna(subset="paired_accuracy").sort_values("paired_accuracy")
    if judged.empty:
        return "No answer was judged."
    texts = [f"{row.paired_accuracy:.3f} ({row.model})" for row in judged.itertuples()]
    if len(texts) == 1:
        return f"Paired accuracy is {texts[0]}."
    return f"Paired accuracy is highest at {texts[-1]} and lowest at {texts[0]}."


def run_record(run: RunFolder) -> dict[str, object]:
    """What the page shows of the run's records."""
    models = {name: record.model_dump(mode="json") for name, record in run.models().items()}
    return {**run.record.model_dump(mode="json"), "models": models}


def model_parameters(run: RunFolder) -> TableItem:
    """What was loaded, one row per model: its size, precision and revision."""
    rows = [
        {
            "model": name,
            "parameters": record.parameters,
            "architecture": record.architecture,
            "vocabulary": record.vocabulary,
            "dtype": record.dtype,
            "quantization": record.quantization or "",
            "chat_template": bool(record.chat.get("templated")),
            "commit": record.source.get("commit", ""),
        }
        for name, record in run.models().items()
    ]
    return TableItem("parameters", "Parameters of the models", pd.DataFrame(rows))


def missing_shards(run: RunFolder) -> list[str]:
    """A line on each model of a run that is not finished."""
    return [
        *(f"{model} was not begun, or was measured on other prompts" for model in run.not_begun()),
        *(
            f"{model} lacks {len(ids)} of {len(run.shards(model))} shards: {', '.join(ids)}"
            for model, ids in run.missing().items()
        ),
    ]


def heat_maps(
    run: RunFolder, prompts: pd.DataFrame, answers: pd.DataFrame, *, pairs: int
) -> list[HeatMapItem]:
    """Token heat maps of the first pairs, by model that has answers, and method.

    Without pairs that failed: those of no model are passed over.
    """
    measured = prompts["prompt_id"].isin(answers.loc[answers["error"] == "", "prompt_id"])
    lacking = prompts.loc[~measured, "pair_id"]
    chosen = list(islice(_pairs(prompts[~prompts["pair_id"].isin(lacking)]), pairs))
    shown = [id_ for _, rows in chosen for id_ in rows["prompt_id"]]
    shares = token_shares(
        run.table("token_scores", prompts=shown), run.table("tokens", prompts=shown)
    )
    shares = shares[shares["model"].isin(answers["model"])]
    return [
        HeatMapItem(
            f"{model}, {method}: {pair_id}",
            token_heat_map(scores, prompts=rows, answers=answers, method=method),
        )
        for pair_id, rows in chosen
        for model, scores in shares.groupby("model", sort=False)
        if set(rows["prompt_id"]) <= set(scores["prompt_id"])
        for method in scores["method"].unique()
    ]


def _pairs(prompts: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for pair_id, rows in prompts.groupby("pair_id", sort=False):
        yield str(pair_id), rows
