import pandas as pd

from interp.judging.first_screen import methods_found


def test_methods_are_sorted_by_how_often_they_find_the_top_segment():
    rows = {"gim": ["model", 0.4], "attention": ["model", 0.9], "length": ["control", 0.6]}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["kind", "value"])
    table = table.rename_axis("contender").reset_index()
    table = table.assign(low=table["value"] - 0.1, high=1.0, chance=0.5, clusters=22)
    kinds = {"model": "of the model", "unused": "other", "control": "control"}
    ax = methods_found(table, kinds=kinds)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["attention", "length", "gim"]
    assert ax.get_legend_handles_labels()[1] == ["of the model", "control"]
    assert ax.get_xlabel() == "top segment found (n = 22 clusters)"
