import numpy as np
import pandas as pd
from matplotlib.collections import PathCollection

from interp.report.figures.points import (
    cluster_points,
    interval_points,
    labeled_points,
)
from tests.report.figures.drawn import BARS, INTERVAL, words


def test_the_legend_names_points_and_the_axis_those_without_a_value():
    names = ["one", "two", "three", "undefined one"]
    table = pd.DataFrame({"model": names, "x": [0.5, 0.5, 0.9, np.nan], "y": [0.50, 0.51, 0.9, 1]})
    ax = labeled_points(table, x="x", y="y", label="model")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == names[:3]
    assert [line.get_xydata().tolist() for line in ax.get_lines()] == [
        [[0.5, 0.50]],
        [[0.5, 0.51]],
        [[0.9, 0.9]],
    ]
    assert ax.get_xlabel() == "x (n = 3)\nundefined: undefined one"


def test_compared_groups_show_n_and_what_is_undefined():
    ax = interval_points(BARS, x="accuracy", y="rule", hue="model", n="n", interval=INTERVAL)
    shown = words(ax)
    assert "ds\nn = 0, 1,200" in shown
    assert "a$1$: undefined" in shown


def clustered(**changed):
    dots = BARS.rename(columns={"n": "size"})
    columns = {"x": "accuracy", "y": "rule", "hue": "model", "size": "size", "n": "n"}
    means = BARS.assign(**changed)
    return cluster_points(dots, means, **columns, interval=INTERVAL, p="p")


def test_a_dot_for_each_cluster_with_their_mean_and_what_was_tested():
    told = words(clustered(p=[0.2, 0.2, np.nan, np.nan]))
    assert "mt\nn = 24\n" in told
    assert "ds\nn = 0, 1,200" in told
    assert "p = 0.200" in told
    assert "not tested" in told
    assert "p < 0.0001" in words(clustered())
    assert "a$1$: undefined" in told


def test_the_area_of_a_dot_is_its_number_of_trials():
    ax = clustered()
    clouds = [part for part in ax.collections if isinstance(part, PathCollection)]
    small, large = clouds[0].get_sizes()[0], clouds[1].get_sizes()[-1]
    assert large > 5 * small
