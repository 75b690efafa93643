"""Circuits: how much of a model's answer sets of edges preserve, overall and by phrasing."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pandas as pd

from interp.errors import UserError
from interp.estimates.shown import Estimated
from interp.measurements.circuits import tables
from interp.measurements.pairs import PairResult
from interp.report.glance import Opening, headline
from interp.report.page import FigureItem, OnPage, PictureItem, TableItem
from interp.report.pairs import Browser, Grid, Labels, Number, Panel, by_pair
from interp.results.measured import ResultTables
from interp.results.result import chosen
from interp.runs.edge_effects import EdgesRun
from interp.statistics.summaries import grouped

if TYPE_CHECKING:
    from interp.report.html import Display

_AREAS = """f is the share of the difference between the two prompts of a pair that a circuit keeps:
it is 1 for the whole model, and 0 for the corrupt prompt. cmd: area under |1 - f| over the share of
edges; 0 is best, and tables are ranked by cmd. cpr: area under f, capped at 1 for each circuit; at
most 0.999. method: the source of the effects that rank the edges; exact patches every edge, and
random is the mean of five random rankings. greedy adds edges from the logits upwards; top takes the
largest. 95% intervals are from a bootstrap over clusters{clusters}."""

_SPLIT = """Circuits were chosen by the effects for half of the values of {factor}: {chosen}.
distance: how far the circuit's mean metric lies from that of the whole model, over the pairs with
this value; in units of the mean difference between the two prompts over all pairs."""

_SURVIVAL = """The smallest circuit whose distance is at most bound for each value of {factor} that
it was chosen by ({chosen}), tested on the {tested} other values. held: number of tested values
within the bound; worst: the tested value with the largest distance."""

_PICTURE = """Circuits of growing size, chosen greedily by {method} effects and pruned. Each line
runs from a writer to a reader and is wider for a larger mean effect; point at a line for its
number, click on it for its pairs, and click on a component to see only its edges. Effects are
summed over all tokens. Below are the segments of one pair, with differing words underlined."""

NOT_BETTER = "not shown to reproduce the model better than random circuits (intervals of cmd)"


class CircuitAnswers(PairResult):
    """Answers of models that are restricted to the edges of circuits."""

    question = "How closely do circuits reproduce the answers of the whole model?"
    framed = "circuits"

    def __init__(self, measured: ResultTables, effects: pd.DataFrame | None = None) -> None:
        super().__init__(measured)
        self._in_memory = effects
        self._kept: dict[str, tuple[str, pd.DataFrame, pd.DataFrame, int]] = {}

    @property
    def circuits(self) -> pd.DataFrame:
        """The circuits table: one row per pair and circuit."""
        return self.table("circuits")

    def items(self) -> Iterator[TableItem | FigureItem | OnPage]:
        """Areas, shares f by size, and circuits that hold for all values of a factor."""
        note = _AREAS.format(clusters=f", one per {self.cluster}" if self.cluster else "")
        yield TableItem("circuit_area_table", "Circuits, ranked by cmd", self._areas, note)
        yield from self.declared_items()
        yield from self._split()
        yield OnPage(lambda: self._pictures)

    def meaning(self) -> str:
        """The meaning of CMD."""
        return "CMD is the mean distance from the whole model over circuit sizes; 0 is best."

    def opening(self) -> Opening:
        """The smallest cmd for each model, next to that of random circuits; a model's circuits."""
        table = self._areas
        is_random = table["method"] == "random"
        best, random = "CMD of the best ranking", "CMD of random edges"
        parts, ends = [], ("cmd_low", "cmd_high")
        for name, rows in ((best, table[~is_random]), (random, table[is_random])):
            label = rows["method"] + " " + rows["choice"]
            first = rows.drop_duplicates("model").assign(label=label)
            parts.append(headline(first, name, value="cmd", interval=ends, n="pairs", unit="pairs"))
        numbers = pd.concat(parts, ignore_index=True)
        return replace(super().opening(), numbers=numbers, picture=next(iter(self._pictures), None))

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """F by size."""
        trials = tables.circuit_trials(self.circuits, self.pairs)
        return (Estimated(tables.CIRCUITS, self.clustered(trials)),)

    @cached_property
    def _areas(self) -> pd.DataFrame:
        return tables.circuit_area_table(self.circuits, self.pairs, self.clusters)

    def browser(self) -> Browser:
        """With the answers that circuits leave."""
        return self.browsed(partial(circuit_panels, self.measured), self._numbers())

    def _numbers(self) -> Iterator[Number]:
        """How far circuits are from the whole model, and the effects of the edges drawn."""
        yield from circuit_numbers(self.measured)
        for model in self.measured.models():
            with suppress(UserError):
                method, effects, edges, _ = self._drawn(model)
                yield from drawn_numbers(effects, edges, {"model": model, "method": method})

    def effects(self, model: str) -> pd.DataFrame:
        """The effects that circuits were chosen by: pair_id, method, writer, reader, effect.

        Raises:
            UserError: the run of `edges` that contains the effects was moved or deleted.
        """
        from interp.measurements.circuits.measure import ranking

        effects, methods = self._in_memory, self._parameters.get("methods")
        if effects is None:
            folder = Path(str(self._parameters["edges"]))
            effects = EdgesRun.read(folder).effects(model, factor=self._factor)
        chosen = [str(name) for name in methods] if isinstance(methods, list) else None
        return ranking(effects, methods=chosen, split=self._factor)

    @property
    def _factor(self) -> str | None:
        split = self._parameters.get("split")
        return None if split is None else str(split)

    @cached_property
    def _chosen(self) -> list[str]:
        """The values of the split factor for which effects were used to choose the circuits."""
        factor = self._factor
        if factor is None:
            return []
        models = self.measured.models()
        return sorted(self.effects(models[0])[factor].unique())

    def _split(self) -> Iterator[TableItem]:
        """How the circuits do on each value of the split factor; empty without a split."""
        factor = self._factor
        if factor is None:
            return
        prompts = self.table("prompts", ["pair_id", factor]).drop_duplicates("pair_id")
        values = dict(zip(prompts["pair_id"], prompts[factor], strict=True))
        distances = tables.split_table(
            self.circuits, self.pairs, self.clusters, values, self._chosen
        )
        tested = distances.loc[~distances["chosen"].astype(bool), "value"].nunique()
        words = {"factor": factor, "chosen": ", ".join(self._chosen), "tested": tested}
        title = f"The smallest circuit that holds in every {factor}"
        survival = tables.survival_table(distances)
        greedy = survival[survival["choice"] == "greedy"].drop(columns="choice")
        note = _SURVIVAL.format(**words)
        yield TableItem("survival_table", title, survival, note, [(title, greedy)])
        note = _SPLIT.format(**words)
        yield TableItem("split_table", f"Circuits by {factor}", distances, note, narrow=())

    def draw(self, model: str | None = None) -> "Display":
        """Draw a model's greedy circuits by layer, for a notebook; readers can choose their size.

        Args:
            model: name of the model; by default, the first.

        Raises:
            UserError: there is no such model, or the effects of its edges were moved or deleted.
        """
        from interp.report.html import Display, source

        pairs = self.pairs if model is None else chosen(self.pairs, "model", model)
        drawn = self._picture(str(pairs["model"].iloc[0]), f"circuit{id(self)}")
        return Display(f"<style>{source('circuit.css')}</style>{drawn.html}")

    @cached_property
    def _pictures(self) -> Sequence[PictureItem]:
        """One picture for each model; none if the run of `edges` was moved."""
        pictures = []
        for number, model in enumerate(self.pairs["model"].unique()):
            with suppress(UserError):
                pictures.append(self._picture(str(model), f"circuit-{number}"))
        return pictures

    def _picture(self, model: str, name: str) -> PictureItem:
        """A picture of the circuits chosen by exact effects or, without these, the first method."""
        from interp.measurements.circuits.picture import circuit_picture

        method, _, edges, group = self._drawn(model)
        pairs = self.pairs
        pair = pairs.loc[pairs["model"] == model, ["clean_prompt_id", "corrupt_prompt_id"]].iloc[0]
        title = f"The circuit of {model}"
        areas = self._areas[(self._areas["model"] == model) & (self._areas["choice"] == "greedy")]
        high = areas.loc[areas["method"] == method, "cmd_high"].max()
        low = areas.loc[areas["method"] == "random", "cmd_low"].min()
        prompts = self.prompts.set_index("prompt_id").loc[pair]
        of, said = {"model": model, "method": method}, "" if high < low else NOT_BETTER
        html = circuit_picture(
            edges, prompts, group=group, name=name, label=title, said=said, of=of
        )
        return PictureItem(name, title, html, _PICTURE.format(method=method))

    def _drawn(self, model: str) -> tuple[str, pd.DataFrame, pd.DataFrame, int]:
        """The method whose circuits are drawn, its effects, its circuits, and heads per key."""
        if model not in self._kept:
            from interp.circuits.choice import greedy_members  # imports torch

            effects = self.effects(model)
            methods = list(effects["method"].unique())
            method = "exact" if "exact" in methods else methods[0]
            edges = effects[effects["method"] == method]
            self._kept[model] = (method, edges, *greedy_members(edges))
        return self._kept[model]


_NOTE = """The logit of {positive} minus that of {negative} on the clean prompt, with only the edges
of a circuit; random: the mean of its draws. The whole model: {whole:.3g}."""


def circuit_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The metric of the clean prompt, by ranking of the edges and share of them that is kept."""
    chosen = [("pair_id", "in", prompts["pair_id"].unique().tolist())]
    pairs = pd.concat(measured.parts("pairs", filters=chosen))
    about = {(str(row["model"]), str(row["pair_id"])): row for row in pairs.to_dict("records")}
    for part in measured.parts("circuits", filters=chosen):
        circuits = part.assign(ranking=part["method"] + " " + part["choice"])
        for pair, of, rows in by_pair(circuits, ["model"]):
            values = rows.pivot_table(index="ranking", columns="share", values="metric", sort=False)
            row = about[of["model"], pair]
            note = _NOTE.format(
                positive=row["positive_option"],
                negative=row["negative_option"],
                whole=row["base_metric"],
            )
            rankings = list(map(str, values.index))
            shares = [f"{100 * share:g}%" for share in values.columns]
            cells = values.to_numpy(dtype=float).tolist()
            yield pair, Grid("Answers with a circuit alone", of, rankings, shares, cells, note=note)


def drawn_numbers(effects: pd.DataFrame, edges: pd.DataFrame, of: Labels) -> Iterator[Number]:
    """The effect in logits, in each pair, of each edge of the picture."""
    from interp.measurements.circuits.picture import drawn_edges

    ends = ["writer", "reader"]
    rows = effects.merge(drawn_edges(edges)[ends].drop_duplicates(), on=ends)
    yield from _numbers("effect", rows, ends, "effect", of)


def circuit_numbers(measured: ResultTables) -> Iterator[Number]:
    """How far circuits are from the whole model: the mean over sizes of the distance in logits."""
    pairs = measured.table("pairs", ["model", "pair_id", "base_metric"])
    rows = measured.table("circuits").merge(pairs, on=["model", "pair_id"])
    rows = rows.assign(distance=(rows["metric"] - rows["base_metric"]).abs())
    name = "distance from the whole model in logits"
    yield from _numbers(name, rows, ["model", "method", "choice"], "distance")


def _numbers(
    name: str, rows: pd.DataFrame, by: Sequence[str], value: str, of: Labels = MappingProxyType({})
) -> Iterator[Number]:
    """The mean of a column in each pair, for each combination of `by`."""
    for cell, members in grouped(rows, by):
        means = members.groupby("pair_id", sort=False)[value].mean()
        labels = {**of, **{column: str(label) for column, label in cell.items()}}
        yield Number(name, labels, {str(pair): float(mean) for pair, mean in means.items()})
