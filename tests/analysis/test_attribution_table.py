import numpy as np
import pandas as pd
import pytest

from interp.analysis.attribution_table import attribution_table

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
]
SIDES = ("rulebreaker", "non_rulebreaker")


@pytest.fixture
def tables():
    prompts = pd.DataFrame(
        {"prompt_id": ["1r", "1n", "2r", "2n"], "pair_id": list("1122"), "side": SIDES * 2}
    )
    answers = pd.DataFrame(
        {"model": "m", "prompt_id": prompts["prompt_id"], "correct": [True, True, False, True]}
    )
    attributions = pd.DataFrame(
        {
            "model": "m",
            "prompt_id": list(prompts["prompt_id"]) * 2,
            "method": ["gradient"] * 4 + ["attention"] * 4,
            "ratio": [1.0, 2.0, 3.0, np.nan, 4.0, 4.0, 4.0, 4.0],
            "ratio_unnormalized": [0.5, 1.0, 1.5, np.nan, 2.0, 2.0, 2.0, 2.0],
        }
    )
    return attributions, answers, prompts


def test_the_table_by_hand(tables):
    table = attribution_table(*tables, SIDES)
    assert list(table.columns) == COLUMNS
    (row,) = table.to_dict("records")
    assert row["gradient_ratio"] == 2.0  # the undefined ratio is left out
    assert row["gradient_sd"] == 1.0  # of a sample
    assert row["gradient_ratio_unnormalized"] == 1.0
    assert row["gradient_unnormalized_sd"] == 0.5
    assert (row["attention_ratio"], row["attention_sd"]) == (4.0, 0.0)
    assert (row["paired_accuracy"], row["prompts"]) == (0.5, 4)


def test_a_method_that_was_not_run_is_empty(tables):
    attributions, answers, prompts = tables
    only = attributions[attributions["method"] == "attention"]
    table = attribution_table(only, answers, prompts, SIDES)
    assert list(table.columns) == COLUMNS
    assert table["gradient_ratio"].isna().all()
    assert table["attention_ratio"].tolist() == [4.0]
