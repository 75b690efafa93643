"""A limited study draws strata alike, and says what is true of the whole data set."""

import numpy as np
import pandas as pd
import pytest

from interp.analysis.accuracy import accuracy_by
from interp.analysis.ratios import attribution_table, ratio_table
from interp.prompts.systems import load_prompts
from interp_experiments.rulebreakers.levels import model_level
from interp_experiments.rulebreakers.prompts import SIDES

GEOGRAPHICAL = 10_980 / 12_800
"""Share of the data set."""


@pytest.fixture(scope="module")
def measured():
    """A model that recognizes exactly the geographical pairs, whose ratios are 2 there, else 8."""
    prompts = load_prompts("rulebreakers", limit=480).to_frame()
    geographical = prompts["entity_group"] == "geographical"
    ids = {"model": "m", "prompt_id": prompts["prompt_id"]}
    answers = pd.DataFrame({**ids, "correct": geographical})
    ratios = pd.DataFrame(
        {
            **ids,
            "method": "attention",
            "target": "predicted",
            "ratio": np.where(geographical, 2.0, 8.0),
        }
    )
    return prompts, answers, ratios.assign(ratio_unnormalized=ratios["ratio"])


def test_the_sample_is_another_mixture_than_the_data_set(measured):
    prompts, *_ = measured
    assert (prompts["entity_group"] == "geographical").mean() < 0.6


def test_overall_numbers_are_those_of_the_data_set(measured):
    prompts, answers, ratios = measured
    table = accuracy_by(answers, prompts, factors=(), sides=SIDES, weight="weight")
    assert table["accuracy"].tolist() == pytest.approx([GEOGRAPHICAL] * 3)
    summed = ratio_table(ratios, prompts, cluster="entity_b")
    mean = 2 * GEOGRAPHICAL + 8 * (1 - GEOGRAPHICAL)
    assert summed["mean"].tolist() == pytest.approx([mean] * 2)
    # The numbers compared with the published ones come from these two tables.
    cities = pd.DataFrame({"model": ["m"], "familiarity": [0.5]})
    (row,) = model_level(table, summed, cities).to_dict("records")
    assert row["paired_accuracy"] == pytest.approx(GEOGRAPHICAL)
    assert row["attention_ratio"] == pytest.approx(mean)
    assert row["attention_geometric"] == pytest.approx(2**GEOGRAPHICAL * 8 ** (1 - GEOGRAPHICAL))


def test_so_is_the_table_of_a_single_run(measured):
    prompts, answers, ratios = measured
    (row,) = attribution_table(ratios, answers, prompts).to_dict("records")
    assert row["paired_accuracy"] == pytest.approx(GEOGRAPHICAL)
    assert row["attention_ratio"] == pytest.approx(2 * GEOGRAPHICAL + 8 * (1 - GEOGRAPHICAL))
