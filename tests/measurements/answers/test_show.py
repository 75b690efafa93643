"""How unequally the clusters of a sample count."""

import re

import pandas as pd
import pytest

from interp.analysis.cautions.collected import sample_cautions
from interp.measurements.answers.show import unequal


def prompts(weights):
    clusters = [f"c{number}" for number in range(len(weights)) for _ in range(2)]
    return pd.DataFrame({"city": clusters, "weight": [w / 2 for w in weights for _ in range(2)]})


def test_unequal_weights_leave_fewer_effective_clusters():
    # (10 + 10)^2 / (10 + 2 * 5^2) = 400 / 60
    told = unequal(prompts([1] * 10 + [5] * 2), "city")
    assert re.search(r"\b12 clusters \(city\).*\b6\.7\b", told)
    # Of very unequal ones, a caution says so: (60 + 60)^2 / (60 + 2 * 30^2) = 14,400 / 1,860
    very = prompts([1] * 60 + [30] * 2).assign(pair_id=range(124), side="a")
    (found,) = sample_cautions(very, "city")
    assert found.numbers == {"units": 62, "half": 2, "effective": pytest.approx(14_400 / 1_860)}
    assert unequal(very, "city") == ""


@pytest.mark.parametrize("weights", [[3] * 12, [1], [1, 1.5, 1, 1.2], []])
def test_nearly_equal_weights_are_not_mentioned(weights):
    assert unequal(prompts(weights), "city") == ""
