import numpy as np
import pandas as pd

from interp.report.figures.lines import lines


def test_lines_go_through_their_points_in_order_of_x():
    table = pd.DataFrame({"layer": [2, 0, 1], "accuracy": [0.9, 0.5, np.nan], "at": "last", "n": 8})
    ax = lines(table, x="layer", y="accuracy", hue="at", n="n")
    (line,) = ax.get_lines()
    np.testing.assert_array_equal(line.get_ydata(), [0.5, np.nan, 0.9])
    assert ax.get_xlabel() == "layer (n = 8)"
