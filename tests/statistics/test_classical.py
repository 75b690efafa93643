import math
import re
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from interp.statistics.classical import spearman, spearman_table, welch

A = pd.Series([27.5, 21, 19, 23.6, 17, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19, 21.7, 21.4])
B = pd.Series([27.1, 22, 20.8, 23.4, 23.4, 23.5, 25.8, 22, 24.8, 20.2, 21.9, 22.1, 22.9, 30.2])

values = st.floats(-100, 100, allow_nan=False).map(lambda value: round(value, 3))
samples = st.lists(values, min_size=2, max_size=20).filter(lambda sample: len(set(sample)) > 1)


def sample(*, mean, sd, n):
    """n values with exactly this mean and sample standard deviation."""
    spread = np.linspace(-1, 1, n)
    return pd.Series(mean + sd * spread / spread.std(ddof=1))


def test_the_test_is_that_of_r():
    # R 4.2.2: t.test(a, b)
    test = welch(A, B)
    assert test.t == pytest.approx(-2.7157718916, abs=1e-9)
    assert test.df == pytest.approx(26.988814073, abs=1e-8)
    assert test.p == pytest.approx(0.011392134611, abs=1e-11)
    assert test.low == pytest.approx(-4.842778436769, abs=1e-9)
    assert test.high == pytest.approx(-0.674364420374, abs=1e-9)


def test_the_effect_size_is_that_of_a_textbook():
    # Borenstein et al. (2009), Introduction to Meta-Analysis, chapter 4: means 103 and 100,
    # standard deviations 5.5 and 4.5, 50 each give d = 0.5970 and g = 0.5924.
    test = welch(sample(mean=103, sd=5.5, n=50), sample(mean=100, sd=4.5, n=50))
    assert test.g == pytest.approx(0.5924, abs=1e-4)


def test_the_small_sample_correction_by_hand():
    # Two and two: J = gamma(1) / (sqrt(1) gamma(1/2)) = 1 / sqrt(pi); d = 2 / sqrt(1/2).
    test = welch(pd.Series([2.0, 3.0]), pd.Series([0.0, 1.0]))
    assert test.g == pytest.approx(2 / math.sqrt(0.5) / math.sqrt(math.pi))


@given(samples, samples)
def test_swapping_the_groups_flips_the_signs(a, b):
    one, other = welch(pd.Series(a), pd.Series(b)), welch(pd.Series(b), pd.Series(a))
    assert one.difference == -other.difference
    assert (one.low, one.t, one.g) == pytest.approx((-other.high, -other.t, -other.g))
    assert one.p == pytest.approx(other.p)


@pytest.mark.parametrize(
    ("a", "b", "note"),
    [
        ([], [1.0, 2.0], "undefined: group a empty"),
        ([], [], "undefined: group a and b empty"),
        ([1.0, 2.0], [3.0], "undefined: group b has one member"),
        ([np.nan, 1.0], [1.0, 2.0], "undefined: group a has one member"),
        ([0.1] * 3, [0.3] * 3, "undefined: both groups constant"),
    ],
)
def test_an_undefined_test_says_why(a, b, note):
    test = welch(pd.Series(a, dtype=float), pd.Series(b, dtype=float))
    assert test.note == note
    assert all(math.isnan(value) for value in (test.t, test.df, test.p, test.low, test.g))
    known = welch(pd.Series([0.1] * 3), pd.Series([0.3]))  # what is known is given
    assert (known.n_a, known.n_b, known.sd_a) == (3, 1, 0.0)
    assert known.difference == pytest.approx(-0.2)
    one_constant = welch(pd.Series([1.0] * 5), pd.Series([1.0, 2.0, 3.0]))
    assert (one_constant.df, one_constant.note) == (pytest.approx(2), "")


GRADIENT = [0.689, 0.820, 0.818, 0.980, 0.844, 0.944]
ATTENTION = [0.698, 1.091, 1.303, 1.441, 1.651, 1.626]
ACCURACY = [0.219, 0.276, 0.607, 0.499, 0.474, 0.096]
"""The published values of six models."""

columns = st.integers(3, 6).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 4), min_size=n, max_size=n) for _ in range(2)))
)


def of(x, y):
    return spearman(pd.Series(x, dtype=float), pd.Series(y, dtype=float))


def or_fisher(p, rho, n):
    """The larger of a p and of that of Fisher's z, with the variance of Bonett and Wright."""
    if n < 4 or abs(rho) > 1 - 1e-9:
        return p
    return max(p, 2 * stats.norm.sf(abs(np.arctanh(rho)) / np.sqrt((1 + rho**2 / 2) / (n - 3))))


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
    assert test.p == pytest.approx(or_fisher(p, rho, len(x)), abs=1e-10)
    assert test.method == "exact permutation"


@given(columns.filter(lambda pair: all(len(set(column)) > 1 for column in pair)))
def test_equal_values_are_counted_in_every_order(pair):
    x, y = (stats.rankdata(column) for column in pair)
    observed = abs(np.corrcoef(x, y)[0, 1])
    orders = [abs(np.corrcoef(x, order)[0, 1]) for order in permutations(y)]
    test = of(*pair)
    assert abs(test.rho) == pytest.approx(observed, abs=1e-12)
    p = np.mean(np.array(orders) >= observed - 1e-12)
    assert test.p == pytest.approx(or_fisher(p, test.rho, len(x)), abs=1e-12)


@given(st.integers(9, 60), st.integers(0, 1000))
def test_many_rows_by_the_formula_of_student(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = x + rng.normal(size=n)
    test = of(x, y)
    rho = np.corrcoef(stats.rankdata(x), stats.rankdata(y))[0, 1]
    p = 2 * stats.t.sf(abs(rho) * math.sqrt((n - 2) / (1 - rho**2)), n - 2)
    assert (test.rho, test.p) == pytest.approx((rho, or_fisher(p, rho, n)), abs=1e-12)
    assert test.method == "t distribution"


@pytest.mark.parametrize(("place", "p"), [(13, 2 / 14), (12, 4 / 14), (7, 1.0)])
def test_the_place_of_one_value_among_ties_has_as_many_orders_as_rows(place, p):
    y = np.zeros(14)
    y[place] = 1
    for test in (of(range(14), y), of(y, range(14))):
        # Student's t gives 0.109 and 0.182 for the first two.
        assert test.p == pytest.approx(p, abs=1e-12)
        assert test.method == "exact permutation"


@given(st.integers(9, 11), st.integers(2, 3), st.integers(0, 99))
def test_p_of_two_binary_columns_is_that_of_the_hypergeometric_distribution(n, ones, seed):
    x, y = np.arange(n) % 2, np.random.default_rng(seed).permutation(np.arange(n) < ones)
    both = stats.hypergeom(n, n // 2, ones)
    far = [abs(k * n - ones * (n // 2)) for k in range(ones + 1)]
    seen = far[int((x * y).sum())]
    expected = sum(both.pmf(k) for k in range(ones + 1) if far[k] >= seen)
    assert of(x, y).p == pytest.approx(expected, abs=1e-12)


def test_many_orders_with_ties_are_drawn_at_random():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 3, 40), rng.integers(0, 2, 40)
    test = of(x, y)
    again = stats.permutation_test(
        (x,),
        lambda own: abs(stats.spearmanr(own, y).statistic),
        permutation_type="pairings",
        alternative="greater",
        n_resamples=499,
        rng=rng,
    )
    assert test.method == "random permutation"
    assert test.p == pytest.approx(again.pvalue, abs=0.08)


def test_the_interval_by_hand():
    # Fisher's z of 0.5 is 0.549306; its error, with 1 + 0.5^2 / 2 over 28 - 3, is 0.212132.
    ranks = np.arange(1.0, 29.0)
    rng = np.random.default_rng(1)
    orders = (rng.permutation(ranks) for _ in range(10_000))
    y = next(order for order in orders if abs(np.corrcoef(ranks, order)[0, 1] - 0.5) < 1e-3)
    test = of(ranks, y)
    assert test.low == pytest.approx(math.tanh(0.549306 - 1.959964 * 0.212132), abs=3e-3)
    assert test.high == pytest.approx(math.tanh(0.549306 + 1.959964 * 0.212132), abs=3e-3)


@pytest.mark.parametrize(
    ("x", "y", "note"),
    [
        ([], [], r"\b0 rows .* 3\b"),
        ([1], [2], r"\b1 rows .* 3\b"),
        ([1, 2, np.nan], [1, np.nan, 3], r"\b1 rows .* 3\b"),
        ([1, 1, 1], [1, 2, 3], "x constant"),
        ([1, 1, 1], [2, 2, 2], "x and y constant"),
    ],
)
def test_an_undefined_correlation_says_why(x, y, note):
    test = of(x, y)
    assert re.match(f"undefined: .*{note}", test.note)
    assert np.isnan([test.rho, test.p]).all()


def test_a_perfect_correlation_has_no_interval():
    test = of(range(5), range(5))
    assert math.isnan(test.low)
    assert re.fullmatch("interval undefined: .*ranks agree.*", test.note)
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
