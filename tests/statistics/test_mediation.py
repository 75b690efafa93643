"""Mediated shares: unbiased products, both orders of the decomposition, Fieller's interval."""

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import ttest_1samp

from interp.statistics.mediation import (
    EFFECTS,
    NO_TOTAL,
    cluster_ratio,
    effects_of_draws,
    product_of_means,
)


@pytest.mark.parametrize("draws", [2, 3])
def test_the_product_of_means_is_unbiased_even_if_both_come_from_one_draw(draws):
    """Over all outcomes of a draw with three dependent pairs, each with its probability."""
    outcomes = [((1.0, 2.0), 0.5), ((-3.0, 1.0), 0.3), ((0.5, -4.0), 0.2)]
    one, other = (sum(p * pair[side] for pair, p in outcomes) for side in (0, 1))
    expected = 0.0
    for drawn in product(outcomes, repeat=draws):
        a, b = (np.array([pair[side] for pair, _ in drawn]) for side in (0, 1))
        expected += np.prod([p for _, p in drawn]) * product_of_means(a, b)
    assert expected == pytest.approx(one * other, rel=1e-12)
    assert product_of_means(np.array([2.0]), np.array([-3.0])) == -6.0  # a single draw is exact


def test_the_effects_by_hand():
    """An answer of 3 with both own, 1 with the changed prompt, 2 under the other thought, -2."""
    found = effects_of_draws(*(np.array([value]) for value in (3.0, 1.0, 2.0, -2.0)))
    values = {name: value.item() for name, value in found.items()}
    assert values == {
        "total": 5.0,
        "direct": 2.0,
        "through": 1.0,
        "direct_other": 4.0,
        "through_other": 3.0,
    }
    assert set(found) == set(EFFECTS)


def trials(seed=0, clusters=25, share=0.6):
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), 3)
    below = rng.normal(2, 1, len(cluster)) + rng.normal(0, 0.5, clusters)[cluster]
    above = share * below + rng.normal(0, 0.6, len(cluster))
    weight = rng.choice([1.0, 2.0], len(cluster))
    return pd.DataFrame({"a": above, "b": below, "cluster": cluster, "weight": weight})


def ratio(table):
    return cluster_ratio(table, above="a", below="b", cluster="cluster", weight="weight")


def test_the_interval_holds_the_ratios_that_a_t_test_does_not_reject():
    table = trials()
    found = ratio(table)
    weighted = table[["a", "b"]].mul(table["weight"], axis=0)
    a, b = weighted.groupby(table["cluster"]).sum().to_numpy().T
    assert found.mean == pytest.approx(a.sum() / b.sum())

    def rejected(candidate):
        return ttest_1samp(a - candidate * b, 0).pvalue - 0.05

    assert found.low == pytest.approx(brentq(rejected, found.mean - 3, found.mean), abs=1e-9)
    assert found.high == pytest.approx(brentq(rejected, found.mean, found.mean + 3), abs=1e-9)
    assert (found.trials, found.clusters, found.note) == (75, 25, "")


def test_weights_and_the_unit_of_the_effects_do_not_change_the_ratio():
    table = trials()
    scaled = table.assign(weight=7 * table["weight"], a=-3 * table["a"], b=-3 * table["b"])
    one, other = ratio(table), ratio(scaled)
    assert (other.mean, other.low, other.high) == pytest.approx((one.mean, one.low, one.high))


def test_a_ratio_without_deviations_has_an_interval_of_no_width():
    table = trials().assign(a=lambda rows: rows["b"])
    found = ratio(table)
    assert (found.mean, found.low, found.high) == pytest.approx((1.0, 1.0, 1.0), abs=1e-7)


def test_nothing_is_said_about_the_share_of_an_effect_that_may_be_zero():
    table = trials()
    sign = np.where(table["cluster"] % 2, 1, -1)
    found = ratio(table.assign(b=table["b"] * sign))
    assert np.isnan([found.mean, found.low, found.high]).all()
    assert found.note == NO_TOTAL
    few = ratio(table[table["cluster"] < 9])
    assert np.isnan(few.low)
    assert few.note.startswith("not tested: 9 clusters")
    nothing = ratio(table.assign(b=0.0))
    assert np.isnan(nothing.mean)
    assert re.match(r"undefined: .*total effect", nothing.note)
    assert re.match(r"undefined: .*trials", ratio(table[:0]).note)


def test_missing_values_are_omitted():
    table = trials()
    holes = table.assign(a=table["a"].where(table.index != 4))
    assert ratio(holes) == ratio(table.drop(index=4))
