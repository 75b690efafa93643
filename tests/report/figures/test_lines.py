import numpy as np
import pandas as pd

from interp.report.figures.lines import lines, matrix
from tests.report.figures.drawn import BARS, INTERVAL


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
