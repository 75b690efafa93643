"""Holm's correction against R; two one-sided tests against statsmodels; verdicts."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.statistics.decisions import (
    corrected_over,
    holm,
    most_tests,
    out_of_reach,
    reach_in_words,
    verdict,
    verdicts,
)


def test_the_correction_is_that_of_r():
    # R 4.2.2: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
    rows = pd.DataFrame({"p": [0.01, 0.04, 0.03, 0.005]}, index=[0] * 4)
    table = holm(rows, family="models")
    assert table["p_holm"].tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert table["family"].tolist() == ["models"] * 4
    assert table["family_size"].tolist() == [4] * 4


# statsmodels collects Python's garbage at every call.
@settings(max_examples=25)
@given(st.lists(st.floats(0, 1) | st.just(float("nan")), max_size=12))
def test_the_correction_by_its_formula(p):
    """The k-th smallest of m times m - k + 1, and none smaller than the one before."""
    ordered = pd.Series(p, dtype=float).dropna().sort_values()
    expected = (ordered * np.arange(len(ordered), 0, -1)).cummax().clip(upper=1.0)
    table = holm(pd.DataFrame({"p": p}, dtype=float), family="models")
    assert table["p_holm"].dropna().to_dict() == pytest.approx(expected.to_dict(), abs=1e-12)
    assert table["family_size"].tolist() == [len(ordered)] * len(p)


@pytest.mark.parametrize(
    ("p", "below", "above", "expected"),
    [
        (0.2, -0.05, 0.08, "smaller"),
        (0.2, -0.05, 0.11, "open"),
        (0.2, -0.12, 0.01, "open"),
        (0.01, 0.02, 0.08, "different"),
        (float("nan"), float("nan"), float("nan"), "not tested"),
        # A test without limits leaves everything open.
        (1.0, float("nan"), float("nan"), "open"),
    ],
)
def test_verdicts(p, below, above, expected):
    assert verdict(p, below, above) == expected
    row = pd.DataFrame({"p_holm": [p], "excluded_below": [below], "excluded_above": [above]})
    assert verdicts(row) == [expected]


@settings(max_examples=25)
@given(st.lists(st.floats(0.0001, 1) | st.just(float("nan")), min_size=1, max_size=200))
def test_no_p_of_a_family_is_below_its_least(p):
    """The least is what the correction makes of the smallest p that a test can give."""
    values = pd.Series(p, dtype=float)
    table = holm(pd.DataFrame({"p": values, "p_least": 0.0001}), family="cells")
    best = holm(pd.DataFrame({"p": values.where(values.isna(), 0.0001)}), family="cells")["p_holm"]
    assert table["p_holm_least"].dropna().tolist() == pytest.approx(best.dropna().tolist())
    assert (table["p_holm"] >= table["p_holm_least"] - 1e-12)[values.notna()].all()
    assert table["p_holm_least"].isna().equals(values.isna())


@pytest.mark.parametrize("least", [2 / 1024, 2 / 4096, 0.0002, 0.05, 1.0])
def test_the_largest_family_that_can_have_a_finding(least):
    most = most_tests(least)
    for tests, reached in ((most, True), (most + 1, False)):
        if tests:
            rows = pd.DataFrame({"p": [least] * tests, "p_least": least})
            table = holm(rows, family="cells")
            assert (table["p_holm"] < 0.05).any() == reached
            assert out_of_reach(table).any() != reached
            assert bool(reach_in_words(table)) != reached


def test_a_family_of_tests_that_differ_can_have_a_finding_if_one_of_them_can():
    table = holm(pd.DataFrame({"p": [0.5] * 30, "p_least": [0.001] + [0.01] * 29}), family="cells")
    assert not out_of_reach(table).any()
    assert table["p_holm_least"].eq(0.03).all()


def test_a_table_of_several_families_says_how_many_tests_are_out_of_reach():
    near = holm(pd.DataFrame({"p": [0.5] * 3, "p_least": 0.001}), family="near")
    far = holm(pd.DataFrame({"p": [0.5, 0.5, np.nan], "p_least": 0.09}), family="far")
    both = pd.concat([near, far])
    assert out_of_reach(both).tolist() == [False] * 3 + [True, True, False]
    assert re.search(r"\b2 of 5 tests could not\b.*\b0\.18\b", reach_in_words(both))
    assert "none" in reach_in_words(far) and not reach_in_words(near)
    assert not reach_in_words(holm(pd.DataFrame({"p": [0.5]}), family="unknown"))


def test_the_number_of_corrected_tests_is_said():
    def family(tests, models=1):
        p = [0.01] * tests + [None]
        return holm(
            pd.DataFrame({"p": p, "model": [f"m{n % models}" for n in range(tests + 1)]}),
            family="f",
        )

    assert corrected_over([family(1)]) == "1 test of 1 model"
    assert corrected_over([family(2, models=2)]) == "2 tests of 2 models"
    assert corrected_over(iter([family(4), family(12), family(4)])) == "4 to 12 tests of 1 model"
    assert corrected_over([family(0)]) == corrected_over([]) == "no test"
    assert corrected_over([family(3).assign(p_holm_chance=0.5)]) == "6 tests of 1 model"
