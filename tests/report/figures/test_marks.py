"""Marks of figures: what each cell, bar and point says it is about."""

import matplotlib.figure
import numpy as np
import pandas as pd

from interp.report.figures import style
from interp.report.figures.bars_and_points import (
    cluster_points,
    grouped_bars,
    interval_points,
    labeled_points,
)
from interp.report.figures.lines import lines, matrix
from interp.report.figures.style import Picture, mark_points, new_axes

TABLE = pd.DataFrame({"model": ["m", "m", "n"], "layer": [0, 1, 0], "share": [0.5, np.nan, 0.25]})
TABLE = TABLE.assign(low=0.1, high=0.9, n=8)


def marks(ax) -> list[tuple[dict[str, str], float]]:
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Picture)
    gids = {artist.get_gid() for artist in figure.findobj() if artist.get_gid()}
    assert gids == {one.id for one in figure.marks}
    assert len({one.at for one in figure.marks}) == len(figure.marks)
    return [(dict(one.of), one.value) for one in figure.marks]


def test_points_bars_and_cells_are_about_their_rows():
    first = ({"model": "m", "layer": "0"}, 0.5)
    last = ({"model": "n", "layer": "0"}, 0.25)
    named = {"x": "layer", "y": "share", "hue": "model", "n": "n"}
    assert marks(lines(TABLE, **named)) == [first, last]
    assert marks(grouped_bars(TABLE, **named)) == [first, last]
    turned = {"x": "share", "y": "model", "hue": "layer", "n": "n", "interval": ("low", "high")}
    assert marks(interval_points(TABLE, **turned)) == [first, last]
    assert marks(matrix(TABLE, x="layer", y="model", value="share", n="n")) == [first, last]
    assert [
        value for _, value in marks(labeled_points(TABLE, x="low", y="share", label="model"))
    ] == [0.5, 0.25]


def test_dots_are_about_their_clusters():
    dots = TABLE.assign(city=["Rome", "Oslo", "Rome"], pairs=4)[["city", "model", "share", "pairs"]]
    rome = {"city": "Rome", "model": "m"}
    means = TABLE.iloc[[0]].assign(group="all", p=0.5)
    names = {"x": "share", "y": "model", "hue": "group", "size": "pairs", "n": "n", "p": "p"}
    found = marks(
        cluster_points(dots[:2].assign(group="all"), means, interval=("low", "high"), **names)
    )
    assert found == [({**rome, "group": "all"}, 0.5), ({"model": "m", "group": "all"}, 0.5)]


def test_marks_move_no_axis():
    ax = new_axes()
    ax.plot([0, 1], [0, 1])
    before = ax.get_xlim(), ax.get_ylim(), len(ax.get_lines())
    rows = pd.DataFrame({"model": ["m"], "share": [0.5]})
    mark_points(ax, rows, [(5.0, 9.0)], series=0, number="share", named=["model"])
    assert (ax.get_xlim(), ax.get_ylim(), len(ax.get_lines())) == before


def test_a_figure_has_a_limited_number_of_marks_and_a_reader_s_own_none(monkeypatch):
    monkeypatch.setattr(style, "MOST_MARKS", 1)
    named = {"x": "layer", "y": "share", "hue": "model", "n": "n"}
    assert len(marks(lines(TABLE, **named))) == 1
    ax = matplotlib.figure.Figure().add_subplot()
    assert lines(TABLE, **named, ax=ax) is ax
