import pandas as pd

from interp.report.figures.clouds import point_cloud
from interp.report.figures.panels import panel_a_model
from interp.report.formatting import UNDEFINED


def test_panels_carry_whole_names():
    table = pd.DataFrame({"model": ["organism/a", "organism/a"], "x": [1.0, 2.0], "y": [1.0, 2.0]})
    ax = panel_a_model(table, lambda rows, ax: point_cloud(rows, x="x", y="y", ax=ax))
    assert ax.get_title() == "organism/a"


def test_panels_without_rows_say_so():
    ax = panel_a_model(pd.DataFrame({"model": []}), lambda rows, ax: ax)
    assert [text.get_text() for text in ax.figure.texts] == [UNDEFINED]
