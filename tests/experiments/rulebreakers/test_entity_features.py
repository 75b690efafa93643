import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_ind

from interp.errors import UserError
from interp_experiments.rulebreakers.entity_features import feature_contrast, most_and_least

ENTITIES = pd.DataFrame(
    {
        "model": ["m"] * 5 + ["n"] * 5,
        "city": list("abcde") * 2,
        "paired_accuracy": [0.9, 0.1, 0.5, 0.5, 0.0, 0.7, 0.3, 0.6, 0.6, np.nan],
        "named": [True, False, False, True, False] * 2,
        "pairs": 40,
    }
)


def test_the_ends_are_ordered_by_the_estimate_then_by_name():
    table = most_and_least(ENTITIES, key="city", k=2)
    assert table["end"].tolist() == ["most"] * 2 + ["least"] * 2
    assert table["rank"].tolist() == [1, 2, 1, 2]
    assert table["city"].tolist() == ["a", "c", "e", "b"]
    assert table["share"].tolist() == pytest.approx([0.8, 0.55, 0.0, 0.2])
    assert table["models"].tolist() == [2, 2, 1, 2]
    assert table["trials"].tolist() == [80, 80, 40, 80]
    assert (table["low"] < table["estimate"]).all()
    assert (table["estimate"] < table["high"]).all()


def test_one_lucky_answer_is_not_the_best_of_all():
    lucky = pd.DataFrame(
        {"model": ["m", "n"], "city": "z", "paired_accuracy": 1.0, "pairs": 1, "named": False}
    )
    table = most_and_least(pd.concat([ENTITIES, lucky]), key="city", k=1)
    assert table["city"][0] == "a"


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
def test_no_entity_pair_stands_at_both_ends(k):
    table = most_and_least(ENTITIES, key="city", k=k)
    assert table["city"].is_unique
    assert len(table) == min(2 * k, 5)


def test_less_than_one_is_refused():
    with pytest.raises(UserError, match="0 entity pairs"):
        most_and_least(ENTITIES, key="city", k=0)


def frame(rng, with_feature, without):
    accuracy = np.r_[rng.uniform(0.3, 1.0, with_feature), rng.uniform(0.0, 0.7, without)]
    named = np.arange(len(accuracy)) < with_feature
    return pd.DataFrame({"model": "m", "accuracy": accuracy, "named": named})


def test_entity_pairs_are_drawn_the_same_way_each_time():
    pairs = frame(np.random.default_rng(0), 12, 171)
    table = feature_contrast(pairs, value="accuracy", feature="named")
    again = feature_contrast(pairs, value="accuracy", feature="named")
    pd.testing.assert_frame_equal(table, again)
    (row,) = table.itertuples()
    assert 2 / 10_000 <= row.p < 0.01
    assert (row.n_with, row.n_without) == (12, 171)


def test_the_p_value_is_near_that_of_welch_where_both_hold():
    pairs = frame(np.random.default_rng(1), 40, 60).assign(
        accuracy=np.random.default_rng(2).normal(0.5, 0.1, 100)
    )
    (row,) = feature_contrast(pairs, value="accuracy", feature="named").itertuples()
    values = (pairs.loc[pairs["named"] == flag, "accuracy"] for flag in (True, False))
    assert row.p == pytest.approx(ttest_ind(*values, equal_var=False).pvalue, abs=0.02)


@pytest.mark.parametrize("n", [0, 3, 9])
def test_few_entity_pairs_on_either_side_are_not_tested(n):
    for sizes, few in (((n, 40), "with"), ((40, n), "without")):
        pairs = frame(np.random.default_rng(3), *sizes)
        (row,) = feature_contrast(pairs, value="accuracy", feature="named").itertuples()
        assert np.isnan(row.p)
        assert row.note == (
            f"not tested, for lack of power: {n} entity pairs {few} the feature, at least 10 needed"
        )


def test_swapping_the_feature_flips_the_difference():
    pairs = frame(np.random.default_rng(4), 15, 30)
    pairs.loc[0, "accuracy"] = np.nan
    one = feature_contrast(pairs, value="accuracy", feature="named")
    other = feature_contrast(pairs.assign(named=~pairs["named"]), value="accuracy", feature="named")
    assert one["difference"].tolist() == pytest.approx((-other["difference"]).tolist())
    assert one["p"].tolist() == pytest.approx(other["p"].tolist(), abs=0.01)
    assert one["n_with"].tolist() == [14]  # a missing value is left out


def test_equal_values_have_no_contrast():
    pairs = frame(np.random.default_rng(5), 15, 30).assign(accuracy=0.5)
    assert feature_contrast(pairs, value="accuracy", feature="named")["note"].tolist() == [
        "undefined: all values equal"
    ]


def test_a_contrast_of_nothing_has_its_columns():
    table = feature_contrast(ENTITIES.iloc[:0], value="paired_accuracy", feature="named")
    assert table.empty
    assert {"model", "feature", "p", "note"} <= set(table.columns)
