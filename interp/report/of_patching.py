"""The report on a run of `patch`: effects by role, heat maps, estimates beside exact effects."""

import math
import re
from collections.abc import Iterator
from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from interp.analysis.cells import cells
from interp.analysis.patching_effects import effect_table, verification_table
from interp.report.of_run import counted, missing_shards, run_record
from interp.report.page import FigureItem, Report, Section, TableItem
from interp.report.patch_figures import layers_by_roles, layers_by_tokens
from interp.runs.folder import RunFolder

_EFFECTS = """Mean over pairs, in logits, with 95% bootstrap intervals. recovered: mean effect over
mean difference between the two prompts; 1 is the metric of the prompt that the activations come
from."""


def report_of_patching(run: RunFolder) -> Report:
    """The report on a run of `patch`, finished or not.

    Raises:
        UserError: nothing was measured yet.
    """
    patches, pairs = asked_patches(run), run.table("pairs")
    effects = effect_table(patches, pairs)
    tables = [TableItem("effect_table", "Effects by role", effects, note=_EFFECTS)]
    if run.record.run.parameters.get("verify"):
        verified = verification_table(run.table("patches"))
        tables.append(TableItem("verification_table", "Estimates against exact effects", verified))
    origin = run.record.run
    return Report(
        title=f"patch {origin.system}",
        text=f"{counted(pairs['pair_id'].nunique(), 'pair')}, "
        f"{counted(len(run.record.models), 'model')}.",
        sections=(Section("Results", items=(*heat_map_items(effects, patches), *tables)),),
        record=run_record(run),
        problems=tuple(missing_shards(run)),
    )


def asked_patches(run: RunFolder) -> pd.DataFrame:
    """The patches of every cell, by the method that was asked for.

    The cells that were verified beside an estimate are the largest ones: they would stand for
    nothing but themselves.
    """
    patches = run.table("patches")
    return patches[patches["method"] == (run.record.run.parameters.get("estimate") or "exact")]


def heat_map_items(effects: pd.DataFrame, patches: pd.DataFrame) -> Iterator[FigureItem]:
    """Heat maps of each model, method, site and head: layers by roles, layers by tokens."""
    by = ["model", "method", "site", "head"]
    for cell, rows in cells(effects, by):
        yield _figure("layers_by_roles", cell, partial(layers_by_roles, rows, head=_head(cell)))
    for cell, rows in cells(patches[patches["position"].notna()], by):
        first = rows[rows["pair_id"] == rows["pair_id"].iloc[0]]
        yield _figure("layers_by_tokens", cell, partial(layers_by_tokens, first, head=_head(cell)))


def _figure(kind: str, cell: dict[str, object], draw: "partial[Axes]") -> FigureItem:
    head = _head(cell)
    parts = [str(cell[name]) for name in ("model", "method", "site")]
    parts += [] if head is None else [f"head{head}"]
    name = re.sub(r"[^A-Za-z0-9-]+", "_", "-".join([kind, *parts]))
    return FigureItem(name, f"{kind.replace('_', ' ').capitalize()}: {', '.join(parts)}", draw)


def _head(cell: dict[str, object]) -> int | None:
    """The head of a group of rows; None where the site has none."""
    head = cell["head"]
    return int(head) if isinstance(head, int | float) and not math.isnan(head) else None
