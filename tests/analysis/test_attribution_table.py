import numpy as np
import pandas as pd
import pytest

from interp.analysis.attribution_table import attribution_table
from interp.errors import UserError

COLUMNS = [
    "model",
    "gradient_ratio",
    "gradient_sd",
    "attention_ratio",
    "attention_sd",
    "gradient_ratio_unnormalized",
    "gradient_unnormalized_sd",
    "attention_ratio_unnormalized",
    "attention_unnormalized_sd",
    "paired_accuracy",
    "rulebreaker_accuracy",
    "non_rulebreaker_accuracy",
    "prompts",
    "gradient_geometric",
    "gradient_median",
    "gradient_largest_share",
    "attention_geometric",
    "attention_median",
    "attention_largest_share",
]
SIDES = ("rulebreaker", "non_rulebreaker")


@pytest.fixture
def tables():
    prompts = pd.DataFrame(
        {
            "prompt_id": ["1r", "1n", "2r", "2n"],
            "pair_id": list("1122"),
            "side": SIDES * 2,
            "weight": 1.0,
        }
    )
    answers = pd.DataFrame(
        {"model": "m", "prompt_id": prompts["prompt_id"], "correct": [True, True, False, True]}
    )
    ratios = pd.DataFrame(
        {
            "model": "m",
            "prompt_id": list(prompts["prompt_id"]) * 2,
            "method": ["input_gradient"] * 4 + ["attention"] * 4,
            "target": "predicted",
            "ratio": [1.0, 2.0, 3.0, np.nan, 4.0, 4.0, 4.0, 4.0],
            "ratio_unnormalized": [0.5, 1.0, 1.5, np.nan, 2.0, 2.0, 2.0, 2.0],
        }
    )
    return ratios, answers, prompts


def test_the_table_by_hand(tables):
    table = attribution_table(*tables)
    assert list(table.columns) == COLUMNS
    (row,) = table.to_dict("records")
    assert row["gradient_ratio"] == 2.0  # the undefined ratio is left out
    assert row["gradient_sd"] == 1.0  # of a sample
    assert row["gradient_ratio_unnormalized"] == 1.0
    assert row["gradient_unnormalized_sd"] == 0.5
    assert (row["attention_ratio"], row["attention_sd"]) == (4.0, 0.0)
    assert (row["paired_accuracy"], row["prompts"]) == (0.5, 4)
    assert row["gradient_geometric"] == pytest.approx(6 ** (1 / 3))
    assert row["gradient_median"] == 2.0
    assert row["gradient_largest_share"] == 0.5
    assert row["attention_largest_share"] == 0.25


def test_prompts_count_by_their_weight(tables):
    ratios, answers, prompts = tables
    weighed = attribution_table(ratios, answers, prompts.assign(weight=[3.0, 3.0, 1.0, 1.0]))
    (row,) = weighed.to_dict("records")
    assert row["gradient_ratio"] == pytest.approx((3 * 1 + 3 * 2 + 3) / 7)
    assert row["paired_accuracy"] == row["rulebreaker_accuracy"] == 0.75
    assert row["gradient_largest_share"] == pytest.approx(6 / 12)
    # As if each prompt of the first pair were there three times.
    thrice = np.array([1.0, 1, 1, 2, 2, 2, 3])
    assert row["gradient_geometric"] == pytest.approx(np.exp(np.log(thrice).mean()))


def test_a_method_that_was_not_run_is_empty(tables):
    ratios, answers, prompts = tables
    only = ratios[ratios["method"] == "attention"]
    table = attribution_table(only, answers, prompts)
    assert list(table.columns) == COLUMNS
    assert table[["gradient_ratio", "gradient_geometric", "gradient_median"]].isna().all(axis=None)
    assert table["attention_ratio"].tolist() == [4.0]


def test_one_prompt_moves_the_mean_and_is_told(tables):
    ratios, answers, prompts = tables
    usual = attribution_table(ratios, answers, prompts).iloc[0]
    ratios.loc[7, "ratio"] = 4000.0
    moved = attribution_table(ratios, answers, prompts).iloc[0]
    assert moved["attention_ratio"] > 200 * usual["attention_ratio"]
    assert moved["attention_largest_share"] > 0.99
    assert moved["attention_median"] == usual["attention_median"]


def test_other_methods_follow_under_their_names(tables):
    ratios, answers, prompts = tables
    ratios["method"] = ratios["method"].replace("input_gradient", "captum:occlusion")
    table = attribution_table(ratios, answers, prompts)
    assert table["captum:occlusion_ratio"].tolist() == [2.0]
    assert table["captum:occlusion_unnormalized_sd"].tolist() == [0.5]
    assert table["gradient_ratio"].isna().all()


def test_several_targets_are_refused(tables):
    ratios, answers, prompts = tables
    both = pd.concat([ratios, ratios.assign(target="gold")])
    with pytest.raises(UserError, match="of the targets predicted, gold; expected one"):
        attribution_table(both, answers, prompts)
