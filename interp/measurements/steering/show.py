"""Steered: effects of changes of the residual stream along directions, beside their placebos."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import pandas as pd

from interp.analysis.cautions.caution import Caution, ordered
from interp.estimates.declared import Largest, Mean, Plain, Table
from interp.estimates.pictures import curve, grids
from interp.estimates.shown import Estimated, largest
from interp.report.formatting import segment_label
from interp.report.glance import Opening
from interp.report.page import FigureItem, TableItem
from interp.report.pairs import Browser
from interp.results.result import Result
from interp.statistics.summaries import grouped

CELL = ["model", "side", "direction", "change", "dose", "role", "layer"]
"""Columns of an effect that is averaged over prompts; the layer is NaN for a band."""

_SOURCES = ("direction", "placebo", "third")


def steered_prompts(effects: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """One row per prompt and combination of `CELL`, with pair_id and the means over draws.

    Columns: effect, placebo and third, in logits; beyond: effect minus placebo; direction_turned,
    placebo_turned and third_turned: whether the preferred answer changes. What was not measured is
    NaN.
    """
    about = prompts[["prompt_id", "side", "pair_id"]]
    rows = effects.dropna(subset="effect").merge(about, on="prompt_id").astype({"turned": float})
    keys = [*CELL, "prompt_id", "pair_id", "source"]
    means = rows.groupby(keys, sort=False, dropna=False)[["effect", "turned"]].mean()
    wide = pd.DataFrame(means.unstack("source"))
    names = wide.columns.map(
        lambda name: name[1] if name[0] == "effect" else f"{name[1]}_{name[0]}"
    )
    columns = [*_SOURCES, *(f"{source}_turned" for source in _SOURCES)]
    trials = wide.set_axis(names, axis=1).reindex(columns=columns)
    trials["beyond"] = trials["direction"] - trials["placebo"]
    return trials.rename(columns={"direction": "effect"}).reset_index()


def _place(row: Mapping[Any, Any]) -> str:
    layer = row["layer"]
    where = "band of layers" if pd.isna(layer) else f"layer {layer:.0f}"
    return f"{where}, {segment_label(str(row['role']))}"


_SIGN = "positive: towards the other option"

STEERING = Table(
    name="steering_table",
    title="Effects of steering, in logits",
    text="How much a change of the stream moves the answer from the correct option to the other "
    "one: means over prompts. An empty layer is a band of layers, changed together.",
    by=CELL,
    measured="steering_effects",
    numbers=[
        Mean("effect", "that of the change", "logits", _SIGN),
        Mean("placebo", "that of random directions, changed as much", "logits", _SIGN),
        Mean("beyond", "effect minus placebo, prompt by prompt", "logits", _SIGN, tested=0.0),
        Mean("third", "that for the prompt's own word and a third one", "logits", _SIGN),
        Plain("turned", "prompts with a new answer", "share", of="direction_turned", why="effect"),
        Plain("placebo_turned", "the same for random directions", "share", why="placebo"),
    ],
    trials="prompts",
    family=CELL[:5],
    split=CELL[:6],
    headline=Largest(
        "beyond",
        "{change} ({direction}) beyond random directions, in logits",
        at=_place,
        within=["direction", "change"],
        also={"turned": "{change} ({direction}): answers turned"},
    ),
)

_CURVE = (
    "Bands are 95% intervals over clusters. The largest of several layers is not a fair sample."
)


class Steered(Result):
    """The effects of changes of the residual stream on models' answers."""

    question = "Does the answer change with the directions, more than with random ones?"
    framed = "steering_effects"

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """Mean effects, with those of placebos."""
        trials = steered_prompts(self.table("steering_effects"), self.prompts)
        return (Estimated(STEERING, self.clustered(trials)),)

    @property
    def effects(self) -> pd.DataFrame:
        """Mean effects, with those of placebos, intervals and tests."""
        return self.estimated[0].frame

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """Those of every measurement, and whether nothing was shown beyond random directions."""
        return ordered((*super().cautions, *self.estimated[0].cautions()))

    def browser(self) -> Browser:
        """With effects by layer and role."""
        made, title = self.estimated[0], "Effects of steering"
        return self.browsed(lambda shown: grids(made, shown, title, rows="layer", columns="role"))

    def items(self) -> Iterator[TableItem | FigureItem]:
        """The effects, and curves over layers and doses."""
        yield from self._curves()
        yield from self.declared_items()

    def opening(self) -> Opening:
        """With the first curve."""
        return replace(super().opening(), figure=next(self.figures, None))

    def _curves(self) -> Iterator[FigureItem]:
        """Effects by layer, at the first dose; and by dose, where the effect is largest."""
        by = ["model", "side", "direction", "change"]
        for of, rows in grouped(self.effects, by):
            name = "-".join(map(str, of.values()))
            title = f"{of['model']}, {of['side']}, {of['change']} ({of['direction']})"
            at_dose = rows[rows["dose"] == rows["dose"].iloc[0]].dropna(subset="layer")
            for role, layers in at_dose.groupby("role", sort=False):
                if layers["layer"].nunique() > 1:
                    which = f"effect by layer at {segment_label(str(role))}: {title}"
                    yield _curve(f"by_layer-{name}-{role}", which, layers, "layer")
            if rows["dose"].nunique() > 1:
                best = largest(rows, "beyond", by)
                doses = rows.merge(best[["role", "layer"]], on=["role", "layer"])
                where = _place(best.iloc[0].to_dict())
                yield _curve(f"by_dose-{name}", f"effect by dose, {where}: {title}", doses, "dose")


def _curve(name: str, title: str, rows: pd.DataFrame, x: str) -> FigureItem:
    change = str(rows["change"].iloc[0])
    lines = {
        "effect": change,
        "placebo": "random direction, same norm",
        "third": f"{change} with a third word",
    }
    draw = partial(curve, STEERING, rows, x=x, lines=lines, control="placebo")
    return FigureItem(re.sub(r"[^A-Za-z0-9-]+", "_", name), title, draw, _CURVE)
