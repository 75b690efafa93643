import numpy as np
import pandas as pd

from interp.faithfulness.page import methods_by_metrics, shares_by_method


def test_every_cell_of_methods_by_metrics_holds_its_value():
    rows = [
        ["attention", "top_segment", 0.934, 0.87],
        ["attention", "sign", np.nan, np.nan],
        ["gim", "top_segment", 0.25, -0.5],
        ["gim", "sign", 0.5, 0.0],
    ]
    table = pd.DataFrame(rows, columns=["contender", "metric", "value", "standing"])
    ax = methods_by_metrics(table)
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    assert texts == {(0, 0): "0.93", (1, 0): "", (0, 1): "0.25", (1, 1): "0.50"}
    assert [label.get_text() for label in ax.get_yticklabels()] == ["attention", "gim"]
    (image,) = ax.get_images()
    assert image.norm.vcenter == 0


def test_every_method_has_a_panel_and_every_model_its_points():
    table = pd.DataFrame(
        {
            "contender": ["a", "a", "b", "b", "b"],
            "model": ["m", "n", "m", "n", "n"],
            "share": [0.1, 0.2, 0.3, 0.4, np.nan],
            "exact_share": [0.0, 1.0, 0.0, 1.0, 1.0],
        }
    )
    first = shares_by_method(table)
    panels = first.get_figure().axes
    assert [panel.get_title(loc="left") for panel in panels] == ["a", "b"]
    points = [np.asarray(own.get_offsets()).tolist() for own in panels[1].collections]
    assert points == [[[0.0, 0.3]], [[1.0, 0.4]]]
    assert first.get_legend_handles_labels()[1] == ["m (n = 1)", "n (n = 1)"]
