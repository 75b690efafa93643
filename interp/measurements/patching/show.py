"""Patches: effects of another prompt's activations on answers, by role and by token."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

import pandas as pd

from interp.analysis.cautions.caution import Caution, ordered
from interp.choices import COUNTERPART
from interp.console import counted
from interp.errors import UserError, unknown
from interp.estimates.shown import Estimated
from interp.measurements.attribution.show import Attributions
from interp.measurements.pairs import PairResult
from interp.measurements.patching.guarantee import guarantee_tables
from interp.measurements.patching.node_sets import NODE_SETS, node_set_curves, node_set_table
from interp.measurements.patching.panels import patch_numbers, patch_panels
from interp.measurements.patching.tables import (
    EFFECTS,
    SHARED,
    agreement_table,
    effect_trials,
    premise_effects,
    verification_table,
)
from interp.report.glance import MOST_NUMBERS, Opening, headline
from interp.report.page import FigureItem, TableItem, Titled
from interp.report.pairs import Browser
from interp.results.result import chosen, figure_of
from interp.statistics.proportions import proportions
from interp.statistics.summaries import grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GUARANTEED = """Absolute values in logits. In checked pairs, drawn at random, all cells were also
run exactly. In an unchecked pair, no effect at the site exceeds its own estimate plus margin, with
probability {level:g}. This holds for a single pair, not simultaneously for all pairs; in 95% of
random choices of checked pairs, it holds for at least the share covered_low of the unchecked pairs
of this run. bound: the margin plus the largest estimate. effect_limit: the bound from checked pairs
without estimates; if it is lower than bound, estimates are useless."""

_BOUNDS = """Bounds for the cells of a single layer, head and role. Each bound holds for a pair with
probability {level:g}; all of them hold simultaneously with a lower probability."""

_CURVES = """Lines show means over pairs (those that the model recognizes, if any) and are linear
between sets. Bands are 95% intervals over clusters. 0 is the metric of the base
prompt, and 1 is that of its counterpart."""

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
        effects, *differences = self.declared_items()
        narrow = [*_by_layer(self._effects), *self._largest()]
        yield replace(effects, narrow=narrow, display=None)
        yield from differences
        absent = self.pairs.dropna(subset="absent")[["model", "absent"]].drop_duplicates()
        if len(absent):
            yield TableItem("absent_table", "Sites that some layers lack", absent)
        yield from self._estimates()
        yield from self._sets()

    def _largest(self) -> Iterator[Titled]:
        """The five largest effects of the counterpart over all pairs, with intervals and p."""
        table = self._effects
        every = table[(table["recognized"] == "all") & (table["source"] == COUNTERPART)]
        shared = ["model", "direction", "method", "source", "recognized"]
        for of, rows in grouped(every.dropna(subset="effect"), shared):
            order = rows["effect"].abs().sort_values(ascending=False, kind="stable").index
            shown = self.estimated[0].narrow(rows.loc[order[:5]], shared)
            shown = shown.drop(columns=["recovered", "flipped"], errors="ignore")
            yield f"Largest effects in logits: {of['model']}, {of['direction']}", shown

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """Those of every measurement, and whether any cell could be significant."""
        shown = self._effects[self._effects["recognized"] == "all"]
        return ordered((*super().cautions, *self.estimated[0].cautions(shown)))

    def browser(self) -> Browser:
        """With the pair's metrics, grids of effects, and the effect in each cell."""
        return self.browsed(partial(patch_panels, self.measured), patch_numbers(self.requested()))

    def noted(self) -> Mapping[str, Mapping[str, object]]:
        """Numbers of pairs, of recognized pairs and of errors."""
        recognized = self.pairs.groupby("model", sort=False)["recognized"].agg(
            lambda known: int(known.fillna(False).astype(bool).sum())
        )
        return {
            model: {**about, "recognized": int(recognized[model])}
            for model, about in super().noted().items()
        }

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
        known = self.clustered(self.pairs).dropna(subset="recognized").astype({"recognized": bool})
        shares = proportions(known, values=["recognized"], by=["model"], cluster="cluster")
        name = "share of pairs recognized"
        first = headline(shares, name, value="share", n="n", unit="pairs")
        sites = plain.numbers["number"].unique()[: MOST_NUMBERS - 1]
        effects = plain.numbers[plain.numbers["number"].isin(sites)]
        # A table without rows would turn the numbers into objects.
        numbers = pd.concat([first, effects] if len(effects) else [first], ignore_index=True)
        return replace(plain, numbers=numbers, figure=next(self.figures, None), extent=extent)

    @property
    def _parameters(self) -> Mapping[str, object]:
        return self.measured.about.parameters

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """Mean effects by cell and group of pairs."""
        trials = effect_trials(self.requested(), self.clustered(self.pairs))
        return (Estimated(EFFECTS, trials),)

    @property
    def _effects(self) -> pd.DataFrame:
        return self.estimated[0].frame

    def _heat_maps(self) -> Iterator[FigureItem]:
        """Heat maps per model, site and head: layer by role, and layer by token of one pair."""
        for _, rows in grouped(self._effects, _PANEL):
            yield _figure("layers_by_roles", rows)
        items: dict[str, FigureItem] = {}
        for part in self.requested():
            alone = part["position"].notna() & (part["source"] == COUNTERPART)
            for _, rows in grouped(part[alone], _PANEL):
                first = rows[rows["pair_id"] == rows["pair_id"].iloc[0]]
                item = _figure("layers_by_tokens", first)
                items.setdefault(item.name, item)
        yield from items.values()

    def _estimates(self) -> Iterator[TableItem]:
        """A run's estimates compared with exact effects; empty without estimates."""
        level = self._parameters.get("guarantee")
        if self._parameters.get("verify") or level is not None:
            table = verification_table(self.measured.parts("patches"))
            title = "Estimates against exact effects, in logits"
            yield _table("verification_table", title, table)
        if isinstance(level, float):
            parts = self.measured.parts("patches")
            sites, strata = guarantee_tables(parts, self.pairs, level=level)
            title = f"Bounds on the effects of an unchecked pair, with probability {level:g}"
            yield _table("guarantee_table", title, sites, _GUARANTEED.format(level=level))
            title, note = "Bounds by layer, head and role", _BOUNDS.format(level=level)
            yield TableItem("bound_table", title, strata, note, narrow=())

    def _sets(self) -> Iterator[TableItem | FigureItem]:
        """Effects of sets of cells, one table and one figure per model; empty if not requested."""
        if not self._parameters.get("sets"):
            return
        sets, pairs = self.table("node_sets"), self.clustered(self.pairs)
        table = node_set_table(sets, pairs)
        title = NODE_SETS.title
        yield _table(NODE_SETS.name, title, table, Estimated(NODE_SETS, table).note)
        curves = node_set_curves(sets, pairs)
        for cell, rows in grouped(curves, ["model"]):
            model, shared = str(cell["model"]), rows[rows["recognized"] == SHARED]
            draw = partial(_draw, "node_sets", shared if len(shared) else rows)
            yield FigureItem(_file_name("node_sets", model), f"{title}: {model}", draw, _CURVES)

    @property
    def _titled(self) -> Sequence[Titled]:
        return list(_by_layer(self._effects))


def agreement_items(patched: Patches, attributed: Attributions) -> Iterator[TableItem | FigureItem]:
    """Effects of patching the premises, compared prompt by prompt with their attribution scores."""
    if attributed.ratio is None:
        raise UserError(
            f"the prompts of {attributed.measured.about.system} do not name two segments to "
            "compare, so their attributions have no score ratios; use a run of a system that "
            "does, such as rulebreakers"
        )
    effects = premise_effects(patched.requested(), patched.pairs, attributed.ratios())
    yield TableItem("premise_effects", "Effects and scores of the premises", effects, narrow=())
    title = "Does the premise with the higher score have the larger effect?"
    yield TableItem("agreement_table", title, agreement_table(effects))
    for group, rows in grouped(effects, ["model", "site"]):
        name = _file_name("scores_and_effects", *map(str, group.values()))
        yield FigureItem(name, title, partial(_draw, "scores_and_effects", rows))


def _table(name: str, title: str, table: pd.DataFrame, note: str = "") -> TableItem:
    """A table; on the terminal, option columns with a single value and empty notes are left out."""
    option_columns = ("direction", "source", "sites", "level")
    said = [column for column in option_columns if column in table and table[column].nunique() == 1]
    if "note" in table and (table["note"] == "").all():
        said.append("note")
    return TableItem(name, title, table, note, [(title, table.drop(columns=said))])


def _draw(kind: str, rows: pd.DataFrame, **options: object) -> "Axes":
    """A figure of patches, by name; matplotlib is imported only when it is drawn."""
    from interp.measurements.patching import figures as patches

    drawn: Axes = getattr(patches, kind)(rows, **options)
    return drawn


def _figure(kind: str, rows: pd.DataFrame) -> FigureItem:
    """A heat map of the rows of one model, method, source, site and head."""
    head = _head(rows)
    parts = [str(rows[name].iloc[0]) for name in ("model", "method", "source", "site")]
    parts += [] if head is None else [f"head{head}"]
    title = f"{kind.replace('_', ' ').capitalize()}: {', '.join(parts)}"
    return FigureItem(_file_name(kind, *parts), title, partial(_draw, kind, rows, head=head))


def _file_name(*parts: str) -> str:
    """A figure's file name without its extension."""
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


def _by_layer(effects: pd.DataFrame) -> Iterator[Titled]:
    """Titled tables for a terminal: effects over all pairs, recovered shares over recognized pairs.

    Rows are roles and columns are layers; each table has as many layers as fit side by side.
    """
    for cell, rows in grouped(effects, ["model", "direction", "method", "source", "site"]):
        where = ", ".join(map(str, cell.values()))
        every = rows[rows["recognized"] == "all"]
        recognized = rows[rows["recognized"] == SHARED]
        none = " (the model gets both sides right in none)"
        none *= bool((recognized["pairs"] == 0).all())
        yield from _titled(f"Effect in logits, mean over pairs{none}: {where}", every, "effect")
        if recognized["recovered"].notna().any():
            title = f"Recovered share, recognized pairs: {where}"
            yield from _titled(title, recognized, "recovered")


def _titled(title: str, rows: pd.DataFrame, value: str) -> Iterator[Titled]:
    """One column of the effect table, as tables of roles by layers that fit the terminal."""
    index = ["head", "role", "pairs"] if rows["head"].notna().any() else ["role", "pairs"]
    # + 0.0 turns -0.0 into 0.0.
    texts = ["-" if math.isnan(own) else f"{round(own, 3) + 0.0:.3f}" for own in rows[value]]
    shown = rows.assign(head=rows["head"].astype("Int64"), text=texts)
    table = shown.pivot(index=index, columns="layer", values="text").fillna("")
    table = table.loc[list(shown[index].drop_duplicates().itertuples(index=False, name=None))]
    names = table.index.to_frame(index=False)
    widths = [max(map(len, [str(n), *own.astype(str)])) + 1 for n, own in names.items()]
    beside = max(1, (79 - sum(widths)) // 8)  # a number such as "-10.123" takes 8 of 79 characters
    for first in range(0, table.shape[1], beside):
        layers = table.iloc[:, first : first + beside].reset_index(drop=True)
        yield title, pd.concat([names, layers.add_prefix("layer_")], axis="columns")
