"""Tests over clusters: against other libraries, by hand, and by what they find where nothing is."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import binom, ttest_1samp

from interp.analysis.clusters import cluster_contrast, cluster_contrast_table, cluster_mean
from interp.analysis.welch import welch

GROUPS = ("recognized", "failed")


def contrast(trials):
    return cluster_contrast(
        trials,
        value="familiarity",
        group="group",
        groups=GROUPS,
        cluster="city",
        weight="weight",
    )


def mean(trials):
    return cluster_mean(trials, value="difference", cluster="city", weight="weight")


def pairs_of_cities(rng, *, cities=60, pairs=12, effect=0.0, weights=None):
    """Pairs of prompts about cities that are mostly recognized or mostly failed, city by city."""
    familiarity = rng.beta(2, 4, cities)
    leaning = effect * (familiarity - familiarity.mean()) / familiarity.std()
    share = 1 / (1 + np.exp(-(leaning + rng.normal(0, 3, cities))))
    city = np.repeat(np.arange(cities), pairs)
    recognized = rng.random(len(city)) < share[city]
    return pd.DataFrame(
        {
            "city": city,
            "familiarity": familiarity[city],
            "group": np.where(recognized, *GROUPS),
            "weight": 1.0 if weights is None else weights[city],
        }
    )


def test_a_weighted_mean_has_the_clustered_error_of_statsmodels():
    rng = np.random.default_rng(1)
    city = np.repeat(np.arange(14), rng.integers(1, 9, 14))
    trials = pd.DataFrame({"city": city, "weight": rng.uniform(0.5, 3.0, len(city))})
    trials["difference"] = rng.normal(0.3, 1.0, len(city)) + rng.normal(0, 1, 14)[city]
    ours = mean(trials)
    fit = sm.WLS(trials["difference"], np.ones(len(trials)), weights=trials["weight"]).fit(
        cov_type="cluster",
        cov_kwds={"groups": city, "df_correction": True},
        use_t=True,
    )
    assert ours.mean == pytest.approx(fit.params.iloc[0])
    # statsmodels multiplies by (n - 1) / (n - 1) beside clusters / (clusters - 1): with one
    # parameter, nothing.
    low, high = fit.conf_int().to_numpy()[0]
    assert (ours.low, ours.high) == pytest.approx((low, high))
    assert (ours.trials, ours.clusters) == (len(trials), 14)


def test_with_one_trial_a_cluster_and_no_weights_it_is_students_interval():
    values = np.random.default_rng(2).normal(0.2, 1.0, 30)
    trials = pd.DataFrame({"difference": values, "city": np.arange(30), "weight": 1.0})
    low, high = ttest_1samp(values, 0.0).confidence_interval()
    assert (mean(trials).low, mean(trials).high) == pytest.approx((low, high))
    assert mean(trials).p == pytest.approx(ttest_1samp(values, 0.0).pvalue, abs=0.02)


def test_weights_count_trials_several_times():
    rng = np.random.default_rng(3)
    trials = pair_rows = pairs_of_cities(rng, cities=30, pairs=4)
    times = rng.integers(1, 4, len(pair_rows))
    repeated = trials.loc[np.repeat(trials.index, times)].reset_index(drop=True)
    weighted, counted = contrast(trials.assign(weight=times.astype(float))), contrast(repeated)
    assert weighted.difference == pytest.approx(counted.difference)
    assert weighted.p == counted.p
    assert (weighted.low, weighted.high) == pytest.approx((counted.low, counted.high))


def test_a_difference_over_cities_by_hand():
    rows = [(0.1, "failed", 2.0), (0.9, "recognized", 1.0), (0.9, "failed", 1.0)]
    trials = pd.DataFrame(rows, columns=["familiarity", "group", "weight"])
    found = contrast(trials.assign(city=["a", "b", "b"]))
    assert found.mean_a == pytest.approx(0.9)
    assert found.mean_b == pytest.approx((2 * 0.1 + 0.9) / 3)
    assert found.difference == pytest.approx(0.9 - (2 * 0.1 + 0.9) / 3)
    assert (found.clusters, found.clusters_a, found.clusters_b) == (2, 1, 2)
    assert (found.trials_a, found.trials_b) == (1, 2)
    assert np.isnan(found.p)
    assert found.note == "not tested: a group has 1 clusters, at least 10 needed"


def test_nothing_is_tested_below_ten_clusters():
    rng = np.random.default_rng(4)
    few = pd.DataFrame({"city": np.arange(9), "difference": rng.normal(5, 1, 9), "weight": 1.0})
    found = mean(few)
    assert np.isnan([found.low, found.high, found.p]).all()
    assert found.note == "not tested: there are 9 clusters, at least 10 needed"
    enough = pd.concat([few, few.assign(city=9).head(1)])
    assert mean(enough).p < 0.01


def test_no_trials_are_no_error():
    assert mean(pd.DataFrame(columns=["city", "difference", "weight"])).note.startswith("undefined")
    one_group = pairs_of_cities(np.random.default_rng(5)).assign(group="failed")
    found = contrast(one_group)
    assert found.clusters_a == 0
    assert np.isnan([found.mean_a, found.difference, found.p]).all()


def test_the_same_rows_give_the_same_numbers_whatever_their_order():
    trials = pairs_of_cities(np.random.default_rng(6), cities=24)
    both = pd.concat([trials.assign(model="b"), trials.assign(model="a")])
    table = cluster_contrast_table(
        both, value="familiarity", group="group", groups=GROUPS, cluster="city", weight="weight"
    )
    assert table["model"].tolist() == ["b", "a"]
    assert contrast(trials.sample(frac=1.0, random_state=0)).p == table["p"][0] == table["p"][1]


STUDIES = 300

ALLOWED = binom.ppf([0.001, 0.999], STUDIES, 0.05) / STUDIES
"""Where the rate of false findings of a test at 5% lies in all but 2 of 1,000 such simulations."""


def test_familiarity_of_no_effect_is_found_as_often_as_stated_over_cities_not_over_pairs(
    monkeypatch,
):
    monkeypatch.setattr("interp.analysis.clusters.RESAMPLES", 199)
    rng = np.random.default_rng(7)
    over_cities, over_pairs, covered = [], [], []
    for _ in range(STUDIES):
        trials = pairs_of_cities(rng, weights=rng.choice([1.0, 6.0], 60))
        found = contrast(trials)
        groups = (trials.loc[trials["group"] == group, "familiarity"] for group in GROUPS)
        over_cities.append(found.p <= 0.05)
        over_pairs.append(welch(*groups).p <= 0.05)
        covered.append(found.low <= 0 <= found.high)
    assert ALLOWED[0] <= np.mean(over_cities) <= ALLOWED[1]
    assert np.mean(over_pairs) > 0.3  # Welch's test over pairs, which the paper makes
    assert np.mean(covered) > 0.89


def test_familiarity_that_has_an_effect_is_found(monkeypatch):
    monkeypatch.setattr("interp.analysis.clusters.RESAMPLES", 199)
    rng = np.random.default_rng(8)
    found = [contrast(pairs_of_cities(rng, effect=3.0)) for _ in range(40)]
    assert np.mean([test.p <= 0.05 for test in found]) > 0.9
    assert np.mean([test.difference for test in found]) > 0


@pytest.mark.parametrize("clusters", [10, 40])
def test_differences_within_pairs_whose_sides_are_swapped_by_entity_are_found_at_the_stated_rate(
    monkeypatch, clusters
):
    monkeypatch.setattr("interp.analysis.clusters.RESAMPLES", 199)
    rng = np.random.default_rng(9)
    over_entities, over_pairs, covered = [], [], []
    for _ in range(STUDIES):
        city = np.repeat(np.arange(clusters), 8)
        size = np.abs(rng.gamma(2, 0.5, clusters))[city] + rng.normal(0, 0.1, len(city))
        swapped = rng.choice([-1.0, 1.0], clusters)[city]
        found = mean(pd.DataFrame({"city": city, "difference": size * swapped, "weight": 1.0}))
        over_entities.append(found.p <= 0.05)
        over_pairs.append(ttest_1samp(size * swapped, 0.0).pvalue <= 0.05)
        covered.append(found.low <= 0 <= found.high)
    assert ALLOWED[0] <= np.mean(over_entities) <= ALLOWED[1]
    assert np.mean(over_pairs) > 0.3
    assert np.mean(covered) > 0.9
