import numpy as np
import pandas as pd
import pytest

from interp.analysis.ratio_table import ratio_table


def tables(ratios, *, cities, weights=1.0):
    ids = [str(number) for number in range(len(ratios))]
    rows = pd.DataFrame({"model": "m", "prompt_id": ids, "method": "input_gradient"})
    rows = rows.assign(target="predicted", ratio=ratios, ratio_unnormalized=np.array(ratios) / 2)
    return rows, pd.DataFrame({"prompt_id": ids, "city": cities, "weight": weights})


def first(ratios, prompts):
    return ratio_table(ratios, prompts, cluster="city").iloc[0]


def test_one_prompt_decides_the_mean_and_neither_median_nor_geometric_mean():
    rng = np.random.default_rng(0)
    ratios = np.exp(rng.normal(-0.5, 0.3, 400))
    usual = first(*tables(ratios, cities=np.arange(400) // 4))
    ratios[7] = 1000.0
    row = first(*tables(ratios, cities=np.arange(400) // 4))
    assert usual["mean"] < 1 < row["mean"]
    assert row["largest_share"] > 0.5
    assert usual["largest_share"] < 0.05
    for name in ("geometric", "median"):
        assert row[name] == pytest.approx(usual[name], rel=0.03)
        assert row[f"{name}_low"] < row[name] < row[f"{name}_high"] < 1


def test_a_summary_by_hand_with_weights():
    ratios = [0.5, 1.0, 4.0, np.nan]
    row = first(*tables(ratios, cities=list("aabb"), weights=[1.0, 2.0, 1.0, 9.0]))
    assert row["method"] == "gradient"
    assert row["mean"] == pytest.approx((0.5 + 2 * 1.0 + 4.0) / 4)
    assert row["geometric"] == pytest.approx((0.5 * 1.0**2 * 4.0) ** 0.25)
    assert row["median"] == pytest.approx(1.0)
    assert row["largest_share"] == pytest.approx(4 / 6.5)
    assert (row["prompts"], row["clusters"]) == (3, 2)
    assert np.isnan(row["geometric_low"])
    assert row["note"] == "not tested: there are 2 clusters, at least 10 needed"


def test_without_weights_it_has_the_mean_and_deviation_of_the_published_tables():
    ratios = np.random.default_rng(1).gamma(2, 1, 50)
    rows, prompts = tables(ratios, cities=np.arange(50))
    table = ratio_table(rows, prompts, cluster="city").set_index("ratio")
    assert table.loc["ratio", "mean"] == pytest.approx(ratios.mean())
    assert table.loc["ratio", "sd"] == pytest.approx(ratios.std(ddof=1))
    assert table.loc["ratio_unnormalized", "sd"] == pytest.approx(ratios.std(ddof=1) / 2)


def test_a_ratio_of_zero_makes_the_geometric_mean_zero_without_a_warning():
    row = first(*tables([0.0, 1.0, 2.0] * 5, cities=np.arange(15)))
    assert row["geometric"] == 0.0
    assert np.isnan(row["geometric_low"])
    assert row["median"] == pytest.approx(1.0)


def test_intervals_hold_the_truth_where_prompts_hang_together(monkeypatch):
    monkeypatch.setattr("interp.analysis.ratio_table.RESAMPLES", 199)
    rng, held = np.random.default_rng(2), []
    for _ in range(200):
        city = np.repeat(np.arange(40), 5)
        ratios = np.exp(-0.4 + rng.normal(0, 0.5, 40)[city] + rng.normal(0, 0.3, 200))
        row = first(*tables(ratios, cities=city, weights=rng.choice([1.0, 6.0], 40)[city]))
        held.append(
            [
                row[f"{name}_low"] <= np.exp(-0.4) <= row[f"{name}_high"]
                for name in ("geometric", "median")
            ]
        )
    assert (np.mean(held, axis=0) > 0.88).all()
