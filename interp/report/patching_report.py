"""The report on a run of `patch`: effects by role, heat maps, estimates next to exact effects."""

import math
import re
from collections.abc import Hashable, Iterator
from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from interp.analysis.groups import grouped
from interp.analysis.patching_effects import (
    SHARED,
    Parts,
    effect_table,
    in_parts,
    verification_table,
)
from interp.choices import COUNTERPART
from interp.prompts.systems import cluster_factor
from interp.report.page import FigureItem, Report, Section, TableItem
from interp.report.patch_figures import layers_by_roles, layers_by_tokens
from interp.report.run_report import counted, missing_shards, run_record
from interp.runs.folder import RunFolder

_EFFECTS = """Mean over pairs, in logits, with 95% intervals by a bootstrap over clusters{clusters}.
recovered: mean effect over mean difference between the two prompts, of recognized pairs; 1 is the
metric of the counterpart. p_holm: corrected over the cells of a model, source and group of pairs.
Patches from a control, the same prompt about other entities with the same correct answer, have the
effect of a prompt whose parts disagree; beyond control is what the counterpart does more."""


_FIGURE = ["model", "method", "source", "site", "head"]
"""What a figure shows one of."""


_TERMINAL = 79
_NUMBER = 8
"""Characters of a line, and of a column of numbers such as "-10.123"."""


def report_of_patching(run: RunFolder) -> Report:
    """The report on a run of `patch`, finished or not.

    Raises:
        UserError: nothing was measured yet.
    """
    pairs = run.table("pairs")
    effects = run_effects(run)
    clusters = f" of one {factor}" if (factor := cluster_factor(run.record.run.system)) else ""
    note = _EFFECTS.format(clusters=clusters)
    tables = [TableItem("effect_table", "Effects by role", effects, note=note)]
    if run.record.run.parameters.get("verify"):
        verified = verification_table(run.parts("patches"))
        tables.append(TableItem("verification_table", "Estimates against exact effects", verified))
    origin = run.record.run
    return Report(
        title=f"patch {origin.system}",
        text=f"{counted(pairs['pair_id'].nunique(), 'pair')}, "
        f"{counted(len(run.record.models), 'model')}.",
        sections=(
            Section("Results", items=(*heat_map_items(effects, asked_patches(run)), *tables)),
        ),
        record=run_record(run),
        problems=tuple(missing_shards(run)),
    )


def run_effects(run: RunFolder) -> pd.DataFrame:
    """The effect table of a run; pairs are clustered by the system's factor, if it has one."""
    pairs, factor = run.table("pairs"), cluster_factor(run.record.run.system)
    if factor is None:
        return effect_table(asked_patches(run), pairs)
    of_pair = run.table("prompts", ["pair_id", factor]).drop_duplicates("pair_id")
    clustered = pairs.merge(of_pair.rename(columns={factor: "cluster"}), on="pair_id", how="left")
    return effect_table(asked_patches(run), clustered, cluster="cluster")


def asked_patches(run: RunFolder) -> Iterator[pd.DataFrame]:
    """The patches of every cell, by the method that was asked for, shard by shard.

    The cells that were verified after an estimate are the largest ones and not representative.
    """
    # A study, or Python, may have measured with the defaults, which are not recorded.
    method = str(run.record.run.parameters.get("estimate") or "exact")
    return run.parts("patches", filters=[("method", "==", method)])


def heat_map_items(effects: pd.DataFrame, patches: Parts) -> Iterator[FigureItem]:
    """Heat maps of each model, method, site and head: layers by roles, layers by tokens."""
    for cell, rows in grouped(effects, _FIGURE):
        yield _figure("layers_by_roles", cell, partial(layers_by_roles, rows, head=_head(cell)))
    for cell, rows in _first_pairs(patches):
        yield _figure("layers_by_tokens", cell, partial(layers_by_tokens, rows, head=_head(cell)))


def _first_pairs(patches: Parts) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
    """For each figure the tokens of the first pair that was patched token by token."""
    seen = set()
    for part in in_parts(patches):
        alone = part["position"].notna() & (part["source"] == COUNTERPART)
        for cell, rows in grouped(part[alone], _FIGURE):
            key = tuple(map(str, cell.values()))
            if key not in seen:
                seen.add(key)
                yield cell, rows[rows["pair_id"] == rows["pair_id"].iloc[0]]


def effects_for_people(effects: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Titled tables that fit a terminal, one or more per model and site.

    Effects of all pairs, and recovered shares of recognized ones where they are defined; roles
    down, layers across, as many of them as fit side by side.
    """
    for cell, rows in grouped(effects, ["model", "direction", "method", "source", "site"]):
        where = ", ".join(map(str, cell.values()))
        every = rows[rows["recognized"] == "all"]
        yield from _titled(f"Effect in logits, mean over pairs: {where}", every, "effect")
        recognized = rows[rows["recognized"] == SHARED]
        if recognized["recovered"].notna().any():
            title = f"Recovered share, recognized pairs: {where}"
            yield from _titled(title, recognized, "recovered")


def _titled(title: str, rows: pd.DataFrame, value: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """A title and a table of one column of the effect table for each width of a terminal."""
    index = ["head", "role", "pairs"] if rows["head"].notna().any() else ["role", "pairs"]
    shown = rows.assign(head=rows["head"].astype("Int64"), text=rows[value].map(_number_text))
    table = shown.pivot(index=index, columns="layer", values="text").fillna("")
    table = table.loc[list(shown[index].drop_duplicates().itertuples(index=False, name=None))]
    names = table.index.to_frame(index=False)
    beside = max(1, (_TERMINAL - sum(map(_width, names.items()))) // _NUMBER)
    for first in range(0, table.shape[1], beside):
        layers = table.iloc[:, first : first + beside].reset_index(drop=True)
        yield title, pd.concat([names, layers.add_prefix("layer_")], axis="columns")


def _number_text(number: float) -> str:
    # + 0.0 turns -0.0 into 0.0.
    return "-" if math.isnan(number) else f"{round(number, 3) + 0.0:.3f}"


def _width(column: tuple[Hashable, pd.Series]) -> int:
    """Characters that a column takes on the terminal, with the space behind it."""
    name, values = column
    return max(map(len, [str(name), *values.astype(str)])) + 1


def _figure(kind: str, cell: dict[str, object], draw: "partial[Axes]") -> FigureItem:
    head = _head(cell)
    parts = [str(cell[name]) for name in ("model", "method", "source", "site")]
    parts += [] if head is None else [f"head{head}"]
    name = re.sub(r"[^A-Za-z0-9-]+", "_", "-".join([kind, *parts]))
    return FigureItem(name, f"{kind.replace('_', ' ').capitalize()}: {', '.join(parts)}", draw)


def _head(cell: dict[str, object]) -> int | None:
    """The head of a group of rows; None where the site has none."""
    head = cell["head"]
    return int(head) if isinstance(head, int | float) and not math.isnan(head) else None
