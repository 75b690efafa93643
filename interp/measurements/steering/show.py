"""Steered: effects of changes of the residual stream along directions, beside their placebos."""

import re
from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from interp.analysis.cautions.caution import PLACEBOS, Caution, ordered
from interp.analysis.cautions.sample import reach_cautions
from interp.measurements.steering.panels import steering_numbers, steering_panels
from interp.measurements.steering.tables import CELL, FAMILY, as_lines, largest, steering_table
from interp.report.formatting import segment_label
from interp.report.glance import headline
from interp.report.page import FigureItem, TableItem
from interp.report.pairs import Number, Panel
from interp.results.result import Result, errors_by_model
from interp.statistics.decisions import corrected_over, out_of_reach
from interp.statistics.summaries import grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_EFFECTS = """Mean over prompts, in logits, of how much a change moves the answer from the correct
option to the other one, with 95% intervals over clusters{clusters}. placebo: the same for random
directions whose change has the same norm; beyond: effect minus placebo, prompt by prompt. third:
for the prompt's own word and a third one. turned: share of prompts whose preferred answer changes.
p_holm: for beyond, corrected over the roles and layers of a model, side, direction, change and
dose: {over}. An empty layer is a band of layers, changed together."""

_CURVE = (
    "Bands are 95% intervals over clusters. The largest of several layers is not a fair sample."
)

_NUMBERS = ["effect", "placebo", "beyond", "third"]


class Steered(Result):
    """The effects of changes of the residual stream on models' answers."""

    question = "Does the answer change with the directions, more than with random ones?"

    def to_frame(self) -> pd.DataFrame:
        """One row per prompt, direction, change, dose, role, layer, source and draw."""
        return self.table("steering_effects")

    @cached_property
    def effects(self) -> pd.DataFrame:
        """Mean effects, with those of placebos, intervals and tests."""
        return steering_table(self.table("steering_effects"), self.prompts, self.clusters)

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """Those of every measurement, and whether random directions do as much, if it is tested."""
        families = (rows for _, rows in grouped(self.effects, FAMILY))
        reach = reach_cautions(families, clusters_for=lambda _: None)
        return ordered((*super().cautions, *_no_better(self.effects), *reach))

    def panels(self, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
        """Effects by layer and role."""
        yield from steering_panels(self.measured, prompts)

    def numbers(self) -> Iterator[Number]:
        """The effect of each direction."""
        yield from steering_numbers(self.measured)

    def noted(self) -> Mapping[str, object]:
        """The most frequent errors of each model."""
        return errors_by_model(self.table("steered"))

    def items(self) -> Iterator[TableItem | FigureItem]:
        """The effects, and curves over layers and doses."""
        table = self.effects
        cluster = self.cluster
        over = corrected_over(rows for _, rows in grouped(table, FAMILY))
        note = _EFFECTS.format(clusters=f", one per {cluster}" if cluster else "", over=over)
        yield from self._curves()
        shown = [
            (f"Effects in logits: {_named(of)} (p_holm: {over})", _narrow(rows))
            for of, rows in grouped(table, [*FAMILY, "role"])
        ]
        yield TableItem("steering_table", "Effects of steering, in logits", table, note, shown)

    def headline(self) -> pd.DataFrame:
        """For each change and direction, the largest effect beyond the placebo."""
        parts = []
        table = self.effects
        for of, rows in grouped(table, ["direction", "change"]):
            first = largest(rows, ["model"])
            what = f"{of['change']} ({of['direction']})"
            at = first.assign(
                label=_where(first), low=first["beyond_low"], high=first["beyond_high"]
            )
            name = f"{what} beyond random directions, in logits"
            parts.append(headline(at, name, value="beyond", n="prompts", unit="prompts"))
            plain = first.assign(label="", low=float("nan"), high=float("nan"), note=" ")
            parts.append(
                headline(
                    plain, f"{what}: answers turned", value="turned", n="prompts", unit="prompts"
                )
            )
        return pd.concat(parts, ignore_index=True) if parts else super().headline()

    def main_figure(self, numbers: pd.DataFrame) -> FigureItem | None:
        """The first curve."""
        return next((item for item in self.shown if isinstance(item, FigureItem)), None)

    def _curves(self) -> Iterator[FigureItem]:
        """Effects by layer, at the first dose; and by dose, where the effect is largest."""
        table = self.effects
        by = ["model", "side", "direction", "change"]
        for of, rows in grouped(table, by):
            name = "-".join(map(str, of.values()))
            title = f"{of['model']}, {of['side']}, {of['change']} ({of['direction']})"
            one = rows[rows["dose"] == rows["dose"].iloc[0]]
            for role, own in one.dropna(subset="layer").groupby("role", sort=False):
                if own["layer"].nunique() > 1:
                    which = f"effect by layer at {segment_label(str(role))}: {title}"
                    draw = partial(_draw, own, "layer")
                    yield FigureItem(_file(f"by_layer-{name}-{role}"), which, draw, _CURVE)
            if rows["dose"].nunique() > 1:
                (best,) = largest(rows, by).to_dict("records")
                place = (
                    rows["layer"].isna()
                    if pd.isna(best["layer"])
                    else rows["layer"] == best["layer"]
                )
                own = rows[place & (rows["role"] == best["role"])]
                which = f"effect by dose, {_place(best)}: {title}"
                yield FigureItem(
                    _file(f"by_dose-{name}"), which, partial(_draw, own, "dose"), _CURVE
                )


def _named(of: Mapping[str, object]) -> str:
    """What a table is about, such as "NAME, rulebreaker, swap (jacobian), dose 1, last"."""
    return (
        f"{of['model']}, {of['side']}, {of['change']} ({of['direction']}), dose {of['dose']:g}, "
        f"{segment_label(str(of['role']))}"
    )


def _draw(rows: pd.DataFrame, x: str) -> "Axes":
    from interp.report.figures.lines import lines

    return lines(as_lines(rows), x=x, y="logits", hue="line", n="prompts", interval=("low", "high"))


def _file(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "_", name)


def _narrow(rows: pd.DataFrame) -> pd.DataFrame:
    """The columns that a terminal shows."""
    shown = rows[["layer"]].astype("Int64")
    for name in _NUMBERS:
        if rows[name].notna().any():
            shown[name] = rows[name]
    return shown.join(rows[["p_holm", "turned", "placebo_turned", "prompts"]])


def _place(row: Mapping[Hashable, Any]) -> str:
    layer = row["layer"]
    where = "band of layers" if pd.isna(layer) else f"layer {layer:.0f}"
    return f"{where}, {segment_label(str(row['role']))}"


def _where(rows: pd.DataFrame) -> pd.Series:
    return pd.Series([f"{_place(row)}:" for row in rows.to_dict("records")], rows.index, dtype=str)


def _no_better(table: pd.DataFrame) -> Iterator[Caution]:
    """A caution about each model whose effects are no larger than those of random directions."""
    tested = table[table["p_holm"].notna() & ~out_of_reach(table)]
    for of, rows in grouped(tested, ["model", "direction", "change"]):
        if (rows["p_holm"] > 0.05).all():
            (best,) = largest(rows, ["model"]).to_dict("records")
            text = (
                f"{of['change']} along {of['direction']} directions does no more than random "
                f"directions of the same norm do: the largest effect is {best['effect']:.2f} "
                f"logits ({_place(best)}), that of random ones {best['placebo']:.2f}."
            )
            numbers = {name: best[name] for name in (*CELL, "effect", "placebo", "p_holm")}
            yield Caution(PLACEBOS, str(of["model"]), text, numbers=numbers)
