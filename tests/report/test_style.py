import matplotlib.pyplot as plt

from interp.report.figures.bars import grouped_bars
from interp.report.figures.style import look, with_caption
from tests.report.figures.drawn import BARS, INTERVAL, words


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


def test_looks_differ_by_more_than_colour():
    looks = [look(index) for index in range(40)]
    assert len(set(looks)) == 40
    assert len({(a.colour, a.hatch) for a in looks}) == 40
    assert len({(a.colour, a.marker) for a in looks}) == 40


def test_figures_are_white_in_a_dark_style():
    with plt.style.context("dark_background"):
        ax = grouped_bars(BARS, x="rule", y="accuracy", hue="model", n="n", interval=INTERVAL)
    assert ax.get_figure().get_facecolor() == ax.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
