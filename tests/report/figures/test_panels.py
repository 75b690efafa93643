import pandas as pd
import pytest

from interp.report.figures.points import point_cloud
from interp.report.figures.style import panel_a_model, with_caption
from interp.report.formatting import UNDEFINED


def test_panels_carry_whole_names():
    table = pd.DataFrame({"model": ["organism/a", "organism/a"], "x": [1.0, 2.0], "y": [1.0, 2.0]})
    ax = panel_a_model(table, lambda rows, ax: point_cloud(rows, x="x", y="y", ax=ax))
    assert ax.get_title() == "organism/a"


def test_panels_without_rows_say_so():
    ax = panel_a_model(pd.DataFrame({"model": []}), lambda rows, ax: ax)
    assert [text.get_text() for text in ax.figure.texts] == [UNDEFINED]


@pytest.mark.parametrize("models", [1, 4])
def test_the_legend_meets_neither_title_nor_caption(models):
    table = pd.DataFrame({"model": [f"model {n}" for n in range(models)], "x": 0.0, "y": 0.0})

    def draw(rows, ax):
        for number in range(8):
            ax.plot(rows["x"], rows["y"], label=f"entry {number}")
        ax.legend()
        return ax

    figure = panel_a_model(table, draw).figure
    with_caption(figure, title="A title of many words. " * 6, text="What is drawn. " * 20)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    boxes = [part.get_window_extent() for part in (legend, *figure.texts)]
    assert len(boxes) == 3
    assert not any(boxes[0].overlaps(other) for other in boxes[1:])
    assert all(not legend.get_window_extent().overlaps(ax.bbox) for ax in figure.axes)
