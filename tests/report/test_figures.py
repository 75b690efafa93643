import io
from functools import partial

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from interp.report.figures import (
    cluster_points,
    grouped_bars,
    interval_points,
    labelled_points,
    lines,
    matrix,
    panel_a_model,
    point_cloud,
)
from interp.report.formatting import UNDEFINED
from interp.report.style import look, with_caption

BARS = pd.DataFrame(
    {
        "rule": ["mt", "mt", "ds", "ds"],
        "model": ["a$1$", "b", "a$1$", "b"],
        "accuracy": [0.2, 0.4, np.nan, 0.8],
        "low": [0.1, 0.3, np.nan, 0.7],
        "high": [0.3, 0.5, np.nan, 0.9],
        "p": [0.2, 0.2, 1e-6, 1e-6],
        "n": [24, 24, 0, 1200],
    }
)
INTERVAL = ("low", "high")


def words(ax: Axes) -> str:
    """All texts of a figure, which has been drawn."""
    figure = ax.get_figure(root=True)
    figure.savefig(io.BytesIO(), format="svg")
    texts = figure.findobj(lambda artist: hasattr(artist, "get_text"))
    return "\n".join(text.get_text() for text in texts)


def test_bars_stand_in_clusters_with_their_heights_and_n():
    ax = grouped_bars(BARS, x="rule", y="accuracy", hue="model", n="n", interval=INTERVAL)
    assert [bar.get_height() for bar in ax.patches] == [0.2, 0.0, 0.4, 0.8]
    assert [label.get_text() for label in ax.get_xticklabels()] == [
        "mt\nn = 24",
        "ds\nn = 0 to 1,200",
    ]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a$1$", "b"]
    assert words(ax).count("undefined") == 1


def test_whiskers_end_where_the_interval_does():
    ax = grouped_bars(BARS, x="rule", y="accuracy", hue="model", n="n", interval=INTERVAL)
    ends = [s[:, 1].tolist() for c in ax.collections for s in c.get_segments() if len(s)]
    assert [0.1, 0.3] in [pytest.approx(end) for end in ends]
    assert [0.7, 0.9] in [pytest.approx(end) for end in ends]


def test_compared_groups_show_p_and_n_and_what_is_undefined():
    ax = interval_points(BARS, x="accuracy", y="rule", hue="model", n="n", interval=INTERVAL, p="p")
    shown = words(ax)
    assert "p = 0.200" in shown
    assert "p < 0.001" in shown
    assert "ds\nn = 0, 1,200" in shown
    assert "a$1$: undefined" in shown


def test_lines_go_through_their_points_in_order_of_x():
    table = pd.DataFrame({"layer": [2, 0, 1], "accuracy": [0.9, 0.5, np.nan], "at": "last", "n": 8})
    ax = lines(table, x="layer", y="accuracy", hue="at", n="n")
    (line,) = ax.get_lines()
    np.testing.assert_array_equal(line.get_ydata(), [0.5, np.nan, 0.9])
    assert ax.get_xlabel() == "layer (n = 8)"


def test_points_carry_names_that_do_not_overlap():
    names = ["one", "two", "three", "undefined one"]
    table = pd.DataFrame({"model": names, "x": [0.5, 0.5, 0.9, np.nan], "y": [0.50, 0.51, 0.9, 1]})
    ax = labelled_points(table, x="x", y="y", label="model")
    figure = ax.get_figure(root=True)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert [text.get_text() for text in ax.texts] == names[:3]
    assert not boxes[0].overlaps(boxes[1])
    assert ax.get_xlabel() == "x (n = 3)\nundefined: undefined one"


def clustered(**changed):
    dots = BARS.rename(columns={"n": "size"})
    columns = {"x": "accuracy", "y": "rule", "hue": "model", "size": "size", "n": "n"}
    means = BARS.assign(**changed)
    return cluster_points(dots, means, **columns, interval=INTERVAL, p="p")


def test_a_dot_for_each_cluster_with_their_mean_and_what_was_tested():
    told = words(clustered(p=[0.2, 0.2, np.nan, np.nan]))
    assert "mt\nn = 24, 24" in told
    assert "ds\nn = 0, 1,200" in told
    assert "p = 0.200" in told
    assert "not tested" in told
    assert "a$1$: undefined" in told


def test_the_area_of_a_dot_is_its_number_of_trials():
    ax = clustered()
    clouds = [part for part in ax.collections if isinstance(part, PathCollection)]
    small, large = clouds[0].get_sizes()[0], clouds[1].get_sizes()[-1]
    assert large > 5 * small


def test_cells_have_their_interval_below_the_share():
    ax = matrix(BARS, x="model", y="rule", value="accuracy", n="n", interval=INTERVAL)
    assert [text.get_text() for text in ax.texts] == [
        "0.200\n0.10 to 0.30",
        "0.400\n0.30 to 0.50",
        "0.800\n0.70 to 0.90",
    ]


def test_named_points_may_have_intervals_both_ways():
    ax = labelled_points(
        BARS, x="accuracy", y="accuracy", label="model", x_interval=INTERVAL, y_interval=INTERVAL
    )
    across, up = ax.containers[0].lines[2]
    np.testing.assert_allclose(across.get_segments()[0], [[0.1, 0.2], [0.3, 0.2]])
    np.testing.assert_allclose(up.get_segments()[2], [[0.8, 0.7], [0.8, 0.9]])


def test_panels_carry_whole_names():
    table = pd.DataFrame({"model": ["organism/a", "organism/a"], "x": [1.0, 2.0], "y": [1.0, 2.0]})
    ax = panel_a_model(table, lambda rows, ax: point_cloud(rows, x="x", y="y", ax=ax))
    assert ax.get_title() == "organism/a"


def test_points_of_one_place_are_told_apart_and_none_moves_far():
    table = pd.DataFrame({"x": np.full(30, 0.5), "y": np.ones(30), "n": range(1, 31)})
    (cloud,) = point_cloud(table, x="x", y="y", size="n").collections
    up = np.asarray(cloud.get_offsets())[:, 1]
    assert len(set(up)) == 30
    assert np.abs(up - 1).max() <= 0.02
    assert (np.diff(cloud.get_sizes()) > 0).all()


def test_a_caption_is_written_whole_and_hides_nothing():
    ax = grouped_bars(BARS, x="rule", y="accuracy", hue="model", n="n", interval=INTERVAL)
    figure = ax.get_figure(root=True)
    before = figure.get_figheight()
    text = "Bars: share of pairs. Whiskers: 95% intervals. " * 12
    with_caption(figure, title="Accuracy", text=text)
    assert figure.get_figheight() > before
    told = words(ax)
    assert " ".join(text.split()) in " ".join(told.split())
    figure.draw_without_rendering()
    caption = figure._supxlabel.get_window_extent()
    assert not caption.overlaps(ax.get_tightbbox())
    assert caption.x1 <= figure.bbox.x1


@pytest.mark.parametrize(("rows", "dense"), [(50, False), (600, True)])
def test_many_points_become_a_density(rows, dense):
    values = np.random.default_rng(0).normal(size=(rows, 2))
    table = pd.DataFrame(values, columns=["familiarity", "ratio"])
    table.loc[0, "ratio"] = np.nan
    ax = point_cloud(table, x="familiarity", y="ratio")
    assert ax.get_xlabel() == f"familiarity (n = {rows - 1}; undefined: 1)"
    assert (len(ax.get_figure().axes) == 2) == dense


@pytest.mark.parametrize(
    "draw",
    [
        partial(grouped_bars, x="rule", y="accuracy", hue="model", n="n", interval=INTERVAL),
        partial(
            interval_points, x="accuracy", y="rule", hue="model", n="n", interval=INTERVAL, p="p"
        ),
        partial(lines, x="low", y="accuracy", hue="model", n="n", interval=INTERVAL),
        partial(labelled_points, x="low", y="high", label="model"),
        partial(point_cloud, x="low", y="high"),
        lambda rows: cluster_points(
            rows,
            rows,
            x="accuracy",
            y="rule",
            hue="model",
            size="n",
            n="n",
            interval=INTERVAL,
            p="p",
        ),
    ],
)
def test_a_table_without_rows_gives_empty_axes(draw):
    assert words(draw(BARS.iloc[:0]))


def test_a_figure_is_drawn_where_it_is_asked_for():
    mine = Figure().add_subplot()
    assert grouped_bars(BARS, x="rule", y="accuracy", hue="model", n="n", ax=mine) is mine


def test_looks_differ_by_more_than_colour():
    looks = [look(index) for index in range(40)]
    assert len(set(looks)) == 40
    assert len({(a.colour, a.hatch) for a in looks}) == 40
    assert len({(a.colour, a.marker) for a in looks}) == 40


def test_panels_without_rows_say_so():
    ax = panel_a_model(pd.DataFrame({"model": []}), lambda rows, ax: ax)
    assert [text.get_text() for text in ax.figure.texts] == [UNDEFINED]
