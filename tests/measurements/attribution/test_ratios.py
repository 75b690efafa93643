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


def test_a_method_that_was_not_run_is_empty(tables):
    ratios, answers, prompts = tables
    only = ratios[ratios["method"] == "attention"]
    table = wide(only, answers, prompts)
    assert list(table.columns) == COLUMNS
    assert (
        table[["gradient_mean_ratio", "gradient_geometric", "gradient_median"]]
        .isna()
        .all(axis=None)
    )
    assert table["attention_mean_ratio"].tolist() == [4.0]


def test_other_methods_follow_under_their_names(tables):
    ratios, answers, prompts = tables
    ratios["method"] = ratios["method"].replace("input_gradient", "captum:occlusion")
    table = wide(ratios, answers, prompts)
    assert table["captum:occlusion_mean_ratio"].tolist() == [2.0]
    assert table["captum:occlusion_unnormalized_sd"].tolist() == [0.5]
    assert table["gradient_mean_ratio"].isna().all()


def test_a_number_that_is_declared_is_a_column_of_each_method(tables, monkeypatch):
    highest = Plain("highest", "largest", "ratio", of="value", how=lambda v, _: max(v), why="mean")
    declared = replace(RATIOS, numbers=[*RATIOS.numbers, highest])
    monkeypatch.setattr("interp.measurements.attribution.ratios.RATIOS", declared)
    table = wide(*tables)
    assert table[["gradient_highest", "attention_highest"]].to_numpy().tolist() == [[3.0, 4.0]]


def test_several_targets_are_refused(tables):
    ratios, answers, prompts = tables
    both = pd.concat([ratios, ratios.assign(target="gold")])
    with pytest.raises(UserError, match="targets predicted, gold"):
        wide(both, answers, prompts)


def robust_tables(ratios, *, cities, weights=1.0):
    ids = [str(number) for number in range(len(ratios))]
    rows = pd.DataFrame({"model": "m", "prompt_id": ids, "method": "input_gradient"})
    rows = rows.assign(target="predicted", ratio=ratios, ratio_unnormalized=np.array(ratios) / 2)
    return rows, pd.DataFrame({"prompt_id": ids, "pair_id": ids, "city": cities, "weight": weights})


def first(ratios, prompts):
    return ratio_table(ratios, prompts, cluster="city").iloc[0]


def test_one_prompt_decides_the_mean_and_neither_median_nor_geometric_mean():
    ratios = np.exp(np.random.default_rng(0).normal(-0.5, 0.3, 400))
    cities = np.arange(400) // 4
    usual = first(*robust_tables(ratios, cities=cities))
    ratios[7] = 1000.0
    row = first(*robust_tables(ratios, cities=cities))
    assert usual["mean"] < 1 < row["mean"]
    assert usual["largest_share"] < 0.05
    assert row["largest_share"] > 0.5
    for name in ("geometric", "median"):
        assert row[name] == pytest.approx(usual[name], rel=0.03)
        assert row[f"{name}_low"] < row[name] < row[f"{name}_high"] < 1


@pytest.mark.slow
def test_intervals_hold_the_truth_where_prompts_hang_together(monkeypatch):
    monkeypatch.setattr("interp.statistics.means.RESAMPLES", 199)
    rng, held = np.random.default_rng(2), []
    city = np.repeat(np.arange(40), 5)
    for _ in range(200):
        ratios = np.exp(-0.4 + rng.normal(0, 0.5, 40)[city] + rng.normal(0, 0.3, 200))
        row = first(*robust_tables(ratios, cities=city, weights=rng.choice([1.0, 6.0], 40)[city]))
        ends = [(row[f"{name}_low"], row[f"{name}_high"]) for name in ("geometric", "median")]
        held.append([low <= np.exp(-0.4) <= high for low, high in ends])
    assert (np.mean(held, axis=0) > 0.88).all()


def test_a_summary_by_hand_with_weights():
    ratios = [0.5, 1.0, 4.0, np.nan]
    row = first(*robust_tables(ratios, cities=list("aabb"), weights=[1.0, 2.0, 1.0, 9.0]))
    assert row["method"] == "gradient"
    assert row["mean"] == pytest.approx((0.5 + 2 * 1.0 + 4.0) / 4)
    assert row["geometric"] == pytest.approx((0.5 * 1.0**2 * 4.0) ** 0.25)
    assert row["median"] == pytest.approx(1.0)
    assert row["largest_share"] == pytest.approx(4 / 6.5)
    assert (row["prompts"], row["clusters"]) == (3, 2)
    assert np.isnan(row["geometric_low"])
    assert re.match(r"not tested: 2 clusters; .*\b10\b", row["note"])
