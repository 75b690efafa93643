"""Answers after thoughts and their parts, from tables that were written by hand."""

import numpy as np
import pandas as pd
import pytest

from interp.estimates.compute import CLUSTER, estimate
from interp.measurements.thoughts.tables import (
    EARLY,
    READING,
    SENTENCES,
    early_trials,
    reading_trials,
    sentence_trials,
)

IDS = [f"prompt {number}" for number in range(12)]
PROMPTS = pd.DataFrame({"prompt_id": IDS, "pair_id": IDS, "weight": [3.0] + [1.0] * 11})


def reading_table(answers):
    trials = reading_trials(answers, PROMPTS)
    return estimate(READING, trials.assign(**{CLUSTER: trials["pair_id"]}))


def sentence_table(effects, answers):
    trials = sentence_trials(effects, answers, PROMPTS)
    return estimate(SENTENCES, trials.assign(**{CLUSTER: trials["pair_id"]}))


def answers():
    """Twelve prompts with two draws of three sentences.

    The direct answer is No, as is that after the first sentence; after the second one it is Yes,
    the correct answer, except for the first prompt, where the third sentence turns it back.
    """
    rows = []
    for number, prompt_id in enumerate(IDS):
        key = {"model": "m", "prompt_id": prompt_id, "error": ""}
        rows.append({**key, "reading": "direct", "draw": None, "answer": "No"})
        for draw in range(2):
            last = "No" if number == 0 else "Yes"
            for read, answer in enumerate(("No", "No", "Yes", last)):
                kind = "empty" if read == 0 else "whole" if read == 3 else "first"
                place = {"draw": draw, "sentence": read, "sentences": 3}
                rows.append({**key, "reading": kind, **place, "answer": answer})
            for kind, answer in (("placebo", "No"), ("filler", last)):
                rows.append(
                    {**key, "reading": kind, "draw": draw, "sentences": 3, "answer": answer}
                )
            # Mistakes are made in the first thought only.
            for place in (1, 3) if draw == 0 else ():
                mistake = {"draw": draw, "sentence": place, "sentences": 3}
                answer = last if place == 1 else "No"
                rows.append({**key, "reading": "mistake", **mistake, "answer": answer})
    table = pd.DataFrame(rows)
    table["correct"] = table["answer"] == "Yes"
    table["value"] = np.where(table["correct"], 2.0, -1.0)
    return table


def test_readings_are_weighed_and_compared_with_the_whole_thought():
    table = reading_table(answers()).set_index("reading")
    assert list(table.index) == ["direct", "empty", "whole", "placebo", "filler"]
    # The first prompt, which is never right, has 3 of 14 weights.
    assert table.loc["whole", "accuracy"] == pytest.approx(11 / 14)
    assert table.loc["whole", "same_answer"] == 1.0
    assert table.loc["direct", "accuracy"] == 0.0
    for reading in ("direct", "empty", "placebo"):
        assert table.loc[reading, "same_answer"] == pytest.approx(3 / 14)
    assert table.loc["whole", "value"] == pytest.approx((11 * 2 - 3) / 14)
    assert (table[["prompts", "clusters"]] == 12).all(axis=None)
    assert table.loc["whole", "accuracy_low"] < 11 / 14 < table.loc["whole", "accuracy_high"]
    few = reading_table(answers().query("reading != 'placebo'"))
    assert few["reading"].tolist() == ["direct", "empty", "whole", "filler"]


def test_early_answers_by_hand():
    trials = early_trials(answers(), PROMPTS)
    table = estimate(EARLY, trials.assign(**{CLUSTER: trials["pair_id"]}))
    table = table.set_index("percent_read")
    assert list(table.index) == list(range(0, 101, 10))
    assert (table["draws"] == 24).all() and (table["clusters"] == 12).all()
    # None, one, two and three sentences; the first prompt has its last answer from the start on,
    # but loses it after two sentences.
    for percent, same in ((0, 3 / 14), (30, 3 / 14), (40, 3 / 14), (70, 11 / 14), (100, 1.0)):
        assert table.loc[percent, "same_answer"] == pytest.approx(same)
    assert table.loc[0, "decided"] == 0.0
    assert table.loc[70, "decided"] == pytest.approx(11 / 14)
    assert table.loc[100, "decided"] == 1.0
    assert table.loc[70, "accuracy"] == 1.0
    assert table.loc[100, "accuracy"] == pytest.approx(11 / 14)
    assert table.loc[70, "decided_low"] < 11 / 14 < table.loc[70, "decided_high"]


def test_sentences_count_in_favour_of_the_models_own_answer():
    effects = pd.DataFrame(
        [
            {
                "model": "m",
                "prompt_id": prompt_id,
                "sentence": place,
                "sentences": 3,
                "left_out": float(place),
                "exchanged": None if place == 1 else 2.0 * place,
                "resampled": -1.0,
            }
            for prompt_id in IDS
            for place in (1, 2, 3)
        ]
    )
    table = sentence_table(effects, answers()).set_index("place")
    assert list(table.index) == ["first", "middle", "last"]
    # The first prompt's own answer is wrong, so what supports the correct one counts against it.
    for place, value in (("first", 1), ("middle", 2), ("last", 3)):
        assert table.loc[place, "left_out"] == pytest.approx(value * (11 - 3) / 14)
    assert table.loc["middle", "exchanged"] == pytest.approx(4 * 8 / 14)
    assert np.isnan(table.loc["first", "exchanged"])
    assert table.loc["last", "resampled"] == pytest.approx(-8 / 14)
    assert table.loc["first", "mistake"] == 0.0
    assert table.loc["last", "mistake"] == pytest.approx(11 / 14)
    assert (table["sentences"] == 12).all()
    # Thoughts of one sentence have no places.
    one = effects[effects["sentence"] == 1].assign(sentences=1)
    assert sentence_table(one, answers().query("reading == 'whole'")).empty
