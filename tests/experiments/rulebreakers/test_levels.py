import numpy as np
import pandas as pd
import pytest

from interp.analysis.accuracy import accuracy_by
from interp.analysis.ratios import ratio_table
from interp.errors import UserError
from interp_experiments.rulebreakers.levels import entity_level, model_level, prompt_level

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
