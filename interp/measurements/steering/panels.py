"""What the browser of pairs shows about steering: effects by layer and role."""

from collections.abc import Iterator

import pandas as pd

from interp.report.pairs import Grid, Number, Panel, mean_by_pair, with_sides
from interp.results.measured import ResultTables
from interp.statistics.summaries import grouped

_CHANGE = ["direction", "change", "dose"]

_NOTE = """How much a change of the stream moves the answer from the correct option to the other
one, in logits. placebo: the mean over random directions whose change has the same norm; third: for
the prompt's own word and a third one."""


def steering_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The effects on a pair, by model, side, direction, change, dose and source."""
    rows = measured.table("steering_effects", prompts=prompts["prompt_id"])
    rows = with_sides(rows, prompts)
    rows["place"] = [_layer(layer) for layer in rows["layer"]]
    for of, own in grouped(rows, ["pair_id", "model", "side", *_CHANGE, "source"]):
        means = own.groupby(["place", "role"], sort=False)["effect"].mean().unstack("role")
        grid = means.reindex(own["place"].drop_duplicates())
        yield (
            str(of["pair_id"]),
            Grid(
                "Effects of steering",
                {name: _text(value) for name, value in of.items() if name != "pair_id"},
                list(map(str, grid.index)),
                list(map(str, grid.columns)),
                grid.to_numpy(dtype=float).tolist(),
                note=_NOTE,
            ),
        )


def steering_numbers(measured: ResultTables) -> Iterator[Number]:
    """The effect of each direction on each side of a pair, by change, dose, role and layer."""
    prompts = measured.table("prompts", ["prompt_id", "pair_id", "side"])
    rows = measured.table("steering_effects")
    rows = rows[rows["source"] == "direction"].merge(prompts, on="prompt_id")
    for of, own in grouped(rows, ["model", "side", *_CHANGE, "role", "layer"]):
        texts = {name: _text(value) for name, value in of.items()}
        labels = {name: text for name, text in texts.items() if text != "nan"}  # a band
        yield Number("effect", labels, mean_by_pair(own, prompts, "effect"))


def _layer(layer: float) -> str:
    return "band" if pd.isna(layer) else f"layer {layer:.0f}"


def _text(value: object) -> str:
    """A value as tables show it."""
    return f"{value:g}" if isinstance(value, float) else str(value)
