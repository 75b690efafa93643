import numpy as np
import pandas as pd

from interp.judging.figures import methods_by_metrics, methods_found, share_distances


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


def test_every_method_has_a_row_and_every_model_a_dot():
    table = pd.DataFrame(
        {
            "contender": ["a", "b", "a", "b"],
            "model": ["m", "m", "n", "n"],
            "distance": [0.4, 0.1, 0.2, 0.3],
            "low": [0.3, 0.0, 0.1, 0.2],
            "high": [0.5, 0.2, 0.3, 0.4],
            "prompts": [24, 24, 22, 22],
        }
    )
    ax = share_distances(table)
    rows = [label.get_text() for label in ax.get_yticklabels()]
    # The nearest to the exact shares is on top.
    assert rows == ["b\nn = 24, 22", "a\nn = 24, 22"]
    dots = [line.get_xdata().tolist() for line in ax.lines if len(line.get_xdata()) == 2]
    assert dots == [[0.1, 0.4], [0.3, 0.2]]


def test_methods_are_sorted_by_how_often_they_find_the_top_segment():
    table = pd.DataFrame(
        {
            "contender": ["gim", "attention", "length"],
            "kind": ["model", "model", "control"],
            "value": [0.4, 0.9, 0.6],
            "low": [0.2, np.nan, 0.5],
            "high": [0.6, np.nan, 0.7],
            "chance": 0.5,
            "clusters": 22,
        }
    )
    ax = methods_found(
        table, kinds={"model": "of the model", "unused": "other", "control": "control"}
    )
    assert [label.get_text() for label in ax.get_yticklabels()] == ["attention", "length", "gim"]
    assert ax.get_legend_handles_labels()[1] == ["of the model", "control"]
    assert ax.get_xlabel() == "top segment found (n = 22 clusters)"
