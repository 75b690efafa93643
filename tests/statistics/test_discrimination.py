import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binom, norm
from sklearn.metrics import roc_auc_score

from interp.statistics.clusters import too_few
from interp.statistics.discrimination import (
    Discrimination,
    concordance,
    discrimination,
    mean_concordance,
)
from interp.statistics.proportions import proportions
from interp.statistics.summaries import table_by


def found(trials):
    return discrimination(
        trials, score="score", yes="yes", positive="positive", cluster="city", weight="weight"
    )


def prompts(rng, *, cities=40, pairs=6, shift=0.0, weights=False):
    """Both sides of pairs about cities; a city's scores lie together, its positive ones higher."""
    city = np.repeat(np.arange(cities), pairs)
    shifts = shift + rng.normal(0, 1.0, cities)[city]
    level = rng.normal(0, 1, cities)[city]
    tables = [
        pd.DataFrame(
            {
                "city": city,
                "pair": np.arange(len(city)),
                "positive": positive,
                "score": level + positive * shifts + rng.normal(0, 0.5, len(city)),
                "weight": rng.choice([1.0, 6.0], cities)[city] if weights else 1.0,
            }
        )
        for positive in (True, False)
    ]
    table = pd.concat(tables, ignore_index=True)
    return table.assign(yes=table["score"] > 0)


@pytest.mark.parametrize("weights", [False, True])
def test_the_area_is_that_of_scikit_learn(weights):
    trials = prompts(np.random.default_rng(0), shift=0.6, weights=weights)
    trials["score"] = trials["score"].round(1)  # many ties
    expected = roc_auc_score(trials["positive"], trials["score"], sample_weight=trials["weight"])
    assert found(trials).auroc == pytest.approx(expected)


def test_signal_detection_by_hand():
    trials = pd.DataFrame(
        {
            "positive": [True] * 4 + [False] * 4,
            "yes": [True, True, True, False, True, False, False, False],
            "score": 0.5,
            "city": np.arange(8),
            "weight": 1.0,
        }
    )
    result = found(trials)
    high, low = norm.ppf(3.5 / 5), norm.ppf(1.5 / 5)  # log-linear: (hits + 0.5) / (n + 1)
    assert result.d_prime == pytest.approx(high - low)
    assert result.bias == pytest.approx(-(high + low) / 2, abs=1e-12)
    assert (result.yes_positive, result.yes_negative) == (0.75, 0.25)
    assert result.chance_yes_rate == 0.25
    assert result.independent_sides == pytest.approx(0.75 * 0.75)
    assert result.auroc == 0.5
    assert np.isnan([result.auroc_low, result.d_prime_low]).all()
    assert re.fullmatch(r"not tested: 8 clusters;.* 10\b.*", result.note)


def test_a_model_that_always_says_yes_has_no_sensitivity_and_a_bias_to_yes():
    result = found(prompts(np.random.default_rng(1)).assign(yes=True))
    assert result.d_prime == pytest.approx(0.0)
    assert result.bias < -2
    assert result.chance_yes_rate == result.independent_sides == 0.0


def test_weights_are_those_of_the_shares():
    trials = prompts(np.random.default_rng(2), weights=True)
    own = trials[trials["positive"]]
    expected = np.average(own["yes"], weights=own["weight"])
    assert found(trials).yes_positive == pytest.approx(expected)


def test_perfect_separation_has_no_interval_and_says_so():
    trials = prompts(np.random.default_rng(3))
    result = found(trials.assign(score=trials["positive"].astype(float)))
    assert result.auroc == 1.0
    assert np.isnan(result.auroc_low)
    assert result.note.startswith("AUROC's interval undefined: ")


def test_one_side_alone_is_undefined():
    trials = prompts(np.random.default_rng(4))
    result = found(trials[trials["positive"]])
    assert np.isnan([result.auroc, result.d_prime, result.chance_yes_rate]).all()
    assert re.match(r"undefined: .*negative prompts", result.note)


def test_one_row_per_model():
    trials = prompts(np.random.default_rng(5))
    both = pd.concat([trials.assign(model="z"), trials.assign(model="a")])
    how = {"score": "score", "yes": "yes", "positive": "positive"}
    how |= {"cluster": "city", "weight": "weight"}
    table = table_by(both, ["model"], Discrimination, discrimination, **how)
    assert table["model"].tolist() == ["z", "a"]
    assert table["auroc"][0] == found(trials).auroc
    none = table_by(both[:0], ["model"], Discrimination, discrimination, **how)
    assert (len(none), list(none)) == (0, list(table))


def test_concordance_counts_a_tie_as_a_half():
    high, low = pd.Series([0.9, 0.2, 0.5, np.nan]), pd.Series([0.1, 0.3, 0.5, 0.1])
    assert concordance(high, low).tolist() == pytest.approx([1.0, 0.0, 0.5, np.nan], nan_ok=True)


def mean_order(order, city, weight=1.0):
    rows = pd.DataFrame({"order": order, "city": city, "weight": weight})
    return mean_concordance(rows, value="order", cluster="city", weight="weight")


@pytest.mark.parametrize("right", [12, 10, 9, 6, 2])
def test_a_mean_concordance_by_hand(right):
    """Of 12 pairs: the sign test is binomial, and the ends of a share are those of betas."""
    mean = mean_order([1.0] * right + [0.0] * (12 - right), range(12))
    exact = min(1.0, 2 * binom.cdf(min(right, 12 - right), 12, 0.5))
    assert mean.p == pytest.approx(exact, abs=0.012)
    assert (mean.mean, mean.trials, mean.clusters) == (right / 12, 12, 12)
    low = beta.ppf(0.025, right, 12.5 - right)
    high = beta.ppf(0.975, right + 0.5, 12 - right) if right < 12 else 1.0
    assert mean.low <= low + 0.02 and mean.high >= high - 0.02
    if right > 9:  # random signs reject what lies beyond these lower ends
        assert mean.low == pytest.approx(low, abs=0.02)


def test_what_random_signs_do_not_reject_is_in_the_interval_of_a_concordance():
    """Of 11 pairs, 9 are in order: p is 0.065, although a share alone would exclude one half."""
    rows = pd.DataFrame({"order": [1.0] * 9 + [0.0] * 2, "city": range(11)})
    (share,) = proportions(rows, values=["order"], by=[], cluster="city").itertuples()
    mean = mean_order(rows["order"], rows["city"])
    assert mean.p > 0.05 and mean.low <= 0.5 < share.low


def test_a_mean_concordance_of_few_clusters_is_not_tested():
    rows = pd.DataFrame({"order": [1.0] * 8 + [0.0, np.nan], "city": range(10), "weight": 1.0})
    mean = mean_order(rows["order"], rows["city"])
    (share,) = proportions(rows, values=["order"], by=[], cluster="city").itertuples()
    assert (mean.low, mean.high, mean.note) == (share.low, share.high, too_few(9))
    assert np.isnan(mean.p)
    one, none = mean_order([1.0, 0.0], "x"), mean_order([np.nan], "x")
    assert one.mean == 0.5 and np.isnan([one.low, one.high, one.p]).all() and one.note == too_few(1)
    assert np.isnan([none.mean, none.p]).all() and none.clusters == 0


@pytest.mark.slow
def test_intervals_hold_the_truth_and_concordance_finds_nothing_where_nothing_is(monkeypatch):
    monkeypatch.setattr("interp.statistics.clusters.RESAMPLES", 199)
    monkeypatch.setattr("interp.statistics.discrimination.RESAMPLES", 199)
    rng, studies = np.random.default_rng(6), 250
    area, sensitivity, discoveries = [], [], []
    for _ in range(studies):
        trials = prompts(rng)
        result = found(trials)
        area.append(result.auroc_low <= 0.5 <= result.auroc_high)
        sensitivity.append(result.d_prime_low <= 0 <= result.d_prime_high)
        sides = trials.pivot(index=["pair", "city", "weight"], columns="positive", values="score")
        order = concordance(sides[True], sides[False])
        rows = sides.assign(order=order).reset_index()
        discoveries.append(mean_order(rows["order"], rows["city"], rows["weight"]).p)
    low, high = binom.ppf([0.001, 0.999], studies, 0.05) / studies
    assert np.mean(np.array(discoveries) <= 0.05) <= high
    assert np.mean(np.array(discoveries) <= 0.1) >= low
    assert 0.91 <= np.mean(area) <= 0.99
    assert 0.89 <= np.mean(sensitivity) <= 0.99
