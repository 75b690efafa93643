"""The report on a run of `patch`: effects by role, heat maps, estimates next to exact effects."""

import math
import re
from collections.abc import Hashable, Iterator
from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from interp.analysis.groups import grouped
from interp.analysis.node_sets import node_set_curves, node_set_table
from interp.analysis.patching_effects import (
    SHARED,
    Parts,
    effect_table,
    in_parts,
    verification_table,
)
from interp.analysis.patching_guarantee import guarantee_tables
from interp.choices import COUNTERPART
from interp.console import counted
from interp.prompts.systems import dependence_factor
from interp.report.figures.patches import layers_by_roles, layers_by_tokens, node_sets
from interp.report.page import FigureItem, Report, Section, TableItem
from interp.report.run_report import missing_shards, run_record
from interp.runs.folder import RunFolder

_EFFECTS = """Mean over pairs, in logits, with 95% intervals by a bootstrap over clusters{clusters}.
recovered: mean effect over mean difference between the two prompts, of recognized pairs; 1 is the
metric of the counterpart. p_holm: corrected over the cells of a model, source and group of pairs.
Patches from a control, the same prompt about other entities with the same correct answer, have the
effect of a prompt whose parts disagree; beyond control is what the counterpart does more."""


_GUARANTEED = """Logits, without signs. In checked pairs, drawn at random, all cells were run as
well. In a pair that was not checked no effect at the site is larger than its own estimate plus
margin, with a probability of {level:g}. That is said of one pair, not of all pairs at once; of the
unchecked pairs of this run, it holds for at least the share covered_low, in 95% of all draws.
bound: the margin on top of the largest estimate. effect_limit: the bound that checked pairs give
without any estimate; where it is the lower one, estimates are of no use."""

_BOUNDS = """The same for the cells of one layer, head and role alone: a pair holds each of these
bounds with a probability of {level:g}, and all of them at once less often."""

_SETS = """Cells are ranked by the size of their effect, or at random, and the first ones are
patched from the counterpart at once; what is not in the set is computed from them. NS is the share
of the way from the base prompt's metric to its counterpart's. cpr: area under NS over the share of
the cells, high is good; cmd: area of |1 - NS|, low is good. Means over pairs, 95% intervals by a
bootstrap over clusters. left_out: pairs whose prompts differ by less than 0.1 logits."""

_CURVES = """Lines: mean over pairs (those that the model recognizes, if any), linear between sets;
bands: 95% intervals by a bootstrap over clusters. 0 is the metric of the base prompt, 1 that of its
counterpart."""


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
    clusters = f" of one {factor}" if (factor := dependence_factor(run.record.run.system)) else ""
    note = _EFFECTS.format(clusters=clusters)
    tables = [TableItem("effect_table", "Effects by role", effects, note=note)]
    tables += estimate_tables(run)
    origin = run.record.run
    return Report(
        title=f"patch {origin.system}",
        text=f"{counted(pairs['pair_id'].nunique(), 'pair')}, "
        f"{counted(len(run.record.models), 'model')}.",
        sections=(
            Section(
                "Results",
                items=(*heat_map_items(effects, asked_patches(run)), *tables, *set_items(run)),
            ),
        ),
        record=run_record(run),
        problems=tuple(missing_shards(run)),
    )


def run_effects(run: RunFolder) -> pd.DataFrame:
    """The effect table of a run; pairs are clustered by the system's factor, if it has one."""
    return effect_table(asked_patches(run), _clustered(run), cluster="cluster")


def _clustered(run: RunFolder) -> pd.DataFrame:
    """The pairs with the column cluster: the system's factor, or each pair for itself."""
    pairs, factor = run.table("pairs"), dependence_factor(run.record.run.system)
    if factor is None:
        return pairs.assign(cluster=pairs["pair_id"])
    of_pair = run.table("prompts", ["pair_id", factor]).drop_duplicates("pair_id")
    return pairs.merge(of_pair.rename(columns={factor: "cluster"}), on="pair_id", how="left")


def estimate_tables(run: RunFolder) -> Iterator[TableItem]:
    """What exact effects say of the estimates of a run; nothing where none were estimated."""
    parameters = run.record.run.parameters
    level = parameters.get("guarantee")
    if parameters.get("verify") or level is not None:
        verified = verification_table(run.parts("patches"))
        yield TableItem(
            "verification_table", "Estimates against exact effects, in logits", verified
        )
    if isinstance(level, float):
        sites, strata = guarantee_tables(run.parts("patches"), run.table("pairs"), level=level)
        title = f"Bounds on the effects of a pair that was not checked, in {level:g} of such pairs"
        yield TableItem("guarantee_table", title, sites, note=_GUARANTEED.format(level=level))
        title, note = "Bounds by layer, head and role", _BOUNDS.format(level=level)
        yield TableItem("bound_table", title, strata, note=note)


def set_items(run: RunFolder) -> Iterator[TableItem | FigureItem]:
    """What sets of cells carry: a table, and a figure of each model; nothing if none were asked."""
    if not run.record.run.parameters.get("sets"):
        return
    sets, pairs = run.table("node_sets"), _clustered(run)
    table = node_set_table(sets, pairs, cluster="cluster")
    yield TableItem("node_set_table", "Sets of cells patched at once", table, note=_SETS)
    curves = node_set_curves(sets, pairs, cluster="cluster")
    for cell, rows in grouped(curves, ["model"]):
        model, shared = str(cell["model"]), rows[rows["recognized"] == SHARED]
        drawn = shared if len(shared) else rows
        name, title = file_name("node_sets", model), f"Sets of cells patched at once: {model}"
        yield FigureItem(name, title, partial(node_sets, drawn), note=_CURVES)


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
    name = file_name(kind, *parts)
    return FigureItem(name, f"{kind.replace('_', ' ').capitalize()}: {', '.join(parts)}", draw)


def file_name(*parts: str) -> str:
    """The stem of a figure's files."""
    return re.sub(r"[^A-Za-z0-9-]+", "_", "-".join(parts))


def _head(cell: dict[str, object]) -> int | None:
    """The head of a group of rows; None where the site has none."""
    head = cell["head"]
    return int(head) if isinstance(head, int | float) and not math.isnan(head) else None
