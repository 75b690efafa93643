import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from interp.statistics.proportions import (
    between_groups,
    proportions,
    shrunken_shares,
    wilson,
    within_cells,
)
from interp.statistics.summaries import Z


def trials(clusters):
    """One row a trial, from (hits, trials) of each cluster."""
    return pd.DataFrame(
        [
            {"model": "m", "cluster": number, "hit": trial < hits}
            for number, (hits, size) in enumerate(clusters)
            for trial in range(size)
        ]
    )


def interval(clusters, cluster="cluster"):
    (row,) = proportions(
        trials(clusters), values=["hit"], by=["model"], cluster=cluster
    ).itertuples()
    return row


clustered = st.lists(
    st.integers(1, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    min_size=2,
    max_size=12,
)


@given(share=st.floats(0, 1), trials=st.floats(1.5, 1e4), clusters=st.integers(2, 200))
def test_the_interval_of_a_broken_number_of_trials_is_that_of_statsmodels(share, trials, clusters):
    """statsmodels takes a level: that whose normal quantile is Student's for the clusters."""
    quantile = stats.t.ppf(0.975, clusters - 1)
    expected = proportion_confint(
        share * trials, trials, alpha=2 * stats.norm.sf(quantile), method="wilson"
    )
    low, high = wilson(*(np.array([x]) for x in (share, trials, quantile)))
    assert (low[0], high[0]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("hits", [0, 1, 7, 20])
def test_clusters_of_one_trial_have_the_quantiles_of_a_beta_distribution(hits):
    """With a weight of one instead of one half this would be Clopper and Pearson's interval."""
    row = interval([(1, 1)] * hits + [(0, 1)] * (20 - hits))
    low = stats.beta.ppf(0.025, hits, 20.5 - hits) if hits else 0
    high = stats.beta.ppf(0.975, hits + 0.5, 20 - hits) if hits < 20 else 1
    assert (row.low, row.high) == pytest.approx((low, high), abs=0.015)


def test_clusters_that_agree_within_count_once_each():
    whole = interval([(10, 10)] * 2 + [(0, 10)] * 6)
    single = interval([(1, 1)] * 2 + [(0, 1)] * 6)
    assert (whole.low, whole.high) == pytest.approx((single.low, single.high))
    assert (whole.n, whole.clusters) == (80, 8)
    row = interval([(3, 10)])
    assert row.share == 0.3 and np.isnan(row.low)
    assert re.match(r"interval undefined: .*cluster", row.note)


def test_few_errors_among_many_clusters():
    ends = [interval([(8, 9)] * errors + [(9, 9)] * (238 - errors)) for errors in range(8)]
    lows = [row.low for row in ends]
    assert lows == sorted(lows, reverse=True)
    assert 0.985 < lows[-1] < lows[0] < 0.995


def test_a_trial_that_stands_for_two_counts_twice_and_as_one_cluster():
    rows = trials([(1, 2), (2, 3), (0, 1)]).assign(weight=1.0)
    rows.loc[rows["cluster"] == 1, "weight"] = 2.0
    options = {"values": ["hit"], "by": ["model"], "weight": "weight"}
    (row,) = proportions(rows, cluster="cluster", **options).itertuples()
    twice = interval([(1, 2), (4, 6), (0, 1)])
    assert (row.share, row.low, row.high) == (twice.share, twice.low, twice.high)
    assert (row.n, twice.n) == (6, 9)
    (alone,) = proportions(rows, cluster=None, **options).itertuples()
    # Kish: (3 * 1 + 3 * 2) ** 2 / (3 * 1 + 3 * 4) = 5.4 trials.
    ends = wilson(*(np.array([x]) for x in (5 / 9, 5.4, Z)))
    assert (alone.low, alone.high) == pytest.approx((ends[0][0], ends[1][0]))


@settings(max_examples=50)
@given(clustered)
def test_the_interval_holds_the_share_and_that_of_misses_is_mirrored(clusters):
    row, mirrored = interval(clusters), interval([(n - hits, n) for hits, n in clusters])
    assert 0 <= row.low <= row.share <= row.high <= 1
    assert row.high > row.low
    assert (row.low, row.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low))


def test_the_rows_keep_the_order_in_which_their_values_appear():
    rows = pd.concat([trials([(1, 2), (2, 2)]).assign(model=name) for name in "zab"])
    table = proportions(rows, values=["hit"], by=["model"], cluster="cluster")
    assert table["model"].tolist() == ["z", "a", "b"]
    assert table["low"].nunique() == 1


def cells(rng, *, spread, groups=200, models=(0.2, 0.5, 0.8)):
    """Shares of groups of 1 to 30 trials by several models; `spread` is how much groups differ."""
    truth = rng.normal(0, spread, groups)
    n = rng.integers(1, 31, groups)
    rows = [
        {
            "city": group,
            "model": model,
            "n": n[group],
            "share": rng.binomial(n[group], p) / n[group],
        }
        for model in models
        for group, p in enumerate(np.clip(model + truth, 0.02, 0.98))
    ]
    return pd.DataFrame(rows), truth


def shrunken(table):
    return shrunken_shares(table, group="city", by="model", share="share", n="n")


def test_shrunken_estimates_are_nearer_to_the_truth_and_their_intervals_hold_it():
    table, truth = cells(np.random.default_rng(0), spread=0.08)
    found = shrunken(table)
    expected = 0.5 + truth
    errors = [((found[name] - expected) ** 2).mean() for name in ("estimate", "share")]
    assert errors[0] < 0.8 * errors[1]
    held = (found["low"] <= expected) & (expected <= found["high"])
    assert held.mean() > 0.9


def test_groups_that_differ_by_chance_alone_all_have_the_same_estimate():
    table, _ = cells(np.random.default_rng(3), spread=0.0)
    found = shrunken(table)
    assert found["estimate"].std() < 0.01
    assert found["share"].std() > 0.05


def test_trials_that_agree_within_cells_count_once():
    share, n = np.array([0.0, 1.0, 1.0, 0.0]), np.full(4, 10.0)
    assert within_cells(share, n, np.full(4, 0.5)) == 1.0
    table = pd.DataFrame({"city": list("abcd"), "model": "m", "share": share, "n": n})
    assert shrunken(table)["effective_trials"].tolist() == [1.0] * 4


def test_independent_trials_count_each():
    rng = np.random.default_rng(2)
    share = rng.binomial(20, 0.3, 500) / 20
    assert within_cells(share, np.full(500, 20.0), np.full(500, 0.3)) == pytest.approx(
        0.0, abs=0.02
    )
    assert within_cells(share, np.ones(500), np.full(500, 0.3)) == 0.0


def test_the_variance_between_groups_by_hand():
    # Equal sampling variances s: the variance of the deviations, minus s.
    deviations = np.array([-0.2, 0.0, 0.1, 0.3])
    expected = deviations.var(ddof=1) - 0.01
    assert between_groups(deviations, np.full(4, 0.01)) == pytest.approx(expected)
    assert between_groups(deviations, np.full(4, 1.0)) == 0.0
    assert between_groups(deviations, np.zeros(4)) == 0.0


def share_interval(shares, *, continuous=True, trials=1):
    rows = pd.DataFrame({"model": "m", "cluster": range(len(shares)), "share": shares})
    rows = rows.loc[rows.index.repeat(trials)]
    (row,) = proportions(
        rows, values=["share"], by=["model"], cluster="cluster", continuous=continuous
    ).itertuples()
    return row


def test_shares_that_hardly_differ_have_nearly_students_interval():
    """The 60 shares of a newcomer's 30 pairs lay in 0.046 to 0.088; their upper end was 0.13."""
    shares = np.random.default_rng(0).beta(36, 564, 30)
    row, bound = share_interval(shares), share_interval(shares, continuous=False)
    students = 2 * stats.t.ppf(0.975, 29) * stats.sem(shares)
    assert students < row.high - row.low < 1.6 * students
    assert bound.high - bound.low > 6 * students
    assert row.high < shares.max()


@pytest.mark.parametrize(
    "shares",
    [
        np.full(12, 0.3),
        np.array([0.0, 0.7] * 6),
        np.array([0.0] * 11 + [0.4]),
        np.full(9, 0.1) ** 2,
    ],
)
def test_shares_that_say_nothing_of_others_keep_the_bound(shares):
    """Equal ones, some at both ends of a wide range, most in one place, or fewer than ten."""
    row, bound = share_interval(shares), share_interval(shares, continuous=False)
    assert row.high == bound.high


def test_shares_most_of_which_are_the_highest_keep_the_lower_bound():
    shares = np.array([0.2] * 2 + [0.7] * 10)
    row, bound = share_interval(shares), share_interval(shares, continuous=False)
    assert row.low == bound.low


@pytest.mark.slow
@given(
    st.lists(st.floats(0, 1), min_size=10, max_size=15),
    st.lists(st.integers(1, 5), min_size=15, max_size=15),
)
def test_an_interval_of_continuous_shares_lies_within_the_bound(shares, trials):
    row, bound = (
        share_interval(np.array(shares), continuous=own, trials=trials[: len(shares)])
        for own in (True, False)
    )
    assert bound.low - 1e-12 <= row.low <= row.share <= row.high <= bound.high + 1e-12


@pytest.mark.slow
def test_skewed_shares_of_ten_clusters_are_covered():
    """Student's interval covers this mean in about 82 of 100 samples."""
    rng = np.random.default_rng(0)
    rows = [share_interval(rng.beta(0.3, 6, 10)) for _ in range(300)]
    assert np.mean([row.low <= 0.3 / 6.3 <= row.high for row in rows]) > 0.93


@pytest.mark.slow
@given(clustered, st.data())
def test_one_more_error_raises_neither_end(clusters, data):
    """Wherever it is. Before, no error gave [0.984, 1] and one error [0.9973, 0.9999] (238 x 9)."""
    right = [number for number, (hits, _) in enumerate(clusters) if hits]
    if not right:
        return
    wrong = data.draw(st.sampled_from(right))
    more = [(hits - (number == wrong), n) for number, (hits, n) in enumerate(clusters)]
    before, after = interval(clusters), interval(more)
    assert after.low <= before.low
    assert after.high <= before.high


def test_the_interval_holds_the_truth_where_clusters_are_few_and_hang_together():
    rng = np.random.default_rng(0)
    samples = [
        trials(zip(rng.binomial(40, rng.beta(4.5, 4.5, 9)), [40] * 9, strict=True)).assign(model=k)
        for k in range(300)
    ]
    table = proportions(pd.concat(samples), values=["hit"], by=["model"], cluster="cluster")
    assert ((table["low"] <= 0.5) & (table["high"] >= 0.5)).mean() > 0.95
    assert (table["high"] - table["low"]).mean() < 0.45
