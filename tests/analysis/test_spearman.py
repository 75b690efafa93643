import math
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from interp.analysis.spearman import spearman, spearman_table

GRADIENT = [0.689, 0.820, 0.818, 0.980, 0.844, 0.944]
ATTENTION = [0.698, 1.091, 1.303, 1.441, 1.651, 1.626]
ACCURACY = [0.219, 0.276, 0.607, 0.499, 0.474, 0.096]
"""The published values of six models."""

columns = st.integers(3, 6).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 4), min_size=n, max_size=n) for _ in range(2)))
)


def of(x, y):
    return spearman(pd.Series(x, dtype=float), pd.Series(y, dtype=float))


@pytest.mark.parametrize(
    ("x", "y", "rho", "p"),
    [
        # R 4.2.2: cor.test(x, y, method = "spearman")
        (range(1, 8), [2, 1, 4, 3, 7, 5, 6], 0.821428571429, 0.034126984127),
        (GRADIENT, ACCURACY, 0.0285714285714, 1.0),
        (ATTENTION, ACCURACY, 0.0857142857143, 0.919444444444),
        # All but the two perfect orders of six agree less: 2 / 720.
        (range(6), [1, 2, 4, 8, 16, 32], 1.0, 2 / 720),
        (range(6), [5, 4, 3, 2, 1, 0], -1.0, 2 / 720),
        (range(3), [1, 2, 3], 1.0, 2 / 6),
    ],
)
def test_exact_p_values(x, y, rho, p):
    test = of(x, y)
    assert test.rho == pytest.approx(rho, abs=1e-10)
    assert test.p == pytest.approx(p, abs=1e-10)
    assert test.method == "exact permutation"


@given(columns.filter(lambda pair: all(len(set(column)) > 1 for column in pair)))
def test_equal_values_are_counted_in_every_order(pair):
    x, y = (stats.rankdata(column) for column in pair)
    observed = abs(np.corrcoef(x, y)[0, 1])
    orders = [abs(np.corrcoef(x, order)[0, 1]) for order in permutations(y)]
    test = of(*pair)
    assert abs(test.rho) == pytest.approx(observed, abs=1e-12)
    assert test.p == pytest.approx(np.mean(np.array(orders) >= observed - 1e-12), abs=1e-12)


@given(st.integers(9, 60), st.integers(0, 1000))
def test_many_rows_by_the_formula_of_student(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).round(1)
    y = (x + rng.normal(size=n)).round(1)
    test = of(x, y)
    rho = np.corrcoef(stats.rankdata(x), stats.rankdata(y))[0, 1]
    p = 2 * stats.t.sf(abs(rho) * math.sqrt((n - 2) / (1 - rho**2)), n - 2)
    assert (test.rho, test.p) == pytest.approx((rho, p), abs=1e-12)
    assert test.method == "t distribution"


def test_the_interval_by_hand():
    # Fisher's z of 0.5 is 0.549306; its error, with 1 + 0.5^2 / 2 over 28 - 3, is 0.212132.
    ranks = np.arange(1.0, 29.0)
    rng = np.random.default_rng(1)
    orders = (rng.permutation(ranks) for _ in range(10_000))
    y = next(order for order in orders if abs(np.corrcoef(ranks, order)[0, 1] - 0.5) < 1e-3)
    test = of(ranks, y)
    assert test.low == pytest.approx(math.tanh(0.549306 - 1.959964 * 0.212132), abs=3e-3)
    assert test.high == pytest.approx(math.tanh(0.549306 + 1.959964 * 0.212132), abs=3e-3)


def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    true = 6 / math.pi * math.asin(0.6 / 2)
    held = 0
    for _ in range(400):
        x = rng.normal(size=60)
        test = of(x, 0.6 * x + 0.8 * rng.normal(size=60))
        held += test.low <= true <= test.high
    assert 0.92 < held / 400 < 0.98


@given(columns, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter_and_a_reversed_scale_flips_the_sign(pair, random):
    rows = list(zip(*pair, strict=True))
    one = of(*pair)
    random.shuffle(rows)
    assert of(*zip(*rows, strict=True)).rho == pytest.approx(one.rho, nan_ok=True)
    flipped = of(pair[0], [-y for y in pair[1]])
    assert (flipped.rho, flipped.p) == pytest.approx((-one.rho, one.p), nan_ok=True)


@pytest.mark.parametrize(
    ("x", "y", "note"),
    [
        ([], [], "undefined: 0 rows with both values, at least 3 needed"),
        ([1], [2], "undefined: 1 rows with both values, at least 3 needed"),
        ([1, 2, np.nan], [1, np.nan, 3], "undefined: 1 rows with both values, at least 3 needed"),
        ([1, 1, 1], [1, 2, 3], "undefined: x constant"),
        ([1, 1, 1], [2, 2, 2], "undefined: x and y constant"),
    ],
)
def test_an_undefined_correlation_says_why(x, y, note):
    test = of(x, y)
    assert test.note == note
    assert math.isnan(test.rho)
    assert math.isnan(test.p)


def test_a_perfect_correlation_has_no_interval():
    test = of(range(5), range(5))
    assert math.isnan(test.low)
    assert test.note == "interval undefined: the ranks agree perfectly"
    assert of(range(20), range(20)).p == 0.0


def test_one_row_a_group_and_pair_of_columns():
    frame = pd.DataFrame(
        {"model": ["b"] * 4 + ["a"], "u": [1.0, 2, 3, 4, 5], "v": [2.0, 1, 3, 4, 1], "w": 1.0}
    )
    table = spearman_table(frame, pairs=[("u", "v"), ("u", "w")], by=["model"])
    assert table["model"].tolist() == ["b", "b", "a", "a"]
    assert table["n"].tolist() == [4, 4, 1, 1]
    assert table["rho"].tolist() == pytest.approx([0.8, *[math.nan] * 3], nan_ok=True)
    assert len(spearman_table(frame, pairs=[("u", "v")])) == 1
