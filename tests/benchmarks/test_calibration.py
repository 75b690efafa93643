"""Calibration: by hand, the isotonic fit against scipy, and maps with organisms held out."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from benchmarks.calibration import (
    MonotoneMap,
    area_under_curve,
    calibration_error,
    held_out_table,
    main,
    noise_floor,
    sealed_table,
)
from interp.cli import main as interp_main
from interp.errors import UserError
from interp.judging import ranking


def test_the_calibration_error_by_hand():
    probabilities = np.array([0.05, 0.15, 0.18, 0.95, 1.0])
    decides = np.array([False, True, False, True, True])
    # Bins: 0.05 - 0; (0.33 - 1) of two; (1.95 - 2) of two.
    assert calibration_error(probabilities, decides) == pytest.approx((0.05 + 0.67 + 0.05) / 5)
    assert calibration_error(np.array([0.0, 1.0]), np.array([False, True])) == 0
    assert np.isnan(calibration_error(np.array([]), np.array([], dtype=bool)))


def test_the_area_under_the_curve_by_hand():
    shares = np.array([0.2, 0.6, 0.6, 0.9])
    decides = np.array([False, False, True, True])
    # Of four pairs three are right and one ties.
    assert area_under_curve(shares, decides) == pytest.approx(3.5 / 4)
    assert np.isnan(area_under_curve(shares, np.ones(4, dtype=bool)))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_a_map_is_the_isotonic_regression_of_both_segments(seed):
    chance = np.random.default_rng(seed)
    shares = np.round(chance.random(40) * 32) / 32
    decides = chance.random(40) < shares
    found = MonotoneMap.fitted(shares, decides)
    assert list(found.probabilities) == sorted(found.probabilities)
    x = np.concatenate([shares, 1 - shares])
    y = np.concatenate([decides, ~decides]).astype(float)
    places, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(inverse, y) / counts
    expected = isotonic_regression(means, weights=counts.astype(float)).x
    np.testing.assert_allclose(found(places), expected, atol=1e-6)
    # No place is preferred: the two segments of a prompt have probabilities of sum 1.
    grid = np.linspace(0, 1, 33)
    np.testing.assert_allclose(found(grid) + found(1 - grid), 1, atol=1e-5)
    # It is constant beyond what it was fitted to, and undefined for nothing.
    found = MonotoneMap((0.25, 0.75), (0.1, 0.9))
    expected = [0.1, 0.5, 0.9, np.nan]
    np.testing.assert_allclose(found(np.array([0.0, 0.5, 1.0, np.nan])), expected)


def test_the_noise_floor_by_hand():
    """One prompt of probability p: its error is 1 - p with chance p, else p."""
    assert noise_floor([np.array([0.3])]).mean == pytest.approx(2 * 0.3 * 0.7, abs=0.01)
    assert noise_floor([np.array([0.3])]).high == pytest.approx(0.7)
    # Two in a bin: the sum is 0, 1 or 2 with chances 1/4, 1/2, 1/4, against an expected 1.
    assert noise_floor([np.array([0.5, 0.5])]).mean == pytest.approx(0.25, abs=0.01)
    certain = noise_floor([np.array([0.0, 1.0])])
    assert certain == (0, 0)
    assert np.isnan(noise_floor([np.array([])])).all()


def test_right_probabilities_exceed_the_floor_in_one_of_twenty_studies_and_wrong_ones_in_most():
    chance = np.random.default_rng(0)
    above, wrong, errors = 0, 0, []
    for _ in range(300):
        right = chance.random(23)
        decides = chance.random(23) < right
        floor = noise_floor([right])
        errors.append(calibration_error(right, decides) - floor.mean)
        above += errors[-1] + floor.mean > floor.high
        wrong += calibration_error(1 - right, decides) > noise_floor([1 - right]).high
    # 300 studies of a rate of 0.05: at most 29 with a chance of 0.9997.
    assert above <= 29
    assert wrong > 270
    assert np.mean(errors) == pytest.approx(0, abs=0.01)


def shares(organisms=3, prompts=400, seed=0):
    """A method whose share is too timid: the premise decides with a probability of its own."""
    chance = np.random.default_rng(seed)
    parts = []
    for number in range(organisms):
        share = chance.random(prompts)
        decides = chance.random(prompts) < share**2 / (share**2 + (1 - share) ** 2)
        parts.append(
            pd.DataFrame(
                {
                    "model": f"organism/{number}",
                    "prompt_id": [f"p{place}" for place in range(prompts)],
                    "method": "attention",
                    "score": "sum",
                    "share": share,
                    "decides": decides.astype(float),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def test_a_map_finds_the_probability_and_its_error_is_that_of_other_organisms():
    rows = shares()
    grid = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    expected = grid**2 / (grid**2 + (1 - grid) ** 2)
    found = MonotoneMap.fitted(rows["share"].to_numpy(), rows["decides"].to_numpy(bool))
    np.testing.assert_allclose(found(grid), expected, atol=0.08)
    (row,) = held_out_table(rows).to_dict("records")
    assert (row["organisms"], row["prompts"]) == (3, 1200)
    assert row["error"] < 0.07
    assert 0.8 < row["auc"] < 0.95
    assert 0.02 < row["floor"] < row["floor_high"] < 0.06
    # With few prompts, a map that is right shows a large error.
    (few,) = held_out_table(shares(organisms=8, prompts=23)).to_dict("records")
    assert few["floor"] > 0.1
    assert few["error"] < 2 * few["floor"]
    # Prompts in which nothing decides, and small organisms, are left out.
    table = shares(organisms=2)
    table.loc[table.index[:395], "decides"] = np.nan
    with pytest.raises(UserError, match=r"\b1 organisms have 10 prompts"):
        held_out_table(table)


def test_maps_are_tried_on_organisms_that_they_have_not_seen():
    fitted = shares()
    (known,) = held_out_table(fitted).to_dict("records")
    others = shares(organisms=2, seed=1).replace({"organism/0": "new/0", "organism/1": "new/1"})
    others.loc[0, "share"] = np.nan
    (row,) = sealed_table(fitted, others).to_dict("records")
    assert 0 < row["floor"] < row["floor_high"]
    assert (row["organisms"], row["prompts"]) == (2, 799)
    assert row["error"] < 0.07
    assert row["auc"] == pytest.approx(known["auc"], abs=0.05)
    with pytest.raises(UserError, match=r"organism/0, organism/1; expected organisms"):
        sealed_table(fitted, shares(organisms=2))


def test_an_organism_unlike_the_others_has_a_large_error():
    turned = shares()
    last = turned["model"] == "organism/2"
    turned["decides"] = turned["decides"].mask(last, 1 - turned["decides"])
    (row,) = sealed_table(turned[~last], turned[last]).to_dict("records")
    assert row["error"] > 0.4
    assert row["auc"] < 0.2
    assert held_out_table(turned)["error"][0] > row["error"] / 3


def study(folder, *models):
    methods = ["--methods", "input_gradient", "leave_one_out:donor"]
    chosen = [*methods, "--no-reinitialized", "--limit", "5", "--device", "cpu"]
    assert interp_main(["faithfulness", "--model", *models, *chosen, "--out", str(folder)]) == 0
    return str(folder)


def test_maps_are_made_from_a_study_and_tried_on_sealed_organisms(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ranking, "RESAMPLES", 19)
    fitted = study(tmp_path / "fitted", "organism/dose-0", "organism/dose-100")
    sealed = study(tmp_path / "sealed", "organism/dose-50")
    capsys.readouterr()
    assert main([fitted, "--sealed", sealed]) == 0
    printed = capsys.readouterr().out
    assert "no map was fitted" in printed
    assert "leave_one_out:donor" in printed
    assert main([fitted, "--sealed", fitted]) == 2
    assert "fitted on organism/dose-0" in capsys.readouterr().err
