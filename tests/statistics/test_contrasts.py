import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from interp.prompts.systems import Contrast
from interp.statistics import contrasts
from interp.statistics.contrasts import contrast_table, difference, mcnemar, spread


def study(entities=40, *, rng, effect=0.0, group=0.0, models=("a", "b")):
    """Pairs of prompts about entities, each entity of one group and asked by both rules."""
    level = rng.normal(0, 1, entities)
    rows = [
        (model, f"{entity}/{rule}", f"e{entity}", rule, ("one", "two")[entity % 2])
        for model in models
        for entity in range(entities)
        for rule in ("mt", "ds", "mt2", "ds2")
    ]
    pairs = pd.DataFrame(rows, columns=["model", "pair_id", "entity", "rule", "group"])
    pairs["rule"] = pairs["rule"].str[:2]
    entity = pairs["entity"].str[1:].astype(int)
    logit = level[entity] + effect * (pairs["rule"] == "mt") + group * (pairs["group"] == "one")
    return pairs.assign(paired=rng.random(len(pairs)) < 1 / (1 + np.exp(-logit)))


def sums(hits, trials):
    return pd.DataFrame({"hits": np.array(hits, float), "trials": np.array(trials, float)})


def test_a_paired_difference_of_equal_clusters_is_close_to_a_t_interval():
    rng = np.random.default_rng(0)
    a, b = (sums(rng.integers(0, 98, 300), [97] * 300) for _ in range(2))
    found = difference(a, b)
    change = (a["hits"] - b["hits"]) / 97
    test = stats.ttest_1samp(change, 0)
    assert found.paired
    assert found.difference == pytest.approx(change.mean())
    for ends, level in (
        ((found.low, found.high), 0.95),
        ((found.excluded_below, found.excluded_above), 0.90),
    ):
        interval = test.confidence_interval(level)
        assert ends == pytest.approx((interval.low, interval.high), abs=0.006)
    assert test.pvalue < found.p < test.pvalue + 0.09  # the interval is wider
    # The effect that a t-test of this spread finds with a power of 80%.
    error = change.std(ddof=1) / np.sqrt(300)
    expected = (stats.t.ppf(0.975, 299) + stats.t.ppf(0.8, 299)) * error
    assert found.detectable == pytest.approx(expected, rel=0.05)


def test_clusters_of_one_level_each_are_relabelled():
    rng = np.random.default_rng(1)
    a, b = sums(rng.integers(2, 6, 20), [5] * 20), sums(rng.integers(0, 6, 25), [5] * 25)
    b.index += 100
    found = difference(a, b)
    assert not found.paired
    assert found.clusters == 45
    welch = stats.ttest_ind(
        a["hits"] / 5,
        b["hits"] / 5,
        equal_var=False,
        method=stats.PermutationMethod(n_resamples=9999, rng=2),
    )
    assert found.p == pytest.approx(welch.pvalue, abs=0.02)


def beta_clusters(rng, group, first=0):
    """Hits and trials of clusters whose own shares have this mean and intraclass correlation."""
    clusters, trials, share, correlation = group
    if correlation == 1:
        own = rng.binomial(1, share, clusters).astype(float)
    else:
        size = (1 - correlation) / correlation
        own = rng.beta(share * size, (1 - share) * size, clusters)
    table = sums(rng.binomial(trials, own), [trials] * clusters)
    return table.set_axis(range(first, first + clusters))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other", "truth"),
    [
        # Permutations without standard errors found 0.2 of such differences.
        ((147, 6, 0.3, 0.05), (30, 4, 0.3, 1), 0.0),
        # Student's interval holds 79% of such differences, and values above 1.
        ((12, 10, 0.95, 0.5), (12, 10, 0.05, 0.5), 0.9),
        # Of eleven clusters that are right once in ten, none may be: that excludes no tenth.
        ((11, 3, 0.1, 0.9), (11, 3, 1e-9, 0.9), 0.1),
    ],
)
def test_unlike_groups_differ_and_are_excluded_as_often_as_stated(monkeypatch, one, other, truth):
    monkeypatch.setattr(contrasts, "RESAMPLES", 199)
    rng = np.random.default_rng(11)
    found = pd.DataFrame(
        difference(beta_clusters(rng, one), beta_clusters(rng, other, first=1000))
        for _ in range(300)
    )
    most = stats.binom.ppf(0.999, 300, 0.05) / 300
    assert found["low"].gt(-1).all() and found["high"].le(1).all()
    assert found["low"].le(truth).mul(found["high"] >= truth).mean() >= 1 - most
    assert found["excluded_above"].lt(truth).mean() <= most
    if not truth:
        assert found["p"].le(0.05).mean() <= most


@pytest.mark.parametrize(("hits", "paired"), [((5, 5), True), ((5, 0), True), ((0, 0), False)])
def test_where_no_cluster_deviates_the_interval_is_that_of_what_an_added_one_may_do(hits, paired):
    """Half a cluster among twelve has a share of the weight that is distributed as a beta."""
    a, b = (sums([hit] * 12, [5] * 12) for hit in hits)
    if not paired:
        b.index += 100
    found = difference(a, b)
    part = stats.beta(0.5, 12).ppf(0.975)
    expected = {
        ((5, 5), True): (-part, part),
        ((5, 0), True): (1 - 2 * part, 1),
        ((0, 0), False): (-part, part),
    }[hits, paired]
    assert (found.low, found.high) == pytest.approx(expected, abs=0.02)
    assert found.detectable > (found.high - found.low) / 2
    assert (found.p < 0.01) == (hits == (5, 0))


def test_one_level_cannot_be_told_from_a_copy():
    """Weighted shares of the same answers, added up in another order."""
    rng = np.random.default_rng(13)
    one = pd.DataFrame({"hits": rng.random(40), "trials": rng.random(40) + 1})
    copies = {"y": one.sample(frac=1.0, random_state=1), "z": one.iloc[::-1]}
    assert len({table["hits"].to_numpy().sum() for table in (one, *copies.values())}) > 1
    name, found = spread({"x": one, **copies})
    assert name == "x - z"
    assert (found.difference, found.p, found.low) == (0, 1, 0)
    assert found.high > 0.01


def test_verdicts_are_by_the_corrected_p_where_there_is_one():
    pairs = study(entities=400, rng=np.random.default_rng(2), group=2.0, models=("a",))
    table = contrast_table(
        pairs,
        named=(Contrast("rule", ("mt", "ds")),),
        exploratory=(Contrast("group"),),
        cluster="entity",
    ).set_index("factor")
    assert table["verdict"].to_dict() == {"rule": "smaller", "group": "different"}
    rule = table.loc["rule"]
    assert rule["low"] < rule["excluded_below"] < rule["difference"]
    assert rule["difference"] < rule["excluded_above"] < rule["high"]


def test_a_level_that_weighs_less_has_no_findings_of_its_own():
    """One cluster of 24 is ever right: at whichever level it is, that is no finding."""
    heavy, light = sums([0] * 12, [60] * 12), sums([4] + [0] * 11, [10] * 12)
    light.index += 100
    assert difference(heavy, light).p == 1.0


def test_few_clusters_are_not_tested():
    found = difference(sums([1] * 9, [2] * 9), sums([0] * 9, [2] * 9))
    assert found.difference == 0.5
    assert np.isnan([found.p, found.low, found.detectable]).all()
    assert re.fullmatch(r"no test: .* 10 clusters .*side", found.note)


@pytest.mark.slow
def test_extremes_are_tested_as_extremes():
    """Ten phrasings that are alike: best against worst, as if named before, would be a finding."""
    rng = np.random.default_rng(4)
    found, naive = [], []
    for _ in range(40):
        levels = {str(k): sums(rng.binomial(4, 0.5, 30), [4] * 30) for k in range(10)}
        name, result = spread(levels)
        found.append(result.p)
        best, worst = name.split(" - ")
        naive.append(difference(levels[best], levels[worst]).p)
        assert 0 <= result.low < result.difference < result.high
    assert np.mean(np.array(found) <= 0.05) <= 0.15
    assert np.mean(np.array(naive) <= 0.05) > 0.4


def test_what_only_rounding_tells_apart_is_no_finding():
    """Weighted sums of the same hits in another order differ by 1e-17 or so."""
    rng = np.random.default_rng(7)
    weights, hits = rng.random((40, 3)), rng.random((40, 3)) < 0.4
    orders = ([0, 1, 2], [2, 0, 1])
    one, other = (
        sums(
            [sum((weights * hits)[row, order]) for row in range(40)],
            [sum(weights[row, order]) for row in range(40)],
        )
        for order in orders
    )
    other["hits"] += 1e-17 * np.arange(40)
    found = difference(one, other)
    assert 0 < abs(found.share_a - found.share_b) < 1e-15
    assert (found.difference, found.p) == (0, 1)
    assert found.high - found.low > 0.01
    assert spread({"one": one, "other": other})[1].p == 1


def test_named_contrasts_are_corrected_and_others_are_not():
    pairs = study(rng=np.random.default_rng(2), effect=2.5)
    table = contrast_table(
        pairs,
        named=(Contrast("rule", ("mt", "ds")), Contrast("model")),
        exploratory=(Contrast("group"),),
        cluster="entity",
    )
    assert table["status"].tolist() == ["confirmatory"] * 3 + ["exploratory"] * 2
    assert table["contrast"].tolist()[:3] == ["mt - ds", "mt - ds", "a - b"]
    assert table["model"].tolist() == ["a", "b", "", "a", "b"]
    named = table[table["status"] == "confirmatory"]
    assert (named["p_holm"] >= named["p"]).all()
    assert (named["p_holm"].iloc[:2] < 0.05).all()
    assert table["p_holm"].iloc[3:].isna().all()
    assert (table["low"] <= table["difference"]).all()
    # What decides comes first: a wide table is cut off on the right of a page.
    decisive = ["difference", "low", "high", "p", "p_holm", "detectable"]
    assert table.columns.tolist()[:10] == ["model", "factor", "contrast", "status", *decisive]


def test_weights_count_trials():
    pairs = study(rng=np.random.default_rng(3), models=("a",)).assign(weight=1.0)
    heavy = pairs["rule"].eq("mt") & pairs["paired"]
    twice = pd.concat([pairs, pairs[heavy]])
    options = {"named": (Contrast("rule", ("mt", "ds")),), "cluster": "entity"}
    pairs.loc[heavy, "weight"] = 2.0
    weighted = contrast_table(pairs, weight="weight", **options)
    pd.testing.assert_frame_equal(weighted, contrast_table(twice, **options))


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (3, 9), (20, 20), (1, 0)])
def test_mcnemar_is_that_of_statsmodels(only_a, only_b):
    a = [True] * 10 + [True] * only_a + [False] * only_b
    b = [True] * 10 + [False] * only_a + [True] * only_b
    expected = statsmodels_mcnemar([[10, only_a], [only_b, 0]], exact=True).pvalue
    assert mcnemar(a, b) == pytest.approx(expected if only_a + only_b else 1.0)


@pytest.mark.parametrize("paired", [True, False])
def test_the_smallest_p_is_that_of_the_clearest_difference(paired):
    """Ten clusters are all right at one level and all wrong at the other."""
    a, b = sums([5] * 10, [5] * 10), sums([0] * 10, [5] * 10)
    b.index += 0 if paired else 100
    found = difference(a, b)
    assert found.paired == paired
    assert found.p == pytest.approx(found.p_least, rel=0.5, abs=3e-4)
    assert found.p >= found.p_least


@pytest.mark.slow
def test_a_level_that_weighs_less_differs_by_chance_as_often_as_stated(monkeypatch):
    """Clusters of one level weigh six times as much, and one in ten is ever right."""
    monkeypatch.setattr(contrasts, "RESAMPLES", 199)
    rng = np.random.default_rng(5)
    p = []
    for _ in range(300):
        hits = rng.binomial(1, 0.1, 40) * rng.integers(1, 7, 40)
        heavy, light = sums(6 * hits[:20], [36] * 20), sums(hits[20:], [6] * 20)
        light.index += 100
        p.append(difference(heavy, light).p)
    assert (np.array(p) <= 0.05).mean() <= 0.09
