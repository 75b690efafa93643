import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_ind

from interp.analysis.accuracy import accuracy_by
from interp.analysis.ratios import ratio_table
from interp.errors import UserError
from interp_experiments.rulebreakers.attribution_tables import model_level, prompt_level
from interp_experiments.rulebreakers.entity_tables import (
    entity_level,
    feature_contrast,
    most_and_least,
)

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


SIDES = ("broken", "kept")


@pytest.fixture
def tables():
    """Two models, entity pairs u (two pairs of prompts) and v (one); the second model is right."""
    prompts = pd.DataFrame(
        {
            "prompt_id": ["1b", "1k", "2b", "2k", "3b", "3k"],
            "pair_id": list("112233"),
            "side": SIDES * 3,
            "city": list("uuuuvv"),
            "country": list("UXUXVY"),
            "phrasing": list("ppqqpp"),
        }
    )
    ids = prompts["prompt_id"]
    first = pd.DataFrame(
        {"model": "m", "prompt_id": ids, "correct": [True, True, False, True, False, None]}
    )
    answers = pd.concat([first, first.assign(model="n", correct=True)], ignore_index=True)
    ratios = [1.0, 2.0, 3.0, np.nan, 4.0, 6.0]
    attributions = pd.concat(
        pd.DataFrame(
            {
                "model": model,
                "prompt_id": ids,
                "method": method,
                "target": "predicted",
                "ratio": np.array(ratios) * factor,
                "ratio_unnormalized": 0.5,
            }
        )
        for model in "mn"
        for method, factor in (("input_gradient", 1), ("attention", 10))
    )
    familiarity = pd.DataFrame(
        {"model": ["m", "m", "n"], "city": ["u", "v", "u"], "familiarity": [0.2, 0.4, 0.9]}
    )
    return answers, prompts, attributions, familiarity


def test_the_entity_level_by_hand(tables):
    table = entity_level(*tables, key="city", sides=SIDES)
    assert table.columns.tolist() == [
        "model",
        "city",
        "broken_accuracy",
        "kept_accuracy",
        "paired_accuracy",
        "pairs",
        "gradient_ratio",
        "attention_ratio",
        "familiarity",
    ]
    assert table[["model", "city"]].to_numpy().tolist() == [
        ["m", "u"],
        ["m", "v"],
        ["n", "u"],
        ["n", "v"],
    ]
    assert table["broken_accuracy"].tolist() == [0.5, 0.0, 1.0, 1.0]
    assert table["kept_accuracy"].tolist() == [1.0, 0.0, 1.0, 1.0]  # no answer is a wrong one
    assert table["paired_accuracy"].tolist() == [0.5, 0.0, 1.0, 1.0]
    assert table["pairs"].tolist() == [2, 1, 2, 1]
    assert table["gradient_ratio"].tolist() == [2.0, 5.0, 2.0, 5.0]
    assert table["attention_ratio"].tolist() == [20.0, 50.0, 20.0, 50.0]
    expected = [0.2, 0.4, 0.9, np.nan]
    assert table["familiarity"].tolist() == pytest.approx(expected, nan_ok=True)


def test_the_prompt_level_by_hand(tables):
    table = prompt_level(*tables, key="city", keep=["phrasing"])
    assert len(table) == 24
    (row,) = table[
        (table["model"] == "m") & (table["prompt_id"] == "2b") & (table["method"] == "attention")
    ].to_dict("records")
    assert row == {
        "model": "m",
        "prompt_id": "2b",
        "method": "attention",
        "ratio": 30.0,
        "ratio_unnormalized": 0.5,
        "correct": False,
        "city": "u",
        "phrasing": "q",
        "familiarity": 0.2,
    }
    assert table["correct"].dtype == bool


def test_the_model_level_by_hand(tables):
    answers, prompts, ratios, familiarity = tables
    # The pair about v counts twice.
    prompts = prompts.assign(weight=[1.0, 1.0, 1.0, 1.0, 2.0, 2.0])
    accuracy = accuracy_by(answers, prompts, factors=(), sides=SIDES, weight="weight")
    table = model_level(accuracy, ratio_table(ratios, prompts, cluster="city"), familiarity)
    assert table["model"].tolist() == ["m", "n"]
    assert table["familiarity"].tolist() == pytest.approx([0.3, 0.9])
    assert table["paired_accuracy"].tolist() == pytest.approx([1 / 4, 1.0])
    assert table["broken_accuracy"].tolist() == pytest.approx([1 / 4, 1.0])
    mean = (1 + 2 + 3 + 2 * 4 + 2 * 6) / 7
    assert table["gradient_ratio"].tolist() == pytest.approx([mean, mean])
    assert table["attention_ratio"].tolist() == pytest.approx([10 * mean] * 2)
    geometric = (1 * 2 * 3 * 4**2 * 6**2) ** (1 / 7)
    assert table["gradient_geometric"].tolist() == pytest.approx([geometric] * 2)
    assert table["gradient_ratio_unnormalized"].tolist() == pytest.approx([0.5, 0.5])
    assert table["pairs"].tolist() == [3, 3]


def test_a_key_that_differs_within_a_pair_is_refused(tables):
    with pytest.raises(UserError, match="country differs between the sides of pair '1'"):
        entity_level(*tables, key="country", sides=SIDES)
