"""Heat maps of the effects of patches.

Positive values are blue and negative values are red, so readers need no red-green color vision.
"""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from interp.measurements.patching.tables import CELL, grid_of
from interp.report.figures.lines import heat_map
from interp.report.figures.style import NOTHING_SHOWN, house_style, mark_areas, n_of, new_axes

_LABELS = {"effect": "effect in logits", "recovered": "recovered share of the difference"}


def layers_by_roles(
    table: pd.DataFrame, *, value: str = "effect", recognized: str = "all", head: int | None = None
) -> Axes:
    """The mean effect (or `value`) over a group of pairs of patching each role at each layer.

    `table` has the rows of `EFFECTS` for one model, direction, method and site.
    """
    shown = _of_head(table[table["recognized"] == recognized], head)
    grid = grid_of(shown, value)
    n = f"{n_of(shown['pairs'])} pairs" if len(shown) else "no pairs"
    open_ = grid_of(shown.assign(open=_holds(shown, value)), "open").eq(True).to_numpy(dtype=bool)
    if open_.all() and len(shown):
        n += f"; {NOTHING_SHOWN} 0"
    elif open_.any():
        n += "; gray: the 95% interval holds 0"
    with house_style():
        ax = new_axes(width=7.5, height=1.4 + 0.32 * len(grid))
        _heat_map(ax, grid, label=_LABELS[value], quiet=open_)
        heads = {} if head is None else {"head": str(head)}
        cells = shown.reindex(columns=[*CELL, value]).assign(**heads)
        names = {"rows": list(grid.index), "columns": list(grid.columns)}
        mark_areas(ax, cells, x="layer", y="role", number=value, **names)
        ax.set_yticks(range(len(grid)), [str(role).replace("_", " ") for role in grid.index])
        ax.set_xticks(range(len(grid.columns)), [str(layer) for layer in grid.columns])
        ax.set_xlabel("layer")
        ax.set_title(_title(shown, n), loc="left", fontsize=10)
        return ax


def layers_by_tokens(patches: pd.DataFrame, *, head: int | None = None) -> Axes:
    """The normalized effect of patching each token of one pair at each layer, at one site."""
    shown = _of_head(patches, head)
    grid = shown.pivot(index="layer", columns="position", values="normalized").sort_index()
    tokens = shown.drop_duplicates("position").set_index("position")["token"]
    with house_style():
        ax = new_axes(width=2.0 + 0.19 * len(grid.columns), height=2.4 + 0.3 * len(grid))
        _heat_map(ax, grid, label="normalized effect")
        ax.set_yticks(range(len(grid)), [str(layer) for layer in grid.index])
        ax.set_ylabel("layer")
        texts = tokens.loc[grid.columns].astype(str)
        labels = [text.replace(" ", "·").replace("\n", "↵") or "·" for text in texts]
        ax.set_xticks(range(len(labels)), labels, rotation=90, fontsize=7)
        pair = str(shown["pair_id"].iloc[0]) if len(shown) else "no pair"
        ax.set_title(_title(shown, f"n = 1 pair, {pair}"), loc="left", fontsize=10)
        return ax


def _of_head(rows: pd.DataFrame, head: int | None) -> pd.DataFrame:
    return rows[rows["head"].isna() if head is None else rows["head"] == head]


def _holds(rows: pd.DataFrame, value: str) -> "pd.Series[bool]":
    """Whether the interval of a number holds 0; false where there is none."""
    ends = rows.reindex(columns=[f"{value}_low", f"{value}_high"]).astype(float)
    return (ends.iloc[:, 0] <= 0) & (ends.iloc[:, 1] >= 0)


def _heat_map(ax: Axes, grid: pd.DataFrame, *, label: str, **how: Any) -> None:
    """Cells colored around zero, with numbers for grids of up to 150 cells."""
    values = grid.to_numpy(dtype=float)
    heat_map(ax, values, label=label, shown=values if values.size <= 150 else None, **how)


def _title(rows: pd.DataFrame, n: str = "") -> str:
    """A caption: the values that all rows share, and the number of pairs."""
    names = ("model", "site", "direction", "method", "source")
    shared = [
        str(rows[name].iloc[0]) for name in names if name in rows and rows[name].nunique() == 1
    ]
    return "\n".join(filter(None, [", ".join(shared), n]))
