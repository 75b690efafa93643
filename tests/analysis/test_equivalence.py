"""Two one-sided tests: held to statsmodels', and to what verdicts say."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.weightstats import DescrStatsW

from interp.analysis.equivalence import left_open, limits, verdict, verdicts


def test_limits_are_those_at_which_statsmodels_one_sided_tests_are_at_five_percent():
    values = np.random.default_rng(0).normal(0.02, 0.3, 40)
    error = values.std(ddof=1) / np.sqrt(40)
    below, above = limits(float(values.mean()), error, 39.0)
    _, lower, upper = DescrStatsW(values).ttost_mean(below, above)
    assert (lower[1], upper[1]) == pytest.approx((0.05, 0.05))


@pytest.mark.parametrize(
    ("p", "below", "above", "expected"),
    [
        (0.2, -0.05, 0.08, "smaller"),
        (0.2, -0.05, 0.11, "open"),
        (0.2, -0.12, 0.01, "open"),
        (0.01, 0.02, 0.08, "different"),
        (float("nan"), float("nan"), float("nan"), "not tested"),
        # A test without limits leaves everything open.
        (1.0, float("nan"), float("nan"), "open"),
    ],
)
def test_verdicts(p, below, above, expected):
    assert verdict(p, below, above) == expected
    row = pd.DataFrame({"p_holm": [p], "excluded_below": [below], "excluded_above": [above]})
    assert verdicts(row) == [expected]


def test_a_smaller_difference_of_interest_is_harder_to_exclude():
    assert verdict(0.2, -0.05, 0.08, smallest=0.06) == "open"
    assert left_open([("a", -0.05, 0.08)], smallest=0.06).startswith("a difference of 0.06 or more")


def test_what_is_left_open_is_said_with_its_limits():
    found = [("a", -0.021, 0.034), ("b", -0.15, 0.21), ("c", -0.01, 0.05)]
    assert left_open(found) == (
        "a difference of 0.1 or more is excluded for a (−0.021 to +0.034) and c (−0.010 to "
        "+0.050); a difference of 0.1 or more is not excluded for b (−0.150 to +0.210)"
    )
    assert left_open([]) == ""
    nan = float("nan")
    assert left_open([("a", nan, nan)]) == "a difference of 0.1 or more is not excluded for a"
