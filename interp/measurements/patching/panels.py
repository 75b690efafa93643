"""What the browser of pairs shows about patches: effects by layer and role or token."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from interp.report.pairs import Grid, Panel, Table
from interp.results.measured import ResultTables
from interp.statistics.summaries import grouped

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
