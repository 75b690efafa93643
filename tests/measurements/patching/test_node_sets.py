import re

import numpy as np
import pandas as pd
import pytest

from interp.measurements.patching.tables import node_set_table
from tests.measurements.patching.test_tables import pairs_of


def sets_of(shares, of=10):
    """Rows of each pair's NS after 1, 5 and all of its cells."""
    rows = [
        (f"p{pair}", cells, share)
        for pair, of_pair in enumerate(shares)
        for cells, share in zip((1, 5, of), of_pair, strict=True)
    ]
    about = {"model": "m", "direction": "denoising", "sites": "resid_pre", "ranking": "exact"}
    return pd.DataFrame(rows, columns=["pair_id", "cells", "normalized"]).assign(
        **about, of_cells=of
    )


def of_all(sets, pairs):
    """The row of all pairs."""
    table = node_set_table(sets, pairs)
    (row,) = table[table["recognized"] == "all"].to_dict("records")
    return row


def test_areas_are_those_worked_out():
    """Trapezoids of widths 0.1, 0.4 and 0.5 over 0, 0.5, 1.2 and 1."""
    row = of_all(sets_of([[0.5, 1.2, 1.0]] * 2), pairs_of([2.0] * 2).assign(cluster="one city"))
    assert row["cpr"] == pytest.approx(0.1 * 0.25 + 0.4 * 0.85 + 0.5 * 1.1)
    assert row["cmd"] == pytest.approx(0.1 * 0.75 + 0.4 * 0.35 + 0.5 * 0.1)
    assert (row["pairs"], row["clusters"]) == (2, 1)
    assert np.isnan(row["cpr_low"])
    assert re.match(r"not tested: 1 cluster; .*\b10\b", row["note"])
    assert node_set_table(sets_of([[1, 1, 1]])[:0], pairs_of([1.0])).empty


def test_pairs_whose_prompts_hardly_differ_are_left_out():
    sets = sets_of([[0.5, 0.5, 1.0], [40.0, -9.0, 1.0], [0.5, np.nan, 1.0]])
    row = of_all(sets, pairs_of([2.0, -0.09, 2.0]))
    assert (row["pairs"], row["left_out"]) == (1, 2)
    assert row["cpr"] == pytest.approx(0.025 + 0.2 + 0.375)
    row = of_all(sets[:3], pairs_of([0.05]))
    assert np.isnan([row["cpr"], row["cmd"]]).all()
    assert re.match(r"no pair.*\b0\.1 logits", row["note"])


def test_pairs_that_the_model_fails_do_not_hide_the_others():
    """Their prompts differ by 0.12 logits, of which the first cell has the 44-fold."""
    sets = sets_of([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [-44.0, 1.0, 1.0]])
    pairs = pairs_of([-5.0, -5.0, 0.12], recognized=[True, True, False])
    table = node_set_table(sets, pairs).set_index("recognized")
    assert table["pairs"].to_dict() == {"yes": 2, "all": 3}
    assert table.loc["yes", "cpr"] == pytest.approx(0.05 + 0.4 + 0.5)
    assert table.loc["all", "cpr"] == pytest.approx(0.95 - 45 * (0.05 + 0.2) / 3)
