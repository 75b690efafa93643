import pytest
from matplotlib.figure import Figure

from interp.report.figures.bars import grouped_bars
from tests.report.figures.drawn import BARS, INTERVAL, words


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


def test_a_figure_is_drawn_where_it_is_asked_for():
    mine = Figure().add_subplot()
    assert grouped_bars(BARS, x="rule", y="accuracy", hue="model", n="n", ax=mine) is mine
