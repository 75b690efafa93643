"""Guarantees; conformal limits against their definition, and how often scores exceed them."""

import math
import re

import numpy as np
import pandas as pd
import pytest

from interp.measurements.patching.guarantee import (
    conformal_limit,
    covered_low,
    fewest,
    guarantee_tables,
)
from tests.measurements.patching import test_tables


@pytest.mark.parametrize(
    ("level", "scores", "rank"),
    [(0.95, 19, 19), (0.95, 20, 20), (0.95, 39, 38), (0.9, 9, 9), (0.9, 29, 27), (0.5, 4, 3)],
)
def test_the_limit_is_an_order_statistic_of_enough_scores(level, scores, rank):
    values = np.random.default_rng(scores).permutation(scores) + 1.0
    assert conformal_limit(values, level) == rank
    needed = {0.5: 1, 0.9: 9, 0.95: 19}[level]
    assert fewest(level) == needed
    assert math.isfinite(conformal_limit(np.ones(needed), level))
    assert conformal_limit(np.ones(needed - 1), level) == math.inf
    assert math.isnan(covered_low(needed - 1, 10, level))


def test_of_one_draw_at_least_so_many_are_covered():
    """The share of draws in which fewer are covered is at most 5%, and one unit more exceeds it."""
    scored, others, level = 24, 30, 0.9
    drawn = np.random.default_rng(3).standard_normal((20_000, scored + others))
    limits = np.array([conformal_limit(row[:scored], level) for row in drawn])
    covered = (drawn[:, scored:] <= limits[:, None]).mean(1)
    low = covered_low(scored, others, level)
    assert (covered < low - 1e-9).mean() <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 20_000)
    assert (covered < low + 1 / others - 1e-9).mean() > 0.05
    assert math.isnan(covered_low(scored, 0, level))


ROLES = ("template", "entity", "last")


def patches_of(estimates, exact, checked, *, site="resid_pre"):
    """Rows of arrays (pair, role): estimates of all, exact effects of the checked pairs."""
    parts = []
    for role, own, run in zip(ROLES, np.transpose(estimates), np.transpose(exact), strict=False):
        parts.append(test_tables.patches_of(own, role=role, method="gradient", site=site))
        parts.append(test_tables.patches_of(run, role=role, site=site)[np.array(checked)])
    return pd.concat(parts)


def pairs_of(checked):
    names = [f"p{pair}" for pair in range(len(checked))]
    same = {"model": "m", "direction": "denoising"}
    return pd.DataFrame({"pair_id": names, "checked": checked, **same})


def tables(estimates, exact, checked, level):
    return guarantee_tables([patches_of(estimates, exact, checked)], pairs_of(checked), level=level)


def test_bounds_worked_out_by_hand():
    """At 0.5 the margin is the larger of two scores: of the pairs 4 - 1 and 1.5 - 1, of the roles
    4 - 1 and 0.5 - 2 in the first, 0 - 0 and 1.5 - 1 in the second."""
    checked = [True, True, False, False]
    estimates = [[-1, 0], [2, 1], [-4, 0.25], [3, -0.5]]
    exact = [[4, 0], [0.5, -1.5], [np.nan] * 2, [np.nan] * 2]
    sites, strata = tables(estimates, exact, checked, 0.5)
    (site,) = sites.to_dict("records")
    assert (site["margin"], site["largest_estimate"], site["bound"]) == (3, 4, 7)
    assert site["effect_limit"] == 4
    assert (site["pairs_checked"], site["pairs_unchecked"], site["note"]) == (2, 2, "")
    assert strata["role"].tolist() == ["template", "entity"]
    numbers = strata[["margin", "bound", "effect_limit"]].to_numpy().tolist()
    assert numbers == [[3, 7, 4], [0.5, 1, 1.5]]
    # Estimates that are too large need no margin.
    sites, strata = tables([[2.0]] * 3, [[0.5]] * 3, [True, True, False], 0.5)
    assert sites["margin"].item() == -1.5
    assert sites["bound"].item() == strata["bound"].item() == 0.5
    sites, _ = tables([[2.0], [2.0], [1.0]], [[0.5]] * 3, [True, True, False], 0.5)
    assert sites["bound"].item() == 0
    nothing = patches_of([[0.0]], [[0.0]], [False])[:0]
    assert all(own.empty for own in guarantee_tables([nothing], pairs_of([False]), level=0.9))


def test_too_few_checked_pairs_bound_nothing_and_say_so():
    checked = [True, True, False]
    sites, strata = tables(np.zeros((3, 2)), np.ones((3, 2)), checked, 0.95)
    assert re.match(r"no bound: .*\b0\.95\b.*\b19 .*pairs.*\b2$", sites["note"].item())
    assert sites[["margin", "bound", "covered_low", "effect_limit"]].isna().all(axis=None)
    assert strata[["margin", "bound"]].isna().all(axis=None)
    sites, _ = tables(np.zeros((2, 2)), np.ones((2, 2)), [True, True], 0.5)
    assert re.match(r"no bound: .*pairs.*checked$", sites["note"].item())
    assert sites["margin"].item() == 1


def test_an_exact_effect_without_a_number_is_beyond_any_bound():
    exact = np.array([[1.0, 1.0], [np.nan, 1.0], [1.0, 1.0]])
    sites, _ = tables(np.zeros((3, 2)), exact, [True, True, False], 0.6)
    assert "not finite" in sites["note"].item()
    sites, strata = tables(np.zeros((3, 2)), exact, [True, True, False], 0.3)
    assert sites["margin"].item() == 1
    assert strata["note"].tolist() == ["", ""]


def test_every_site_has_its_own_guarantee():
    checked = [True, True, False]
    patches = [
        patches_of(np.zeros((3, 2)), np.full((3, 2), size), checked, site=site)
        for site, size in (("z", 1.0), ("v", 2.0))
    ]
    sites, strata = guarantee_tables(patches, pairs_of(checked), level=0.5)
    assert sites.set_index("site")["margin"].to_dict() == {"z": 1, "v": 2}
    assert len(strata) == 4


@pytest.mark.slow
@pytest.mark.parametrize("alike", [1, 10])
def test_bounds_hold_for_as_many_pairs_as_they_say(alike):
    """100 studies of 40 pairs, of which those of a city are alike and 5 are checked, as drawn.

    5 of 6 others are covered, of a site and of each role alone; one rank less would cover 4 of 6.
    Cells of a pair err together, with heavy tails, and more in some roles than in others.
    """
    rng, shares = np.random.default_rng(12), []
    for _ in range(100):
        of_pair = np.abs(rng.standard_t(2, size=(40 // alike, 1)))
        exact = of_pair * rng.normal(size=(40 // alike, 3)) * [0.05, 3.0, 0.5]
        estimates = 0.3 * exact + rng.normal(0, 0.1, exact.shape)
        exact, estimates = (np.repeat(part, alike, axis=0) for part in (exact, estimates))
        exact += rng.normal(0, 1e-6, exact.shape)
        checked = rng.permutation(40) < 5
        sites, strata = tables(estimates, exact, checked, 0.8)
        excess = (np.abs(exact) - np.abs(estimates))[~checked]
        by_role = excess <= strata.set_index("role").loc[[*ROLES], "margin"].to_numpy()
        at_once = (excess <= sites["margin"].item()).all(axis=1)
        shares.append([at_once.mean(), *by_role.mean(axis=0)])
    np.testing.assert_allclose(np.mean(shares, axis=0), 5 / 6, atol=0.06)
