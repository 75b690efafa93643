import numpy as np
import pandas as pd

from interp.report.figures.points import labelled_points
from tests.report.figures.drawn import BARS, INTERVAL


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


def test_named_points_may_have_intervals_both_ways():
    ax = labelled_points(
        BARS, x="accuracy", y="accuracy", label="model", x_interval=INTERVAL, y_interval=INTERVAL
    )
    across, up = ax.containers[0].lines[2]
    np.testing.assert_allclose(across.get_segments()[0], [[0.1, 0.2], [0.3, 0.2]])
    np.testing.assert_allclose(up.get_segments()[2], [[0.8, 0.7], [0.8, 0.9]])
