"""Patches: effects of another prompt's activations on answers, by role and by token."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from interp.analysis.cautions.caution import Caution, ordered
from interp.choices import COUNTERPART
from interp.console import counted
from interp.errors import UserError, unknown
from interp.estimates.shown import Estimated
from interp.measurements.pairs import PairResult
from interp.measurements.patching.guarantee import guarantee_items, table_item
from interp.measurements.patching.tables import (
    EFFECTS,
    NODE_SETS,
    SHARED,
    effect_trials,
    node_set_table,
    verification_table,
)
from interp.report.glance import MOST_NUMBERS, Opening, headline
from interp.report.page import FigureItem, TableItem
from interp.report.pairs import Browser, Grid, Panel, Table
from interp.results.measured import ResultTables
from interp.results.result import chosen, figure_of
from interp.statistics.proportions import proportions
from interp.statistics.summaries import grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANEL = ("model", "method", "source", "site", "head")
"""The columns of `patches` that have a single value in each heat map."""


class Patches(PairResult):
    """The effects of patches on models' answers."""

    question = "Where do activations of the other prompt change the answer?"
    framed = "patches"

    @property
    def patches(self) -> pd.DataFrame:
        """The patches table: one row per pair, method and cell."""
        return self.table("patches")

    @property
    def node_sets(self) -> pd.DataFrame | None:
        """The node_sets table, one row per pair, ranking and set; None if not requested."""
        return self.table("node_sets") if "node_sets" in self.measured.names() else None

    def summary(self) -> pd.DataFrame:
        """Means over pairs, with tests and intervals over clusters (`EFFECTS`); effects in logits.

        One row per model, direction, method, source, site, layer, head, role and group of pairs.
        `recognized` is "yes" for pairs that the model answers correctly on both sides, "no" for
        other pairs, and "all" for all pairs. `recovered` is the mean effect divided by the mean
        difference between the two prompts: 1 if the patch yields the answer of its source prompt.
        """
        return self._effects

    def plot(
        self, value: Literal["effect", "recovered"] = "effect", **which: str | int
    ) -> "Figure":
        """Effects of patches by layer and role, as a heat map.

        Args:
            value: effect, over all pairs, or recovered, over pairs that the model recognizes.
            which: values for columns of the summary, such as model, site and head; by default, each
                column's first value.

        Raises:
            UserError: there is no such value.
        """
        rows = _first(self._effects, which)
        recognized = SHARED if value == "recovered" else "all"
        options = {"value": value, "recognized": recognized, "head": _head(rows)}
        return figure_of(_draw("layers_by_roles", rows, **options))

    def plot_tokens(self, pair: str | None = None, **which: str | int) -> "Figure":
        """The effects of patching each token of one pair, by layer.

        Args:
            pair: a `pair_id`; by default the first.
            which: as in `plot`.

        Raises:
            UserError: the pair was not patched token by token, or there is no such value.
        """
        rows = pd.concat(self.requested(), ignore_index=True)
        rows = rows[rows["position"].notna()]
        if rows.empty:
            raise UserError('nothing was patched token by token; set granularity="position"')
        rows = _first(rows if pair is None else chosen(rows, "pair_id", pair), which)
        rows = rows[rows["pair_id"] == rows["pair_id"].iloc[0]]
        return figure_of(_draw("layers_by_tokens", rows, head=_head(rows)))

    def requested(self) -> Iterator[pd.DataFrame]:
        """The patches of every cell by the requested method, in parts that fit into memory.

        Exact effects that verify an estimate are omitted, since only large estimates are verified.
        """
        # A study or a call from Python may have used default values, which are not recorded.
        method = str(self._parameters.get("estimate") or "exact")
        return self.measured.parts("patches", filters=[("method", "==", method)])

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Heat maps, effects by role, checks on estimates, and sets of cells."""
        yield from self._heat_maps()
        yield from self.declared_items()
        absent = self.pairs.dropna(subset="absent")[["model", "absent"]].drop_duplicates()
        if len(absent):
            yield TableItem("absent_table", "Sites that some layers lack", absent)
        yield from self._estimates()
        yield from self._sets()

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """Those of every measurement, and whether any cell could be significant."""
        shown = self._effects[self._effects["recognized"] == "all"]
        return ordered((*super().cautions, *self.estimated[0].cautions(shown)))

    def browser(self) -> Browser:
        """With the pair's metrics, grids of effects, and the effect in each cell."""
        return self.browsed(partial(patch_panels, self.measured))

    def meaning(self) -> str:
        """What an effect is, and which sign it has if a patch brings about the other answer."""
        return f"{super().meaning()} {self._sign_of_success()}".strip()

    def _sign_of_success(self) -> str:
        columns = ["pair_id", "direction", "clean_prompt_id", "corrupt_prompt_id"]
        pairs = self.table("pairs", [*columns, "positive_option"]).dropna()
        pairs = pairs.drop_duplicates(columns)
        if pairs.empty:
            return ""
        clean, denoising = pairs["clean_prompt_id"], pairs["direction"] == "denoising"
        source = clean.where(denoising, pairs["corrupt_prompt_id"])
        gold = self.table("prompts", ["prompt_id", "gold"]).set_index("prompt_id")["gold"]
        positive = int((source.map(gold) == pairs["positive_option"]).sum())
        if 0 < positive < len(pairs):
            sign = (
                f"positive in {positive:,} of {counted(len(pairs), 'pair')} and negative in others"
            )
        else:
            sign = "positive" if positive else "negative"
        return f"A patch that brings about the right answer to its source prompt is {sign}."

    def opening(self) -> Opening:
        """The pairs that each model recognizes, the largest effects, and the first heat map."""
        plain, extent = super().opening(), self.extent(self.meaning())  # a number says the rest
        pairs = self.clustered(self.pairs).dropna(subset="recognized").astype({"recognized": bool})
        shares = proportions(pairs, values=["recognized"], by=["model"], cluster="cluster")
        name = "share of pairs recognized"
        first = headline(shares, name, value="share", n="n", unit="pairs")
        sites = plain.numbers["number"].unique()[: MOST_NUMBERS - 1]
        effects = plain.numbers[plain.numbers["number"].isin(sites)]
        # A table without rows would turn the numbers into objects.
        numbers = pd.concat([first, effects] if len(effects) else [first], ignore_index=True)
        return replace(plain, numbers=numbers, figure=next(self.figures, None), extent=extent)

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """Mean effects by cell and group of pairs."""
        return (Estimated(EFFECTS, effect_trials(self.requested(), self.clustered(self.pairs))),)

    @property
    def _effects(self) -> pd.DataFrame:
        return self.estimated[0].frame

    def _heat_maps(self) -> Iterator[FigureItem]:
        for _, rows in grouped(self._effects, _PANEL):
            head = _head(rows)
            parts = [str(rows[name].iloc[0]) for name in ("model", "method", "source", "site")]
            parts += [] if head is None else [f"head{head}"]
            draw = partial(_draw, "layers_by_roles", rows, head=head)
            title = f"Layers by roles: {', '.join(parts)}"
            yield FigureItem(_file_name("layers_by_roles", *parts), title, draw)

    def _estimates(self) -> Iterator[TableItem]:
        """A run's estimates compared with exact effects; empty without estimates."""
        level = self._parameters.get("guarantee")
        if self._parameters.get("verify") or level is not None:
            title = "Estimates against exact effects, in logits"
            table = verification_table(self.measured.parts("patches"))
            yield table_item("verification_table", title, table)
        if level is not None:
            parts = self.measured.parts("patches")
            bounded, by = "no effect at the site", "layer, head and role"
            yield from guarantee_items(parts, self.pairs, level, bounded=bounded, by=by)

    def _sets(self) -> Iterator[TableItem]:
        if not self._parameters.get("sets"):
            return
        table = node_set_table(self.table("node_sets"), self.clustered(self.pairs))
        yield table_item(NODE_SETS.name, NODE_SETS.title, table, Estimated(NODE_SETS, table).note)


def _draw(kind: str, rows: pd.DataFrame, **options: object) -> "Axes":
    """A figure of patches, by name; matplotlib is imported only when it is drawn."""
    from interp.measurements.patching import figures as patches

    drawn: Axes = getattr(patches, kind)(rows, **options)
    return drawn


def _file_name(*parts: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "_", "-".join(parts))


def _first(table: pd.DataFrame, which: Mapping[str, str | int]) -> pd.DataFrame:
    """The rows with the requested values and, in each of the other columns, a single value.

    In `source`, that value is the counterpart; in each other column, the first in the table.
    """
    if table.empty:
        raise UserError("no pair could be patched, so there is no figure; see the table pairs")
    columns = ("direction", *_PANEL)
    for name in which:
        if name not in columns:
            raise UserError(unknown("choice", name, columns))
    for name in columns:
        default = COUNTERPART if name == "source" else table[name].iloc[0]
        value = which.get(name, default)
        table = table if pd.isna(value) else chosen(table, name, value)
    return table


def _head(rows: pd.DataFrame) -> int | None:
    """The head of one figure's rows; None if the site has no heads."""
    head = rows["head"].iloc[0]
    return None if pd.isna(head) else int(head)


_GRID = ("model", "direction", "method", "source", "site", "head")
"""The columns of `patches` that have a single value in a grid."""


def patch_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The metrics of each pair, and grids of its effects."""
    chosen = [("pair_id", "in", prompts["pair_id"].unique().tolist())]
    pairs = pd.concat(measured.parts("pairs", filters=chosen), ignore_index=True)
    contrasts = {}
    for row in pairs.to_dict("records"):
        pair = str(row["pair_id"])
        said = f"the logit of {row['positive_option']} minus that of {row['negative_option']}"
        contrasts[pair] = said
        of = {"model": str(row["model"]), "direction": str(row["direction"])}
        if row["error"]:
            yield pair, Table("Metrics", of, ["error"], [[str(row["error"])]])
            continue
        cells: list[list[str | float]] = [
            [_NAMES[name], float(row[name])] for name in _NAMES if pd.notna(row[name])
        ]
        yield pair, Table("Metrics", of, ["prompt", "metric"], cells, note=f"The metric is {said}.")
    for part in measured.parts("patches", filters=chosen):
        for key, rows in grouped(part, ["pair_id", *_GRID]):
            pair = str(key["pair_id"])
            note = f"Change in {contrasts.get(pair, 'the metric')} when a cell is patched."
            yield pair, _grid(rows, named({name: key[name] for name in _GRID}), note)


_NAMES = {
    "base_metric": "base, which is patched",
    "source_metric": "source, from which activations come",
    "control_metric": "control",
}
"""What the metrics of the pairs table are about."""


def _grid(rows: pd.DataFrame, of: Mapping[str, str], note: str) -> Grid:
    """Layers by tokens, if the pair was patched token by token, otherwise roles by layers."""
    if rows["position"].notna().any():
        grid = rows.pivot_table(index="layer", columns="position", values="effect", dropna=False)
        tokens = rows.drop_duplicates("position").set_index("position")["token"]
        texts = tokens.loc[grid.columns].astype(str)
        shown = [text.replace("\n", "↵").strip() or "␣" for text in texts]
        layers = [f"layer {layer}" for layer in grid.index]
        return Grid(
            "Effects by layer and token", of, layers, shown, grid.to_numpy().tolist(), note=note
        )
    grid = rows.pivot_table(index="role", columns="layer", values="effect", dropna=False)
    grid = grid.reindex(rows["role"].drop_duplicates())
    layers = [f"layer {layer}" for layer in grid.columns]
    roles, values = list(map(str, grid.index)), grid.to_numpy(dtype=float).tolist()
    return Grid("Effects by layer and role", of, roles, layers, values, note=note)


def named(key: Mapping[str, Any]) -> dict[str, str]:
    """The values of a key as texts, without missing ones; whole numbers have no decimals."""
    return {
        name: f"{value:.0f}" if isinstance(value, float) else str(value)
        for name, value in key.items()
        if pd.notna(value)
    }
