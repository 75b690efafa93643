"""What a plan promises, held against studies that are simulated and tested in another way."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from interp.prompts.systems import Contrast, find_system, load_prompts
from interp.statistics import contrasts
from interp.statistics.clusters import FEWEST
from interp.statistics.contrasts import contrast_table, difference
from interp.statistics.power import (
    Expected,
    PairCounts,
    _two_differ,
    assumed,
    detectable,
    expected,
    family_size,
    known_pairs,
    of_pilot,
    plan_table,
    power,
    simulated,
)
from interp.statistics.proportions import proportions
from interp_probes.facts.show import FILTERED_GROUPS

RULE = Contrast("rule", ("mt", "ds"))
GROUP = Contrast("entity_group", ("geographical", "categorical"))
PHRASING = Contrast("phrasing")
MODELS = Contrast("model", ("first", "second"))
NAMED = (RULE, GROUP, PHRASING, Contrast("model"))


@pytest.fixture(scope="module")
def pairs():
    """720 pairs of the data set about 36 entity pairs."""
    return load_prompts(limit=720).to_frame().drop_duplicates("pair_id")


def answers(rng, pairs, share, correlation):
    """Answers by a normal variable, which a threshold cuts: part of it is the cluster's own.

    At a share of a half such answers have this correlation, and nearly so beside it.
    """
    cluster = pd.factorize(pairs["entity_b"])[0]
    own = np.sin(np.pi / 2 * correlation)
    of_cluster = rng.normal(size=cluster.max() + 1)[cluster]
    latent = np.sqrt(own) * of_cluster + np.sqrt(1 - own) * rng.normal(size=len(pairs))
    return latent < norm.ppf(share)


def sums(pairs, right):
    mass = pairs["weight"].to_numpy()
    table = pd.DataFrame({"hits": right * mass, "trials": mass})
    return table.groupby(pairs["entity_b"].to_numpy()).sum()


def test_independent_answers_need_what_the_textbook_says():
    pairs = pd.DataFrame({"entity": range(400), "rule": ["mt", "ds"] * 200, "weight": 1.0})
    trials = PairCounts.of(pairs, RULE, "entity")
    # (1.960 + 0.842) * sqrt(0.25 / 200 + 0.25 / 200); at 3 tests Bonferroni's 2.394 for 1.960.
    # The half cluster added to each level moves its share by 0.5 * 0.5 / 200.
    found = [detectable(trials, Expected(0.5, (0.0,), 0.0), tests=tests) for tests in (1, 3)]
    assert found == pytest.approx([2.8016 * 0.05 + 0.0025, 3.2356 * 0.05 + 0.0025], rel=0.04)


def test_simulated_answers_have_the_shares_and_correlations(pairs):
    trials = PairCounts.of(pairs.assign(weight=1.0), RULE, "entity_b")
    awaited = Expected(0.6, (0.5, 0.3), 0.2)
    hits = simulated(trials, awaited, 0.2, studies=4000)
    size = trials.sums(trials.counts.astype(float))
    shares = np.array([0.7, 0.5])
    assert (hits.sum(axis=1) / size.sum(axis=0)).mean(axis=0) == pytest.approx(shares, abs=0.01)
    # Without a difference: variance of a sum of n, and covariance of two such sums.
    away = simulated(trials, awaited, 0.0, studies=4000) - 0.6 * size
    n, own = size[0, 0], 0.6 * 0.4
    assert n == size.max() == 10
    for level, correlation in enumerate((0.5, 0.3)):
        variance = n * own * (1 + (n - 1) * correlation)
        assert away[..., level].var() == pytest.approx(variance, rel=0.03)
    covariance = (away[..., 0] * away[..., 1]).mean()
    assert covariance == pytest.approx(n**2 * own * 0.2, rel=0.05)


def test_correlations_of_a_pilot_computed_by_hand():
    """Shares of a half: products of deviations of +-1, weights of 1."""
    right = {"u": ([1, 1], [1, 0]), "v": ([0, 0], [0, 1])}
    rows = [
        {"entity": entity, "rule": rule, "paired": bool(value), "weight": 1.0}
        for entity, levels in right.items()
        for rule, values in zip(("mt", "ds"), levels, strict=True)
        for value in values
    ]
    found = expected(pd.DataFrame(rows), RULE, "entity")
    # mt: two pairs of equal answers; ds: two of opposite ones, no correlation below 0; across: 0.
    assert found.within == (1.0, 0.0)
    assert found.across == 0.0
    assert found.share == pytest.approx(0.5)


@pytest.mark.parametrize("contrast", [RULE, GROUP])
def test_simulated_studies_are_tested_as_reports_are(pairs, contrast):
    trials = PairCounts.of(pairs, contrast, "entity_b")
    asked = trials.sums(trials.weights * trials.counts)
    hits = simulated(trials, Expected(0.5, (0.6,), 0.3), 0.25, studies=40)
    told = _two_differ(hits, asked, 0.05, paired=trials.compared()[0])
    assert 5 < told.sum() < 35
    permuted = []
    for study in hits:
        a, b = (
            pd.DataFrame({"hits": study[:, level], "trials": asked[:, level]}).query("trials > 0")
            for level in (0, 1)
        )
        permuted.append(difference(a, b).p <= 0.05)
    assert (told == permuted).mean() >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("contrast", [RULE, GROUP, MODELS])
def test_a_planned_difference_is_found_in_four_studies_of_five(pairs, contrast, monkeypatch):
    """500 studies of other answers than planned for, by the report's own permutation tests."""
    monkeypatch.setattr(contrasts, "RESAMPLES", 999)
    together = contrast == RULE
    awaited = Expected(0.5, (0.4,), 0.4 if together else 0.0)
    planned = detectable(PairCounts.of(pairs, contrast, "entity_b"), awaited)
    rng = np.random.default_rng(0)
    shares = 0.5 + planned / 2, 0.5 - planned / 2
    first = pairs[contrast.factor] == contrast.levels[0] if contrast != MODELS else None
    found = 0
    for _ in range(500):
        state = rng.bit_generator.state
        a = answers(rng, pairs, shares[0], 0.4)
        if together:  # both levels from the same chances
            rng.bit_generator.state = state
        b = answers(rng, pairs, shares[1], 0.4)
        if first is None:
            tables = sums(pairs, a), sums(pairs, b)
        else:
            right = np.where(first, a, b)
            tables = sums(pairs[first], right[first]), sums(pairs[~first], right[~first])
        found += difference(*tables).p <= 0.05
    assert found / 500 == pytest.approx(0.8, abs=0.06)


def test_a_plan_from_a_pilot_says_what_its_own_report_says(pairs):
    """The column detectable of a run of the same answers."""
    rng = np.random.default_rng(1)
    answered = pd.concat(
        pairs.assign(model=model, paired=answers(rng, pairs, share, correlation))
        for model, share, correlation in (("first", 0.5, 0.7), ("second", 0.6, 0.3))
    )
    named = (GROUP, Contrast("model"))
    run = contrast_table(answered, named=named, cluster="entity_b", weight="weight")
    planned = of_pilot(answered, named, cluster="entity_b")
    table = plan_table(pairs, planned, cluster="entity_b", tests=3)
    assert table["model"].tolist() == run["model"].tolist() and "note" not in table
    ratio = table["detectable"].astype(float) / run["detectable"]
    assert ratio.between(0.85, 1.15).all(), ratio


def test_extremes_of_phrasings_that_are_alike_are_two_differ_in_a_twentieth(pairs):
    trials = PairCounts.of(pairs, PHRASING, "entity_b")
    for awaited in (Expected(0.5, (0.6,), 0.4), Expected(0.5, (0.5,), 0.5)):
        assert power(trials, awaited, 0.0) == pytest.approx(0.05, abs=0.03)
        assert power(trials, awaited, 0.5) > 0.9


def test_rules_are_compared_within_entities_where_answers_depend_on_them(pairs):
    trials = PairCounts.of(pairs, RULE, "entity_b")
    apart, together = (detectable(trials, Expected(0.5, (0.8,), x)) for x in (0.0, 0.7))
    assert together < 0.7 * apart


def test_nothing_is_found_among_fewer_than_ten_clusters(pairs):
    few = pairs[pairs["entity_b"].isin(pairs["entity_b"].unique()[:9])]
    planned = assumed([RULE], accuracy=0.5, correlation=0.5)
    (row,) = plan_table(few, planned, cluster="entity_b", tests=1).to_dict("records")
    assert (row["clusters"], row["detectable"], row["detectable_holm"]) == (9, "none", "none")


def test_a_family_counts_the_tests_of_all_models():
    assert [family_size(NAMED, models) for models in (1, 2, 6)] == [3, 7, 33]


@pytest.mark.parametrize(("right", "end"), [(0, "high"), (720, "low"), (4, "high")])
def test_a_pilot_at_an_edge_promises_no_more_than_its_interval(pairs, right, end):
    paired = np.arange(len(pairs)) < right
    pilot = pairs.assign(model="m", paired=paired, weight=1.0)
    (one,) = of_pilot(pilot, [RULE], cluster="entity_b")
    (found,) = proportions(pilot, values=["paired"], by=[], cluster="entity_b").to_dict("records")
    share = pytest.approx(found[end])
    assert (one.awaited.share, one.awaited.within, one.awaited.across) == (share, (0.8,), 0.4)
    (row,) = plan_table(pairs, [one], cluster="entity_b", tests=1).to_dict("records")
    assert re.match(rf"pilot: {right} .*\b720\b", row["note"])
    # Without variance, 0.03 seemed enough.
    assert 0.1 < float(row["detectable"]) < 0.3


def test_a_filter_leaves_clusters_whose_facts_are_known(pairs):
    system = find_system("rulebreakers")
    known = partial(known_pairs, pairs, system.known, cluster="entity_b", seed=0)
    assert len(known(share=1.0)) == len(pairs)
    cities, others = (pairs["entity_group"] == name for name in ("geographical", "categorical"))
    left = known(share=0.2)
    asked = round(0.2 * pairs.loc[cities, "entity_b"].nunique())
    assert left.loc[cities, "entity_b"].nunique() == asked < FEWEST
    assert left.loc[others, "pair_id"].tolist() == pairs.loc[others, "pair_id"].tolist()
    planned = assumed([GROUP], accuracy=0.5, correlation=0.5)
    (row,) = plan_table(left, planned, cluster="entity_b", tests=1).to_dict("records")
    assert row["detectable"] == "none"
    assert system.known.levels == FILTERED_GROUPS
