"""The small tables of a finished run: what a command writes as CSV and prints."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pandas as pd
from matplotlib.axes import Axes

from interp.analysis.accuracy import accuracy_table, outcome_table
from interp.analysis.attribution_table import attribution_table
from interp.analysis.decisive import decisive_table
from interp.analysis.groups import grouped
from interp.analysis.patching_attribution import agreement_table, premise_effects
from interp.analysis.segment_effects import COLUMNS, segment_effect_table
from interp.analysis.segments import TABLE_COLUMNS, segment_table
from interp.measurements.spec import Spec
from interp.report.console import mean_with_sd
from interp.report.decisive_figure import decisive_segments, decisive_title
from interp.report.formatting import accuracy_columns, segment_label
from interp.report.page import FigureItem, TableItem
from interp.report.patch_figures import scores_and_effects
from interp.report.patching_report import (
    asked_patches,
    effects_for_people,
    estimate_tables,
    file_name,
    heat_map_items,
    run_effects,
    set_items,
)
from interp.report.run_report import run_finds, run_ratios
from interp.report.summary import note_errors, summarize
from interp.runs.folder import RunFolder


@runtime_checkable
class Measured(Protocol):
    """What was measured, in a run folder or in memory: what small tables of any prompts need."""

    def table(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """A table, or some of its columns; "prompts" is the prompts table."""

    def rows(self, name: str) -> Sequence[Path] | pd.DataFrame:
        """Where the rows of a table are: files that may be large, or the table itself."""

    @property
    def seed(self) -> int:
        """What the prompts were generated with."""


@dataclass(frozen=True)
class Results:
    """What a finished run comes to."""

    tables: Mapping[str, pd.DataFrame]
    """By name: a CSV file each."""
    shown: Sequence[tuple[str, pd.DataFrame]]
    """Titles and tables for the terminal."""
    summary: Mapping[str, object] = field(default_factory=dict)
    """By model: what the tables do not show, for the record."""
    figures: Mapping[str, Callable[[], Axes]] = field(default_factory=dict)
    """By name: what draws it."""
    files: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    """Further files by name: what writes each, which depends on nothing but the run's shards."""


def results_of(spec: type[Spec], run: Measured) -> Results:
    """The small tables of a run, as its spec makes them; none if it makes none."""
    if not spec.results:
        return Results({}, [])
    results: Results = resolved(spec.results)(run)
    return results


def resolved(place: str) -> Callable[..., Any]:
    """The function that a spec names as "module:function"."""
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def of_answers(run: Measured) -> Results:
    """Accuracy, one row per model."""
    answers = run.table("answers", ["model", "prompt_id", "answer", "correct", "error"])
    prompts = run.table("prompts", ["prompt_id", "pair_id", "side", "weight"])
    table = accuracy_table(answers, prompts, _sides(prompts))
    summary = summarize(answers, answers[answers["error"] != ""])
    return Results({"accuracy_table": table}, [("Accuracy", table)], summary)


def of_completions(run: Measured) -> Results:
    """Accuracy of generated texts, and what they answer, one row per model."""
    completions = run.table("completions")
    prompts = run.table("prompts", ["prompt_id", "pair_id", "side", "weight"])
    accuracy = accuracy_table(completions, prompts, _sides(prompts))
    outcomes = outcome_table(completions)
    tables = {"accuracy_table": accuracy, "outcome_table": outcomes}
    shown = [("Accuracy", accuracy), ("What the texts answer", outcomes)]
    return Results(tables, shown, _errors(completions))


def _errors(rows: pd.DataFrame) -> dict[str, object]:
    """The most frequent errors of each model, and a line on each."""
    failed = rows[rows["error"] != ""]
    return {
        str(model): {"errors": note_errors(str(model), rows["error"], "prompts")}
        for model, rows in failed.groupby("model", sort=False)
    }


def of_attributions(run: RunFolder) -> Results:
    """Scores by segment next to accuracy, one row per model; ratios where segments are compared."""
    answers = run.table("answers", ["model", "prompt_id", "answer", "correct", "error"])
    by_segment = segment_table(run.table("segment_scores", TABLE_COLUMNS))
    by_model, failed = _by_model(run, answers)
    ratio = run.record.run.ratio
    tables = {"segment_table": by_segment}
    tables["accuracy_table" if ratio is None else "attribution_table"] = by_model
    scores = _shares(by_segment) if ratio is None else _ratios(by_model, ratio)
    shown = [("Accuracy", by_model.loc[:, ["model", *accuracy_columns(by_model)]])]
    shown += [(f"{title}: mean (sd) over prompts", table) for title, table in scores]
    found = run_finds(run)
    if found.empty:
        return Results(tables, shown, summarize(answers, failed))
    tables["decisive_table"] = table = decisive_table(found)
    shown.append((decisive_title(run.record.run.decisive), table))
    figures = {"decisive_segments": partial(decisive_segments, table)}
    return Results(tables, shown, summarize(answers, failed), figures)


def _by_model(run: RunFolder, answers: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One row per model: accuracies, and ratios where segments are compared; and what failed."""
    prompts = run.table("prompts", ["prompt_id", "pair_id", "side", "weight"])
    if run.record.run.ratio is None:
        columns = ["model", "prompt_id", "error"]
        parts = run.parts("segment_scores", columns, filters=[("error", "!=", "")])
        table = accuracy_table(answers, prompts, _sides(prompts))
        return table, pd.concat([answers[answers["error"] != ""], *parts])
    ratios = run_ratios(run)
    table = attribution_table(ratios, answers, prompts, _sides(prompts))
    return table, pd.concat([rows[rows["error"] != ""] for rows in (answers, ratios)])


def _ratios(table: pd.DataFrame, ratio: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """The ratios of means and of sums, one column per method, each with its title."""
    above, below = map(segment_label, ratio)
    titles = {
        "ratio": f"Mean score of a token of {above} over one of {below}",
        "ratio_unnormalized": f"Summed score of {above} over {below}",
    }
    for kind, title in titles.items():
        shown = table[["model"]].copy()
        for name in table.columns[table.columns.str.endswith(f"_{kind}")]:
            method, deviations = name.removesuffix(f"_{kind}"), name.replace("_ratio", "") + "_sd"
            if table[name].notna().any():
                shown[method] = mean_with_sd(table[name], table[deviations])
        yield title, shown


def _shares(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The share of each segment by each method, one column per segment, each with its title."""
    texts = table.assign(text=mean_with_sd(table["share"], table["share_sd"]))
    for method, rows in texts.groupby("method", sort=False):
        shown = rows.pivot(index="model", columns="segment", values="text").fillna("")
        shown = shown.loc[rows["model"].unique(), rows["segment"].unique()]
        shown.columns = shown.columns.map(segment_label)
        yield f"Share of the scores of the prompt, {method}", shown.reset_index()


def of_patches(run: RunFolder) -> Results:
    """Effects of patches by role, and what exact effects say of estimates."""
    pairs = run.table("pairs")
    effects = run_effects(run)
    items = [*heat_map_items(effects, asked_patches(run)), *estimate_tables(run), *set_items(run)]
    further = [item for item in items if isinstance(item, TableItem)]
    tables = {"effect_table": effects} | {item.name: item.frame for item in further}
    shown = list(effects_for_people(effects))
    shown += [(item.title, _narrow(item.frame)) for item in further if item.name != "bound_table"]
    figures = {item.name: item.draw for item in items if isinstance(item, FigureItem)}
    return Results(tables, shown, _patch_summary(pairs), figures)


def _narrow(table: pd.DataFrame) -> pd.DataFrame:
    """The table without what the command line has said, and without notes where there are none."""
    asked = ("direction", "source", "sites", "level")
    said = [name for name in asked if name in table and table[name].nunique() == 1]
    if "note" in table and (table["note"] == "").all():
        said.append("note")
    return table.drop(columns=said)


def of_effects(run: Measured) -> Results:
    """Mean effects of segments, one row per model, kind of donor and segment."""
    effects = run.table("segment_effects", COLUMNS)
    table = segment_effect_table(effects)
    alone = table[table["other_segment"] == ""].drop(columns="other_segment")
    shown = alone[["model", "donor_kind", "segment", "prompts"]].assign(
        shapley=mean_with_sd(alone["shapley"], alone["shapley_sd"]),
        leave_one_out=mean_with_sd(alone["leave_one_out"], alone["leave_one_out_sd"]),
    )
    title = "Effects of segments on the answer, in logits: mean (sd) over prompts"
    return Results({"segment_effect_table": table}, [(title, shown)], _errors(effects))


def scores_beside_effects(patched: RunFolder, attributed: RunFolder) -> Results:
    """Effects of patching the premises next to their attribution scores, prompt by prompt."""
    scores = run_ratios(attributed)
    effects = premise_effects(asked_patches(patched), patched.table("pairs"), scores)
    table = agreement_table(effects)
    title = "Does the premise with the higher score carry the larger effect?"
    return Results(
        tables={"premise_effects": effects, "agreement_table": table},
        shown=[(title, table)],
        figures={
            file_name("scores_and_effects", *map(str, group.values())): partial(
                scores_and_effects, rows
            )
            for group, rows in grouped(effects, ["model", "site"])
        },
    )


def _patch_summary(pairs: pd.DataFrame) -> dict[str, object]:
    """Pairs, recognized ones and errors, by model, and a line on each error."""
    summary: dict[str, object] = {}
    for model, rows in pairs.groupby("model", sort=False):
        errors = note_errors(str(model), rows.loc[rows["error"] != "", "error"], "pairs")
        recognized = int(rows["recognized"].fillna(False).astype(bool).sum())
        summary[str(model)] = {"pairs": len(rows), "recognized": recognized, "errors": errors}
    return summary


def _sides(prompts: pd.DataFrame) -> tuple[str, ...]:
    return tuple(prompts["side"].unique())
