import numpy as np
import pandas as pd
import pytest

from interp.analysis.shrinkage import between_groups, shrunken_shares, within_cells


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


def test_the_ends_of_the_raw_ranking_are_small_groups_and_those_of_the_shrunken_one_are_not():
    table, _ = cells(np.random.default_rng(1), spread=0.08)
    found = shrunken(table)
    raw, ours = (found.nlargest(10, name)["trials"].mean() for name in ("share", "estimate"))
    assert ours > 2 * raw


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
