"""The order of rows, and published numbers below measured ones."""

import re

import numpy as np
import pandas as pd

from interp_experiments.scaffold import compared_item, in_order, measured_and_published


def test_rows_follow_the_lists_and_keep_their_order_where_those_say_nothing():
    rows = pd.DataFrame(
        {"a": ["y", "z", "x", "y", "w"], "b": [2, 1, 1, 1, 2]}, index=[7, 7, 3, 1, 0]
    )
    assert in_order(rows, {"a": ["x", "y"]})["a"].tolist() == ["x", "y", "y", "z", "w"]
    both = in_order(rows, {"a": ["x", "y"], "b": [1, 2]})
    assert both["b"].tolist() == [1, 1, 2, 1, 2] and both.index.tolist() == [3, 1, 7, 7, 0]
    assert in_order(rows, {}) is rows


def test_no_published_number_enters_a_measured_row():
    measured = pd.DataFrame({"n": [12], "score": [0.5], "model": ["m"]})
    published = pd.DataFrame({"model": ["m"], "score": [0.9], "rank": [1]})
    both = measured_and_published(measured, published)
    assert list(both.columns) == ["model", "source", "n", "score", "rank"]
    assert both["source"].tolist() == ["measured", "published"]
    assert both["score"].tolist() == [0.5, 0.9]
    assert np.isnan(both.loc[0, "rank"]) and pd.isna(both.loc[1, "n"])
    assert both.loc[0, "n"] == 12 and pd.api.types.is_integer_dtype(both["n"])


def test_numbers_published_for_other_sets_are_only_in_the_file():
    measured = pd.DataFrame({"model": ["m"], "set": ["kinship"], "n": [12], "few": [0.5]})
    published = pd.DataFrame({"model": ["p", "p"], "set": ["salad", "kinship"], "few": [0.9, 0.8]})
    both = measured_and_published(measured, published)
    item = compared_item("table4", "Table 4", both)
    assert item.on_page["few"].tolist() == [0.5, 0.8]
    assert item.frame["few"].tolist() == [0.5, 0.9, 0.8]
    assert re.search(r"published.*other sets", item.note)
    none = compared_item("table4", "Table 4", measured_and_published(measured, published[:1]))
    assert none.on_page["few"].tolist() == [0.5]
    assert re.search(r"measured.*published; .*published rows", none.note)
