"""The small tables and figures of patches, alone and beside attribution scores."""

from functools import partial

import pandas as pd

from interp.analysis.groups import grouped
from interp.analysis.patching_attribution import agreement_table, premise_effects
from interp.report.figures.patches import scores_and_effects
from interp.report.page import FigureItem, TableItem
from interp.report.patching_report import (
    asked_patches,
    effects_for_people,
    estimate_tables,
    file_name,
    heat_map_items,
    run_effects,
    set_items,
)
from interp.report.results import Results
from interp.report.run_tables import run_ratios
from interp.results.notes import note_errors
from interp.runs.folder import RunFolder


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
        errors = note_errors(str(model), rows.loc[rows["error"] != "", "error"], "pair")
        recognized = int(rows["recognized"].fillna(False).astype(bool).sum())
        summary[str(model)] = {"pairs": len(rows), "recognized": recognized, "errors": errors}
    return summary
