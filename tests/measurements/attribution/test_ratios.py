import re

import numpy as np
import pandas as pd
import pytest

from interp.errors import UserError
from interp.measurements.attribution.ratios import attribution_table, ratio_table

COLUMNS = [
    "model",
    "gradient_mean_ratio",
    "gradient_sd",
    "attention_mean_ratio",
    "attention_sd",
    "gradient_mean_ratio_unnormalized",
    "gradient_unnormalized_sd",
    "attention_mean_ratio_unnormalized",
    "attention_unnormalized_sd",
    "paired_accuracy",
    "rulebreaker_accuracy",
    "non_rulebreaker_accuracy",
    "prompts",
    "gradient_geometric",
    "gradient_geometric_low",
    "gradient_geometric_high",
    "gradient_median",
    "gradient_largest_share",
    "attention_geometric",
    "attention_geometric_low",
    "attention_geometric_high",
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


def test_prompts_count_by_their_weight(tables):
    ratios, answers, prompts = tables
    weighed = attribution_table(ratios, answers, prompts.assign(weight=[3.0, 3.0, 1.0, 1.0]))
    (row,) = weighed.to_dict("records")
    assert row["gradient_mean_ratio"] == pytest.approx((3 * 1 + 3 * 2 + 3) / 7)
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
    assert (
        table[["gradient_mean_ratio", "gradient_geometric", "gradient_median"]]
        .isna()
        .all(axis=None)
    )
    assert table["attention_mean_ratio"].tolist() == [4.0]


def test_one_prompt_moves_the_mean_and_is_told(tables):
    ratios, answers, prompts = tables
    usual = attribution_table(ratios, answers, prompts).iloc[0]
    ratios.loc[7, "ratio"] = 4000.0
    moved = attribution_table(ratios, answers, prompts).iloc[0]
    assert moved["attention_mean_ratio"] > 200 * usual["attention_mean_ratio"]
    assert moved["attention_largest_share"] > 0.99
    assert moved["attention_median"] == usual["attention_median"]


def test_other_methods_follow_under_their_names(tables):
    ratios, answers, prompts = tables
    ratios["method"] = ratios["method"].replace("input_gradient", "captum:occlusion")
    table = attribution_table(ratios, answers, prompts)
    assert table["captum:occlusion_mean_ratio"].tolist() == [2.0]
    assert table["captum:occlusion_unnormalized_sd"].tolist() == [0.5]
    assert table["gradient_mean_ratio"].isna().all()


def test_several_targets_are_refused(tables):
    ratios, answers, prompts = tables
    both = pd.concat([ratios, ratios.assign(target="gold")])
    with pytest.raises(UserError, match="targets predicted, gold"):
        attribution_table(both, answers, prompts)


def robust_tables(ratios, *, cities, weights=1.0):
    ids = [str(number) for number in range(len(ratios))]
    rows = pd.DataFrame({"model": "m", "prompt_id": ids, "method": "input_gradient"})
    rows = rows.assign(target="predicted", ratio=ratios, ratio_unnormalized=np.array(ratios) / 2)
    return rows, pd.DataFrame({"prompt_id": ids, "city": cities, "weight": weights})


def first(ratios, prompts):
    return ratio_table(ratios, prompts, cluster="city").iloc[0]


def test_one_prompt_decides_the_mean_and_neither_median_nor_geometric_mean():
    rng = np.random.default_rng(0)
    ratios = np.exp(rng.normal(-0.5, 0.3, 400))
    usual = first(*robust_tables(ratios, cities=np.arange(400) // 4))
    ratios[7] = 1000.0
    row = first(*robust_tables(ratios, cities=np.arange(400) // 4))
    assert usual["mean"] < 1 < row["mean"]
    assert row["largest_share"] > 0.5
    assert usual["largest_share"] < 0.05
    for name in ("geometric", "median"):
        assert row[name] == pytest.approx(usual[name], rel=0.03)
        assert row[f"{name}_low"] < row[name] < row[f"{name}_high"] < 1


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


def test_without_weights_it_has_the_mean_and_deviation_of_the_published_tables():
    ratios = np.random.default_rng(1).gamma(2, 1, 50)
    rows, prompts = robust_tables(ratios, cities=np.arange(50))
    table = ratio_table(rows, prompts, cluster="city").set_index("ratio")
    assert table.loc["ratio", "mean"] == pytest.approx(ratios.mean())
    assert table.loc["ratio", "sd"] == pytest.approx(ratios.std(ddof=1))
    assert table.loc["ratio_unnormalized", "sd"] == pytest.approx(ratios.std(ddof=1) / 2)


def test_a_ratio_of_zero_makes_the_geometric_mean_zero_without_a_warning():
    row = first(*robust_tables([0.0, 1.0, 2.0] * 5, cities=np.arange(15)))
    assert row["geometric"] == 0.0
    assert np.isnan(row["geometric_low"])
    assert row["median"] == pytest.approx(1.0)


@pytest.mark.slow
def test_intervals_hold_the_truth_where_prompts_hang_together(monkeypatch):
    monkeypatch.setattr("interp.statistics.means.RESAMPLES", 199)
    rng, held = np.random.default_rng(2), []
    for _ in range(200):
        city = np.repeat(np.arange(40), 5)
        ratios = np.exp(-0.4 + rng.normal(0, 0.5, 40)[city] + rng.normal(0, 0.3, 200))
        row = first(*robust_tables(ratios, cities=city, weights=rng.choice([1.0, 6.0], 40)[city]))
        held.append(
            [
                row[f"{name}_low"] <= np.exp(-0.4) <= row[f"{name}_high"]
                for name in ("geometric", "median")
            ]
        )
    assert (np.mean(held, axis=0) > 0.88).all()
