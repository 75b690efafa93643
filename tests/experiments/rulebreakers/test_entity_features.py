from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.errors import UserError
from interp_experiments.rulebreakers.entity_features import feature_contrast, most_and_least

ENTITIES = pd.DataFrame(
    {
        "model": ["m"] * 5 + ["n"] * 5,
        "city": list("abcde") * 2,
        "paired_accuracy": [0.9, 0.1, 0.5, 0.5, 0.0, 0.7, 0.3, 0.6, 0.6, np.nan],
        "named": [True, False, False, True, False] * 2,
    }
)


def test_the_ends_are_ordered_by_the_mean_over_models_then_by_name():
    table = most_and_least(ENTITIES, key="city", k=2)
    assert table["end"].tolist() == ["most"] * 2 + ["least"] * 2
    assert table["rank"].tolist() == [1, 2, 1, 2]
    assert table["city"].tolist() == ["a", "c", "e", "b"]
    assert table["paired_accuracy"].tolist() == pytest.approx([0.8, 0.55, 0.0, 0.2])
    assert table["models"].tolist() == [2, 2, 1, 2]


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
def test_no_entity_pair_stands_at_both_ends(k):
    table = most_and_least(ENTITIES, key="city", k=k)
    assert table["city"].is_unique
    assert len(table) == min(2 * k, 5)


def test_less_than_one_is_refused():
    with pytest.raises(UserError, match="0 entity pairs"):
        most_and_least(ENTITIES, key="city", k=0)


@given(
    st.lists(st.integers(0, 10), min_size=2, max_size=4),
    st.lists(st.integers(0, 10), min_size=2, max_size=4),
)
def test_few_entity_pairs_give_the_exact_p_value(a, b):
    values = np.array(a + b) / 10
    frame = pd.DataFrame({"accuracy": values, "named": [True] * len(a) + [False] * len(b)})
    (row,) = feature_contrast(frame, value="accuracy", feature="named", by=()).itertuples()
    if len(set(values)) == 1:
        assert row.note == "undefined: all values equal"
        return
    sums = np.array(
        [sum(values[list(chosen)]) for chosen in combinations(range(len(values)), len(a))]
    )
    observed = values[: len(a)].sum()
    tails = (sums >= observed - 1e-9).mean(), (sums <= observed + 1e-9).mean()
    assert row.p == pytest.approx(min(1.0, 2 * min(tails)))
    assert row.difference == pytest.approx(np.mean(a) / 10 - np.mean(b) / 10)
    assert row.method == "exact permutation"


def test_many_entity_pairs_are_drawn_the_same_way_each_time():
    rng = np.random.default_rng(0)
    accuracy = np.r_[rng.uniform(0.3, 1.0, 8), rng.uniform(0.0, 0.7, 175)]
    frame = pd.DataFrame({"model": "m", "accuracy": accuracy, "named": np.arange(183) < 8})
    table = feature_contrast(frame, value="accuracy", feature="named")
    again = feature_contrast(frame, value="accuracy", feature="named")
    pd.testing.assert_frame_equal(table, again)
    (row,) = table.itertuples()
    assert row.method == "permutation, 9,999 draws"
    assert 2 / 10_000 <= row.p < 0.01
    assert (row.n_with, row.n_without) == (8, 175)


def test_swapping_the_feature_flips_the_difference():
    one = feature_contrast(ENTITIES, value="paired_accuracy", feature="named")
    other = feature_contrast(
        ENTITIES.assign(named=~ENTITIES["named"]), value="paired_accuracy", feature="named"
    )
    assert one["difference"].tolist() == pytest.approx((-other["difference"]).tolist())
    assert one["p"].tolist() == pytest.approx(other["p"].tolist())
    assert one["n_with"].tolist() == [2, 2]
    assert one["n_without"].tolist() == [3, 2]  # a missing value is left out


@pytest.mark.parametrize(("named", "missing"), [(True, "without"), (False, "with")])
def test_a_feature_that_all_share_has_no_contrast(named, missing):
    table = feature_contrast(ENTITIES.assign(named=named), value="paired_accuracy", feature="named")
    assert table["p"].isna().all()
    assert set(table["note"]) == {f"undefined: fewer than two entity pairs {missing} the feature"}


def test_a_contrast_of_nothing_has_its_columns():
    table = feature_contrast(ENTITIES.iloc[:0], value="paired_accuracy", feature="named")
    assert table.empty
    assert {"model", "feature", "p", "note"} <= set(table.columns)
