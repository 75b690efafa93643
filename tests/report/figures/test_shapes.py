"""Bars, lines, grids and points: what is drawn of a small table, and of one without rows."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from interp.report.figures.bars_and_points import (
    cluster_points,
    grouped_bars,
    interval_points,
    labeled_points,
)
from interp.report.figures.lines import lines, matrix
from tests.report.figures.drawn import BARS, INTERVAL, words

bars = partial(grouped_bars, x="rule", y="accuracy", hue="model", n="n")
points = partial(interval_points, x="accuracy", y="rule", hue="model", n="n", interval=INTERVAL)


def clustered(rows, **changed):
    dots = rows.rename(columns={"n": "size"})
    columns = {"x": "accuracy", "y": "rule", "hue": "model", "size": "size", "n": "n"}
    return cluster_points(dots, rows.assign(**changed), **columns, interval=INTERVAL, p="p")


def test_bars_stand_in_clusters_with_their_heights_n_and_intervals():
    ax = bars(BARS, interval=INTERVAL)
    assert [bar.get_height() for bar in ax.patches] == [0.2, 0.0, 0.4, 0.8]
    assert [label.get_text() for label in ax.get_xticklabels()] == [
        "mt\nn = 24",
        "ds\nn = 0 to 1,200",
    ]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a$1$", "b"]
    assert words(ax).count("undefined") == 1
    ends = [s[:, 1].tolist() for c in ax.collections for s in c.get_segments() if len(s)]
    for interval in ([0.1, 0.3], [0.7, 0.9]):
        assert interval in [pytest.approx(end) for end in ends]
    mine = Figure().add_subplot()
    assert bars(BARS, ax=mine) is mine


def test_lines_go_through_their_points_in_order_of_x():
    table = pd.DataFrame({"layer": [2, 0, 1], "accuracy": [0.9, 0.5, np.nan], "at": "last", "n": 8})
    ax = lines(table, x="layer", y="accuracy", hue="at", n="n")
    (line,) = ax.get_lines()
    np.testing.assert_array_equal(line.get_ydata(), [0.5, np.nan, 0.9])
    assert ax.get_xlabel() == "layer (n = 8)"


def test_cells_have_their_interval_below_the_share():
    ax = matrix(BARS, x="model", y="rule", value="accuracy", n="n", interval=INTERVAL)
    assert [text.get_text() for text in ax.texts] == [
        "0.200\n0.10 to 0.30",
        "0.400\n0.30 to 0.50",
        "0.800\n0.70 to 0.90",
    ]


def test_the_legend_names_points_and_the_axis_those_without_a_value():
    names = ["one", "two", "three", "undefined one"]
    table = pd.DataFrame({"model": names, "x": [0.5, 0.5, 0.9, np.nan], "y": [0.50, 0.51, 0.9, 1]})
    ax = labeled_points(table, x="x", y="y", label="model")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == names[:3]
    drawn = [line.get_xydata().tolist() for line in ax.get_lines()]
    assert drawn == [[[0.5, 0.50]], [[0.5, 0.51]], [[0.9, 0.9]]]
    assert ax.get_xlabel() == "x (n = 3)\nundefined: undefined one"


def test_compared_groups_show_n_what_is_undefined_and_what_was_tested():
    for told in (words(points(BARS)), words(clustered(BARS, p=[0.2, 0.2, np.nan, np.nan]))):
        assert "mt\nn = 24\n" in told and "ds\nn = 0, 1,200" in told
        assert "a$1$: undefined" in told
    assert "p = 0.200" in told and "not tested" in told
    ax = clustered(BARS)
    assert "p < 0.0001" in words(ax)
    # The area of a dot is its number of trials.
    clouds = [part for part in ax.collections if isinstance(part, PathCollection)]
    assert clouds[1].get_sizes()[-1] > 5 * clouds[0].get_sizes()[0]


@pytest.mark.parametrize(
    "draw",
    [
        partial(bars, interval=INTERVAL),
        points,
        partial(lines, x="low", y="accuracy", hue="model", n="n", interval=INTERVAL),
        partial(labeled_points, x="low", y="high", label="model"),
        clustered,
    ],
)
def test_a_table_without_rows_gives_empty_axes(draw):
    assert words(draw(BARS.iloc[:0]))
