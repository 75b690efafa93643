from functools import partial

import pytest

from interp.report.figures.bars import grouped_bars
from interp.report.figures.lines import lines
from interp.report.figures.points import (
    cluster_points,
    interval_points,
    labeled_points,
)
from tests.report.figures.drawn import BARS, INTERVAL, words


@pytest.mark.parametrize(
    "draw",
    [
        partial(grouped_bars, x="rule", y="accuracy", hue="model", n="n", interval=INTERVAL),
        partial(interval_points, x="accuracy", y="rule", hue="model", n="n", interval=INTERVAL),
        partial(lines, x="low", y="accuracy", hue="model", n="n", interval=INTERVAL),
        partial(labeled_points, x="low", y="high", label="model"),
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
