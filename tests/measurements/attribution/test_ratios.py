import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from interp.analysis.accuracy import accuracy_table
from interp.errors import UserError
from interp.estimates.declared import Plain
from interp.measurements.attribution.ratios import RATIOS, attribution_table, ratio_table

SIDES = ("rulebreaker", "non_rulebreaker")
NUMBERS = ("geometric", "geometric_low", "geometric_high", "median", "largest_share")
COLUMNS = [
    *("model", "gradient_mean_ratio", "gradient_sd", "attention_mean_ratio", "attention_sd"),
    *("gradient_mean_ratio_unnormalized", "gradient_unnormalized_sd"),
    *("attention_mean_ratio_unnormalized", "attention_unnormalized_sd"),
    *("paired_accuracy", *(f"{side}_accuracy" for side in SIDES), "prompts"),
    *(f"{method}_{number}" for method in ("gradient", "attention") for number in NUMBERS),
]


@pytest.fixture
def tables():
    prompts = pd.DataFrame({"prompt_id": ["1r", "1n", "2r", "2n"], "pair_id": list("1122")})
    prompts = prompts.assign(side=SIDES * 2, weight=1.0)
    answers = prompts[["prompt_id"]].assign(model="m", correct=[True, True, False, True])
    values = {"input_gradient": [1.0, 2.0, 3.0, np.nan], "attention": [4.0] * 4}
    ratios = pd.DataFrame(
        [
            ("m", prompt, method, "predicted", ratio, ratio / 2)
            for method, own in values.items()
            for prompt, ratio in zip(prompts["prompt_id"], own, strict=True)
        ],
        columns=["model", "prompt_id", "method", "target", "ratio", "ratio_unnormalized"],
    )
    return ratios, answers, prompts


def wide(ratios, answers, prompts):
    return attribution_table(
        ratio_table(ratios, prompts, cluster="pair_id"), accuracy_table(answers, prompts)
    )


def test_the_table_by_hand(tables):
    table = wide(*tables)
    assert list(table.columns) == COLUMNS
    (row,) = table.to_dict("records")
    assert row["gradient_mean_ratio"] == 2.0  # the undefined ratio is left out
    assert row["gradient_sd"] == 1.0  # of a sample
    assert row["gradient_mean_ratio_unnormalized"] == 1.0
    assert row["gradient_unnormalized_sd"] == 0.5
    assert (row["attention_mean_ratio"], row["attention_sd"]) == (4.0, 0.0)
    assert (row["paired_accuracy"], row["prompts"]) == (0.5, 4)
    assert row["gradient_geometric"] == pytest.approx(6 ** (1 / 3))
    assert row["gradient_median"] == 2.0
    assert row["gradient_largest_share"] == 0.5
    assert row["attention_largest_share"] == 0.25


def test_a_method_that_was_not_run_is_empty_and_others_follow(tables, monkeypatch):
    ratios, answers, prompts = tables
    only = wide(ratios[ratios["method"] == "attention"], answers, prompts)
    assert list(only.columns) == COLUMNS
    lacking = ["gradient_mean_ratio", "gradient_geometric", "gradient_median"]
    assert only[lacking].isna().all(axis=None)
    assert only["attention_mean_ratio"].tolist() == [4.0]
    # A number that is declared is a column of each method.
    highest = Plain("highest", "largest", "ratio", of="value", how=lambda v, _: max(v), why="mean")
    declared = replace(RATIOS, numbers=[*RATIOS.numbers, highest])
    monkeypatch.setattr("interp.measurements.attribution.ratios.RATIOS", declared)
    ratios["method"] = ratios["method"].replace("input_gradient", "captum:occlusion")
    table = wide(ratios, answers, prompts)
    numbers = ["mean_ratio", "unnormalized_sd", "highest"]
    own = table[[f"captum:occlusion_{name}" for name in numbers]]
    assert own.to_numpy().tolist() == [[2.0, 0.5, 3.0]]
    assert table["gradient_mean_ratio"].isna().all()


def test_several_targets_are_refused(tables):
    ratios, answers, prompts = tables
    both = pd.concat([ratios, ratios.assign(target="gold")])
    with pytest.raises(UserError, match="targets predicted, gold"):
        wide(both, answers, prompts)


def test_a_summary_by_hand_with_weights():
    ratios, ids = np.array([0.5, 1.0, 4.0, np.nan]), list("1234")
    rows = pd.DataFrame({"model": "m", "prompt_id": ids, "method": "input_gradient"})
    rows = rows.assign(target="predicted", ratio=ratios, ratio_unnormalized=ratios / 2)
    prompts = pd.DataFrame({"prompt_id": ids, "pair_id": ids, "city": list("aabb")})
    prompts["weight"] = [1.0, 2.0, 1.0, 9.0]
    row = ratio_table(rows, prompts, cluster="city").iloc[0]
    assert row["method"] == "gradient"
    assert row["mean"] == pytest.approx((0.5 + 2 * 1.0 + 4.0) / 4)
    assert row["geometric"] == pytest.approx((0.5 * 1.0**2 * 4.0) ** 0.25)
    assert row["median"] == pytest.approx(1.0)
    assert row["largest_share"] == pytest.approx(4 / 6.5)
    assert (row["prompts"], row["clusters"]) == (3, 2)
    assert np.isnan(row["geometric_low"])
    assert re.match(r"not tested: 2 clusters; .*\b10\b", row["note"])
