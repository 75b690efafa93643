"""Of every statistic with an interval and a test: p is at most 0.05 if and only if the interval
excludes the tested value."""

import numpy as np
import pandas as pd
import pytest

from interp.analysis.reading_tables import CHANCE, CONSTANT, Sample, reading_table
from interp.statistics.classical import spearman, welch
from interp.statistics.clusters import cluster_contrast
from interp.statistics.contrasts import difference, spread
from interp.statistics.discrimination import mean_concordance
from interp.statistics.means import cluster_mean
from tests.analysis.test_readings import data

STUDIES = 60


def sums(rng, clusters, share, first=0):
    """Hits and trials of clusters, with another size and another share each."""
    trials = rng.integers(1, 9, clusters)
    hits = rng.binomial(trials, rng.beta(4 * share, 4 - 4 * share, clusters))
    index = range(first, first + clusters)
    return pd.DataFrame({"hits": hits, "trials": trials}, index, dtype=float)


def rows(rng):
    clusters = int(rng.integers(10, 24))
    table = pd.DataFrame({"unit": rng.integers(0, clusters, 80), "weight": rng.uniform(1, 6, 80)})
    value = (rng.random(80) < rng.beta(4, 2, clusters)[table["unit"]]).astype(float)
    return table.assign(value=value, group=rng.choice(["a", "b"], 80))


CLUSTERED = {"value": "value", "cluster": "unit", "weight": "weight"}


def contrasted(rng):
    table = rows(rng)
    table["value"] = table["unit"] % 5.0
    of_high = rng.random(80) < np.where(table["value"] > 2, 0.7, 0.4)
    table["group"] = np.where(of_high, "a", "b")
    return cluster_contrast(table, **CLUSTERED, group="group", groups=("a", "b"))


def levels(rng):
    return {name: sums(rng, 14, share) for name, share in (("x", 0.7), ("y", 0.5), ("z", 0.45))}


def ranks(rng, n):
    x = rng.normal(size=n)
    return spearman(pd.Series(x), pd.Series((rng.normal(1.2 * x)).round()))


def groups(rng):
    return welch(*(pd.Series(rng.normal(mean, size=12)) for mean in (0.0, 0.9)))


FOUND = {
    "paired shares": lambda rng: difference(sums(rng, 14, 0.7), sums(rng, 14, 0.45)),
    "unpaired shares": lambda rng: difference(sums(rng, 14, 0.75), sums(rng, 16, 0.45, 99)),
    "levels": lambda rng: spread(levels(rng))[1],
    "concordance": lambda rng: mean_concordance(rows(rng), **CLUSTERED),
    "share of another value": lambda rng: mean_concordance(rows(rng), **CLUSTERED, against=0.55),
    "mean": lambda rng: cluster_mean(rows(rng).eval("value = value - 0.45"), **CLUSTERED),
    "means of groups": contrasted,
    "ranks of eight": lambda rng: ranks(rng, 8),
    "ranks with ties": lambda rng: ranks(rng, 16),
    "groups": groups,
}
TESTED = {"concordance": 0.5, "share of another value": 0.55}


@pytest.mark.parametrize("name", FOUND)
def test_p_is_small_if_and_only_if_the_interval_excludes_the_value(name):
    rng, small, tested = np.random.default_rng(5), 0, 0
    against = TESTED.get(name, 0.0)
    for _ in range(STUDIES):
        found = FOUND[name](rng)
        if np.isnan([found.low, found.p]).any():
            continue
        assert (found.p <= 0.05) == (not found.low <= against <= found.high), found
        small, tested = small + (found.p <= 0.05), tested + 1
    assert 0.1 * tested < small < 0.9 * tested and tested > STUDIES / 3


def test_a_contrast_reaches_to_the_value_that_a_permutation_does_not_reject():
    """Of 14 clusters 5 differ, all upward: of the signs of five, one in 16 is as far."""
    a, b = (pd.DataFrame({"hits": [1.0] * n + [0.0] * (14 - n), "trials": 1.0}) for n in (5, 0))
    found = difference(a, b)
    assert found.p == pytest.approx(1 / 16, abs=0.01)
    assert (found.low, found.high > found.difference) == (0.0, True)


@pytest.mark.parametrize("better", [CHANCE, CONSTANT])
@pytest.mark.parametrize("options", [2, 3])
def test_readings_differ_from_baselines_as_their_intervals_say(options, better):
    rng, small = np.random.default_rng(options), [0, 0]
    names = [*"ABC"[:options]]
    # One of the options is correct more often than the others.
    odds = [1.0] * options if better == CHANCE else [4.0] + [1.0] * (options - 1)
    for _ in range(STUDIES // 2):
        weights = rng.choice([1.0, 5.0], 36)
        golds = rng.choice(names, 36, p=np.array(odds) / sum(odds))
        golds = (names * 36)[:36] if better == CHANCE else golds
        prompts, _, shares = data([[1 / options] * options] * 36, golds, names=names)
        prompts = prompts.assign(weight=weights, topic=np.arange(36) // 2 % 14)
        sample = Sample(prompts, shares, "topic")
        right = rng.random(36) < 0.5 + 0.35 * (better == CONSTANT)
        credits = pd.DataFrame({"credit": right.astype(float), "tied": False}, prompts["prompt_id"])
        table = reading_table(sample, {("m", "own"): credits})
        row = table.iloc[0]
        assert row["clusters"] == 14
        for place, end in enumerate(("", "_chance")):
            low, high, p = row[[f"over{end}_low", f"over{end}_high", f"p{end}"]]
            assert (p <= 0.05) == (not low <= 0 <= high)
            small[place] += p <= 0.05
        excluded = not row["low"] <= 1 / options <= row["high"]
        assert (row["p_chance"] <= 0.05) == excluded
        assert row["over_chance"] == pytest.approx(row["accuracy"] - 1 / options)
        chance = row[["over_chance_low", "over_chance_high"]].to_numpy(float) + 1 / options
        assert row[["low", "high"]].to_numpy(float) == pytest.approx(chance)
    assert small[1] > 0
