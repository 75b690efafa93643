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
    assert rows_of(ax) == ["attention", "gim"]
    (image,) = ax.get_images()
    assert image.norm.vcenter == 0


def rows_of(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_the_nearest_to_the_exact_shares_is_on_top():
    table = pd.DataFrame({"contender": [*"abab"], "model": [*"mmnn"], "prompts": [24, 24, 22, 22]})
    table = table.assign(distance=[0.4, 0.1, 0.2, 0.3], low=0.0, high=0.5)
    ax = share_distances(table)
    assert rows_of(ax) == ["b\nn = 24, 22", "a\nn = 24, 22"]
    dots = [line.get_xdata().tolist() for line in ax.lines if len(line.get_xdata()) == 2]
    assert dots == [[0.1, 0.4], [0.3, 0.2]]


def test_methods_are_sorted_by_how_often_they_find_the_top_segment():
    rows = {"gim": ["model", 0.4], "attention": ["model", 0.9], "length": ["control", 0.6]}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["kind", "value"])
    table = table.rename_axis("contender").reset_index()
    table = table.assign(low=table["value"] - 0.1, high=1.0, chance=0.5, clusters=22)
    kinds = {"model": "of the model", "unused": "other", "control": "control"}
    ax = methods_found(table, kinds=kinds)
    assert rows_of(ax) == ["attention", "length", "gim"]
    assert ax.get_legend_handles_labels()[1] == ["of the model", "control"]
    assert ax.get_xlabel() == "top segment found (n = 22 clusters)"
