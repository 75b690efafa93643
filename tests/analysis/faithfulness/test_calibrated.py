"""The maps of methods: fitted with organisms held out, written, read, and applied to scores."""

import numpy as np
import pandas as pd
import pytest

from interp.analysis.faithfulness.calibrated import (
    Calibration,
    calibrated_shares,
    calibrated_table,
    fitted,
    held_out_table,
    sealed_table,
)
from interp.errors import UserError

SEGMENTS = ("premise2", "premise1")


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
    found = fitted(shares(), system="rulebreakers", segments=SEGMENTS)
    (method,) = found.methods
    grid = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    expected = grid**2 / (grid**2 + (1 - grid) ** 2)
    np.testing.assert_allclose(method.map()(grid), expected, atol=0.08)
    assert found.prompts == 1200
    assert [own.organism for own in method.held_out] == found.organisms
    assert method.error < 0.07
    assert 0.8 < method.auc < 0.95


def test_maps_are_tried_on_organisms_that_they_have_not_seen():
    found = fitted(shares(), system="rulebreakers", segments=SEGMENTS)
    others = shares(organisms=2, seed=1).replace({"organism/0": "new/0", "organism/1": "new/1"})
    others.loc[0, "share"] = np.nan
    (row,) = sealed_table(found, others).to_dict("records")
    assert 0 < row["floor"] < row["floor_high"]
    assert (row["organisms"], row["prompts"]) == (2, 799)
    assert row["error"] < 0.07
    assert row["auc"] == pytest.approx(found.methods[0].auc, abs=0.05)
    with pytest.raises(UserError, match="fitted on organism/0, organism/1; give organisms of"):
        sealed_table(found, shares(organisms=2))


def test_an_organism_unlike_the_others_has_a_large_error():
    turned = shares()
    last = turned["model"] == "organism/2"
    turned["decides"] = turned["decides"].mask(last, 1 - turned["decides"])
    (method,) = fitted(turned, system="rulebreakers", segments=SEGMENTS).methods
    errors = {own.organism: own.error for own in method.held_out}
    assert errors["organism/2"] > 0.4
    assert method.held_out[2].auc < 0.2


def test_prompts_in_which_nothing_decides_and_small_organisms_are_left_out():
    table = shares(organisms=2)
    table.loc[table.index[:395], "decides"] = np.nan
    with pytest.raises(UserError, match="1 organisms have 10 prompts in which a segment decides"):
        fitted(table, system="rulebreakers", segments=SEGMENTS)


def test_a_held_out_error_stands_next_to_what_right_probabilities_would_have():
    rows = shares()
    (row,) = held_out_table(rows).to_dict("records")
    (method,) = fitted(rows, system="rulebreakers", segments=SEGMENTS).methods
    assert row["error"] == pytest.approx(method.error, abs=1e-4)
    assert row["auc"] == pytest.approx(method.auc, abs=1e-4)
    assert (row["organisms"], row["prompts"]) == (3, 1200)
    assert 0.02 < row["floor"] < row["floor_high"] < 0.06
    # With few prompts a map that is right shows more error than the goal of 0.05.
    (few,) = held_out_table(shares(organisms=8, prompts=23)).to_dict("records")
    assert few["floor"] > 0.1
    assert few["error"] < 2 * few["floor"]


def test_scores_become_probabilities(tmp_path):
    file = tmp_path / "maps.json"
    found = fitted(shares(), system="rulebreakers", segments=SEGMENTS)
    file.write_text(found.model_dump_json(), encoding="utf-8")
    read = Calibration.read(file)
    assert read == found
    rows = [["p", "premise1", "attention", 10, 1.0], ["p", "premise2", "attention", 5, -3.0]]
    scores = pd.DataFrame(rows, columns=["prompt_id", "segment", "method", "tokens", "score"])
    scores = scores.assign(model="m")
    mean = found.methods[0].model_copy(update={"score": "mean"})
    both = read.model_copy(update={"methods": [found.methods[0], mean]})
    table = calibrated_shares(scores, both).set_index("score")
    assert table.loc["sum", "share"] == 0.75
    assert table.loc["mean", "share"] == pytest.approx(0.6 / 0.7)
    assert table.loc["sum", "probability"] == pytest.approx(
        read.methods[0].map()(np.array([0.75]))[0]
    )
    means = calibrated_table(table.reset_index())
    assert means.loc[0, ["prompts", "error"]].tolist() == [1, found.methods[0].error]


def test_a_damaged_file_is_refused(tmp_path):
    file = tmp_path / "maps.json"
    with pytest.raises(UserError, match="cannot be read"):
        Calibration.read(file)
    file.write_text('{"system": 1}', encoding="utf-8")
    with pytest.raises(UserError, match="is damaged"):
        Calibration.read(file)
