"""Pictures of declared tables: curves over a number, and what the browser shows for a pair."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pandas as pd

from interp.estimates.compute import values
from interp.estimates.declared import Table
from interp.estimates.shown import Estimated, text
from interp.report.pairs import Bars, Grid, Panel
from interp.statistics.summaries import grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def curve(
    table: Table,
    rows: pd.DataFrame,
    *,
    x: str,
    lines: Mapping[str, str],
    control: str = "",
    ax: "Axes | None" = None,
) -> "Axes":
    """Numbers of rows of a table's frame over a column, each as a line with its interval as a band.

    `lines` are the names of the numbers, each with the label of its line, in which columns of `by`
    may stand in braces. The picture says if the number `beyond` is nowhere shown to differ from 0,
    where `control` names what is subtracted in it.
    """
    from interp.report.figures import lines as figure
    from interp.report.figures.style import say_if_nothing_is_shown

    named = [number for number in table.numbers if number.name in lines]
    parts = []
    for number in [n for n in named if rows[n.name].notna().any()] or named:
        ends = ("value", "low", "high") if number.interval else ("value",)
        names = dict(zip((number.name, *(number.interval or ())), ends, strict=True))
        part = rows[[*table.by, *names, table.count]].rename(columns=names)
        label = [lines[number.name].format_map(row) for row in rows.to_dict("records")]
        parts.append(part.assign(line=label, **{number.unit: part["value"]}))
    every = pd.concat(parts, ignore_index=True)
    count, unit = table.count, table.main.unit
    ax = figure.lines(every, x=x, y=unit, hue="line", n=count, interval=("low", "high"), ax=ax)
    if control:
        of = f"beyond the {control}"
        say_if_nothing_is_shown(ax, rows, ("beyond_low", "beyond_high"), of)
    return ax


def grids(
    estimated: Estimated, prompts: pd.DataFrame, title: str, *, rows: str, columns: str
) -> Iterator[tuple[str, Panel]]:
    """A grid of each number for each pair of the given prompts: one column of `by` over another."""
    table, trials = estimated.table, estimated.trials
    shown = trials[trials["pair_id"].isin(prompts["pair_id"])]
    others = ["pair_id", *(name for name in table.by if name not in (rows, columns))]
    for of, members in grouped(shown, others):
        labels = {name: text(value) for name, value in of.items() if name != "pair_id"}
        for number in table.numbers:
            if number.interval is None or members[number.column].isna().all():
                continue
            cells = values(number, members, [rows, columns])
            grid = cells.set_index([rows, columns])[number.name].unstack(columns)
            grid = grid.reindex(members[rows].drop_duplicates())
            about = {**labels, "number": number.name}
            left, top = [f"{rows} {text(value)}" for value in grid.index], map(str, grid.columns)
            matrix, note = grid.to_numpy(dtype=float).tolist(), estimated.note
            yield str(of["pair_id"]), Grid(title, about, left, list(top), matrix, note=note)


def bars(
    trials: pd.DataFrame, table: Table, *, value: str, note: str
) -> Iterator[tuple[str, Panel]]:
    """The `table.most` largest values of each pair, by `table.split`, named by the column name."""
    for of, rows in grouped(trials, ["pair_id", *table.split]):
        order = rows[value].abs().sort_values(ascending=False, kind="stable").index[: table.most]
        each = list(zip(rows.loc[order, "name"], rows.loc[order, value], strict=True))
        labels = {name: text(of[name]) for name in table.split}
        yield str(of["pair_id"]), Bars(table.title, labels, {"": each}, note=note)
