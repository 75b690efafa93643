import matplotlib.pyplot as plt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.errors import shortened
from interp.report.figures import style
from interp.report.figures.bars_and_points import grouped_bars
from interp.report.formatting import UNDEFINED
from interp.report.glance import dots
from tests.report.figures.drawn import BARS, INTERVAL, words


def test_a_caption_is_written_whole_and_hides_nothing():
    ax = grouped_bars(BARS, x="rule", y="accuracy", hue="model", n="n", interval=INTERVAL)
    figure = ax.get_figure(root=True)
    before = figure.get_figheight()
    text = "Bars: share of pairs. Whiskers: 95% intervals. " * 12
    style.with_caption(figure, title="Accuracy", text=text)
    assert figure.get_figheight() > before
    told = words(ax)
    assert " ".join(text.split()) in " ".join(told.split())
    figure.draw_without_rendering()
    caption = figure._supxlabel.get_window_extent()
    assert not caption.overlaps(ax.get_tightbbox())
    assert caption.x1 <= figure.bbox.x1


def test_looks_differ_by_more_than_color():
    looks = [style.look(index) for index in range(40)]
    assert len(set(looks)) == 40
    assert len({(a.color, a.hatch) for a in looks}) == 40
    assert len({(a.color, a.marker) for a in looks}) == 40


def test_figures_are_white_in_a_dark_style():
    with plt.style.context("dark_background"):
        ax = grouped_bars(BARS, x="rule", y="accuracy", hue="model", n="n", interval=INTERVAL)
    assert ax.get_figure().get_facecolor() == ax.get_facecolor() == (1.0, 1.0, 1.0, 1.0)


def test_letters_that_the_font_lacks_are_told_once(tmp_path, capsys):
    ax = grouped_bars(BARS.assign(model="模型 Ünïcode"), x="rule", y="accuracy", hue="model", n="n")
    for name in ("a.png", "a.svg"):
        ax.get_figure(root=True).savefig(tmp_path / name)
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert {*"模型"} <= {*told} and "Ü" not in told


def test_panels_carry_whole_names_or_say_that_there_is_nothing():
    table = pd.DataFrame({"model": ["organism/a", "organism/a"], "x": [1.0, 2.0], "y": [1.0, 2.0]})
    assert style.panel_a_model(table, lambda rows, ax: ax).get_title() == "organism/a"
    nothing = style.panel_a_model(table[:0], lambda rows, ax: ax).figure
    assert [text.get_text() for text in nothing.texts] == [UNDEFINED]
    style.legend_beside(nothing, [])
    assert nothing.legends == []


@pytest.mark.parametrize("models", [1, 4])
def test_the_legend_meets_neither_title_nor_caption(models):
    table = pd.DataFrame({"model": [f"model {n}" for n in range(models)], "x": 0.0, "y": 0.0})

    def draw(rows, ax):
        for number in range(8):
            ax.plot(rows["x"], rows["y"], label=f"entry {number}")
        ax.legend()
        return ax

    figure = style.panel_a_model(table, draw).figure
    style.with_caption(figure, title="A title of many words. " * 6, text="What is drawn. " * 20)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    boxes = [part.get_window_extent() for part in (legend, *figure.texts)]
    assert len(boxes) == 3
    assert not any(boxes[0].overlaps(other) for other in boxes[1:])
    assert all(not legend.get_window_extent().overlaps(ax.bbox) for ax in figure.axes)


LONG = [
    f"a/model-with-a-rather-long-name-{n}-and-more-letters-than-anyone-needs" for n in range(40)
]
NAMES = {
    "40 long": LONG,
    "few long": ["x" * 150, f"/{'deep/' * 60}m"],
    "usual": ["organism/a", "b"],
}
GROUPS = [["Premise 2 over premise 1 by integrated gradients of all"], ["accuracy"], [*"abcdefgh"]]


@pytest.mark.parametrize("groups", GROUPS, ids=len)
@pytest.mark.parametrize("models", NAMES.values(), ids=NAMES)
def test_names_and_legends_stay_within_the_figure(models, groups):
    rows = [
        {"model": m, "number": g, "value": 0.5, "low": 0.1, "high": 0.9, "n": 24}
        for m in models
        for g in groups
    ]
    with style.house_style():
        ax = dots(pd.DataFrame(rows))
        figure = ax.get_figure(root=True)
        figure.draw_without_rendering()
    assert ax.get_window_extent().width > 0.3 * figure.bbox.width
    for box in (ax.get_tightbbox(), ax.get_legend().get_window_extent()):
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1


@given(st.text(st.characters(categories=["L", "P", "Zs"])), st.integers(12, 40))
def test_a_wrapped_name_is_whole_and_narrow(name, letters):
    lines = style.wrapped(name, letters).split("\n")
    assert max(map(len, lines)) <= letters
    assert "".join(lines) == shortened(name, 4 * letters)


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([(-1, 1), (-2, 0)], True),
        ([(-1, 1), (0.1, 2)], False),
        ([(-3, -1)], False),
        ([(None, None), (-1, 1)], True),
        ([(None, None)], False),
        ([], False),
    ],
)
def test_a_picture_says_if_none_of_its_intervals_excludes_0(ends, said):
    ax = style.new_axes()
    style.say_if_nothing_is_shown(ax, pd.DataFrame(ends, columns=["low", "high"]), ("low", "high"))
    assert ax.get_xlabel() == f"{style.NOTHING_SHOWN} 0" * said
    moved = pd.DataFrame(ends, columns=["low", "high"], dtype=float) + 0.25
    ax.set_xlabel("")
    style.say_if_nothing_is_shown(ax, moved, ("low", "high"), null=0.25)
    assert ax.get_xlabel() == f"{style.NOTHING_SHOWN} 0.25" * said
    ax.get_figure().draw_without_rendering()
