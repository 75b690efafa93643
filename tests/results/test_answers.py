"""How unequally the clusters of a sample count."""

import pandas as pd
import pytest

from interp.results.answers import unequal


def prompts(weights):
    clusters = [f"c{number}" for number in range(len(weights)) for _ in range(2)]
    return pd.DataFrame({"city": clusters, "weight": [w / 2 for w in weights for _ in range(2)]})


def test_two_clusters_with_half_of_the_weight_leave_few_effective_ones():
    # (60 + 60)^2 / (60 + 2 * 30^2) = 14,400 / 1,860
    told = unequal(prompts([1] * 60 + [30] * 2), "city")
    assert "62 clusters (city) count like 7.7 equal" in told


@pytest.mark.parametrize("weights", [[3] * 12, [1], [1, 1.5, 1, 1.2], []])
def test_nearly_equal_weights_are_not_mentioned(weights):
    assert unequal(prompts(weights), "city") == ""
