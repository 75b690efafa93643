import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from interp.analysis.proportions import proportions, wilson


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


@pytest.mark.parametrize("hits", [0, 1, 7, 20])
def test_without_clusters_the_interval_is_that_ofwilson(hits):
    row = interval([(hits, 20)], cluster=None)
    assert (row.low, row.high) == pytest.approx(proportion_confint(hits, 20, method="wilson"))
    assert (row.share, row.n) == (hits / 20, 20)


@given(
    share=st.floats(0, 1),
    trials=st.floats(1.5, 1e4),
    clusters=st.integers(2, 200),
)
def test_the_interval_of_a_broken_number_of_trials_is_that_of_statsmodels(share, trials, clusters):
    """statsmodels takes a level: that whose normal quantile is Student's for the clusters."""
    quantile = stats.t.ppf(0.975, clusters - 1)
    expected = proportion_confint(
        share * trials, trials, alpha=2 * stats.norm.sf(quantile), method="wilson"
    )
    low, high = wilson(*(np.array([x]) for x in (share, trials, quantile)))
    assert (low[0], high[0]) == pytest.approx(expected, abs=1e-12)


def test_the_effective_number_of_trials_by_hand():
    # Deviations 2, 0, 0, -2: v = 4/3 * 8 / 40^2 = 1/150, and 0.25 / v = 37.5 of 40 trials.
    row = interval([(7, 10), (5, 10), (5, 10), (3, 10)])
    shrink = stats.t.ppf(0.975, 3) ** 2 / 37.5
    half = np.sqrt(shrink * 0.25 + shrink**2 / 4) / (1 + shrink)
    assert (row.low, row.high) == pytest.approx((0.5 - half, 0.5 + half))


def test_clusters_that_agree_within_count_once_each():
    # Of 8 clusters 2 hit always, 6 never: v = 8/7 * (2 * 0.75^2 + 6 * 0.25^2) / 8^2 = 0.0267857,
    # so 0.1875 / v = 7 trials, fewer than clusters: 8 it is.
    row = interval([(10, 10)] * 2 + [(0, 10)] * 6)
    shrink = stats.t.ppf(0.975, 7) ** 2 / 8
    centre = (0.25 + shrink / 2) / (1 + shrink)
    assert (row.low + row.high) / 2 == pytest.approx(centre)
    assert (row.n, row.clusters) == (80, 8)


def test_clusters_that_are_alike_count_all_their_trials():
    row = interval([(5, 10)] * 4 + [(4, 10)] * 2 + [(6, 10)] * 2)
    shrink = stats.t.ppf(0.975, 7) ** 2 / 80
    half = np.sqrt(shrink * 0.25 + shrink**2 / 4) / (1 + shrink)
    assert row.high - row.low == pytest.approx(2 * half)


@given(clustered)
def test_the_interval_holds_the_share_and_lies_within_zero_and_one(clusters):
    row = interval(clusters)
    assert 0 <= row.low <= row.share <= row.high <= 1
    assert row.high > row.low


@given(clustered)
def test_misses_have_the_mirrored_interval(clusters):
    row, mirrored = interval(clusters), interval([(n - hits, n) for hits, n in clusters])
    assert (row.low, row.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low))


def test_the_interval_holds_the_truth_where_clusters_are_few_and_hang_together():
    rng = np.random.default_rng(0)
    samples = [
        trials(zip(rng.binomial(40, rng.beta(4.5, 4.5, 9)), [40] * 9, strict=True)).assign(model=k)
        for k in range(300)
    ]
    table = proportions(pd.concat(samples), values=["hit"], by=["model"], cluster="cluster")
    assert 0.92 < ((table["low"] <= 0.5) & (table["high"] >= 0.5)).mean() < 0.98


def test_one_cluster_alone_has_no_interval():
    row = interval([(3, 10)])
    assert row.share == 0.3
    assert np.isnan(row.low)
    assert row.note == "interval undefined: one cluster"


def test_the_rows_keep_the_order_in_which_their_values_appear():
    rows = pd.concat([trials([(1, 2), (2, 2)]).assign(model=name) for name in "zab"])
    table = proportions(rows, values=["hit"], by=["model"], cluster="cluster")
    assert table["model"].tolist() == ["z", "a", "b"]
    assert table["low"].nunique() == 1
