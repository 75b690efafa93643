"""The small tables of what a probe measured."""

from functools import partial

import pandas as pd

from interp.console import echo
from interp.errors import UserError
from interp.report.results import Measured, Results
from interp.report.summary import summarize
from interp_probes.familiarity import flag_shared
from interp_probes.figures import probe_accuracy
from interp_probes.knowledge import excluded
from interp_probes.linear import linear_probes
from interp_probes.specs import ENTITIES

_FACTS = ["prompt_id", "category", "entity_group", *ENTITIES]


def of_familiarity(run: Measured) -> Results:
    """Familiarity of each fact, and its mean by model and group of entities."""
    facts, table = run.table("prompts", _FACTS), _measured(run, "familiarity")
    table = flag_shared(table, facts).merge(facts, on="prompt_id")
    groups = table.assign(shared=table["shared_with"] > 0).groupby(
        ["model", "entity_group"], sort=False
    )
    summary = groups["familiarity"].agg(["mean", "median", "min", "max"])
    summary = summary.assign(
        whole_name=groups["whole_name"].mean(),
        facts=groups.size(),
        shared_first_token=groups["shared"].sum(),
    )
    title = "Familiarity: P(first token of the answer); whole_name: mean P(all its tokens)"
    shown = [(title, summary.reset_index())]
    return Results({"familiarity": table}, shown, _lacking(facts, table))


def of_knowledge(run: Measured) -> Results:
    """Which facts each model knows, and those that any of them fails."""
    facts, table = run.table("prompts", _FACTS), _measured(run, "knowledge")
    failed = excluded(table, facts)
    table = table.merge(facts, on="prompt_id")
    known = table.groupby(["model", "entity_group"], sort=False)["known"]
    summary = known.agg(known="sum", facts="size", share="mean").reset_index()
    shown = [("Facts known, by greedy completion", summary)]
    listed = failed[["category", *ENTITIES, "excluded", "why"]].replace(
        {"excluded": {True: "yes", False: "no"}}
    )
    if len(listed):
        title = "Facts that a model fails (categorical ones: to be checked by hand)"
        shown.append((title, listed))
    return Results({"knowledge": table, "excluded": failed}, shown, _lacking(facts, table))


def _lacking(facts: pd.DataFrame, table: pd.DataFrame) -> dict[str, dict[str, int]]:
    """How many facts each model has no row of, and a line on each model that lacks some."""
    measured = table.groupby("model", sort=False)["prompt_id"].nunique()
    lacking = {str(model): len(facts) - int(count) for model, count in measured.items()}
    for model, count in lacking.items():
        if count:
            echo(
                f"{model}: {count:,} of {len(facts):,} facts are not in the table: they failed, or "
                "are not measured yet"
            )
    return {model: {"facts_without_row": count} for model, count in lacking.items()}


def of_residuals(run: Measured) -> Results:
    """The accuracy of linear probes of the prompt's side, by model, position and layer."""
    prompts = run.table("prompts")
    answers = run.table("answers", ["model", "prompt_id", "answer", "correct", "error"])
    table = linear_probes(run.rows("residuals"), prompts, answers, seed=run.seed)
    for note in table.loc[(table["prompts"] == "all") & table["accuracy"].isna(), "note"].unique():
        echo(f"linear probes: {note}")
    title = "Accuracy of linear probes of the prompt's side; p: above chance at any layer"
    summary = summarize(answers, answers[answers["error"] != ""])
    figures = {"linear_probes": partial(probe_accuracy, table)}
    return Results({"linear_probes": table}, [(title, _for_people(table))], summary, figures)


def _measured(run: Measured, name: str) -> pd.DataFrame:
    """A table that has a row for each fact that could be measured.

    Raises:
        UserError: it has none.
    """
    table = run.table(name)
    if table.empty:
        raise UserError(
            "no fact could be measured; models/ and workers/ in the run's folder say what was tried"
        )
    return table


def _for_people(table: pd.DataFrame) -> pd.DataFrame:
    """One row per model, position and layer: accuracy on each subset; interval and p on all."""
    key = ["model", "position", "layer"]
    shown = table.pivot(index=key, columns="prompts", values="accuracy")
    everything = table[table["prompts"] == "all"].set_index(key)
    interval = everything[["accuracy_low", "accuracy_high"]].set_axis(["low", "high"], axis=1)
    shown = pd.concat([shown[["all"]], interval, shown[["recognized", "failed"]]], axis=1)
    shown = shown.assign(control=everything["control_accuracy"], p=everything["p_family"])
    return shown.loc[everything.index].reset_index()
