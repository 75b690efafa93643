import numpy as np
import pandas as pd
import pytest

from interp_experiments.rulebreakers.tables.published import published_difference

MEASURED = pd.DataFrame({"model": ["own", "b", "a"], "ratio": [9.0, 0.5, np.nan], "extra": 1})
PUBLISHED = pd.DataFrame({"model": ["a", "b", "c"], "ratio": [0.7, 0.8, 0.9], "sd": 0.1})


def test_only_rows_of_both_are_compared_in_the_measured_order():
    table = published_difference(MEASURED, PUBLISHED, key="model", columns=["ratio", "sd"])
    assert list(table.columns) == ["model", "quantity", "measured", "published", "difference"]
    assert table["model"].tolist() == ["b", "b", "a", "a"]
    assert table["quantity"].tolist() == ["ratio", "sd", "ratio", "sd"]
    assert table["published"].tolist() == [0.8, 0.1, 0.7, 0.1]
    expected = [-0.3, np.nan, np.nan, np.nan]
    assert table["difference"].tolist() == pytest.approx(expected, nan_ok=True)


def test_no_common_row_gives_no_row():
    table = published_difference(MEASURED[:1], PUBLISHED, key="model", columns=["ratio"])
    assert table.empty
