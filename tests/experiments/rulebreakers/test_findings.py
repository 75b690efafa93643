"""Sentences are written from tables, which are made up here."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.controls.studies import few_resamples
from benchmarks.controls.tables import EVERYTHING, MODELS, rulebreakers
from interp.analysis.cautions.caution import CONSTANT, LEFT_OUT, Caution, void_models
from interp_experiments.rulebreakers.findings import first_screen, sides, study_cautions
from interp_experiments.rulebreakers.knowledge import familiar


def by_side():
    rows = [("rulebreaker", "one", 0.1, 0.3), ("rulebreaker", "two", 0.3, 0.5)]
    rows += [("non_rulebreaker", model, 0.4, 0.6) for model in ("one", "two")]
    return pd.DataFrame(rows, columns=["measure", "model", "low", "high"]).assign(pairs=72)


def test_models_that_fail_rulebreakers_more_often_are_counted():
    said = sides(by_side())
    assert re.match(r"1 of 2 models .*rulebreakers ", said)
    assert said.endswith("n = 72 pairs.")
    assert sides(by_side().assign(pairs=1)).endswith("n = 1 pair.")
    one = by_side().assign(low=float("nan"))
    assert "not tested" in sides(one) and "0 of" not in sides(one)
    both = pd.concat([by_side(), one.replace({"one": "three", "two": "four"})])
    assert sides(both).startswith("1 of 2 models")


def test_familiarity_counts_what_was_found_and_not_what_was_not_tested():
    findings = ["recognized more familiar", "not tested", "no difference shown"]
    table = pd.DataFrame({"cities": "all", "finding": findings, "clusters": [20, 9, 24]})
    other = pd.DataFrame({"cities": ["own"], "finding": findings[:1], "clusters": [99]})
    said = familiar(pd.concat([table, other]))
    assert re.search(r"more familiar .*1 of 2 .* 0; 1 ", said)
    assert said.endswith("n = 24 cities.")
    table = pd.DataFrame({"cities": "all", "finding": ["not tested"] * 2, "clusters": 9})
    told = familiar(table)
    assert "tested" in told and "0 of" not in told
    assert familiar(table[:1].assign(clusters=1)).endswith("n = 1 city.")


@pytest.fixture
def results(tmp_path):
    return rulebreakers(np.random.default_rng(0), EVERYTHING, tmp_path)


def test_no_accuracy_of_a_model_that_does_not_read_is_quoted(results):
    void = Caution(CONSTANT, MODELS[0], "always No", voids=True)
    with few_resamples():
        first = first_screen(replace(results, cautions=(void,)))
    assert first.cautions[0] == void
    paired = first.items[0].frame.query("number == 'paired accuracy'").set_index("model")["value"]
    assert np.isnan(paired[MODELS[0]]) and paired.drop(MODELS[0]).notna().all()
    quoted = [line for line in first.sentences if "aired accuracy" in line]
    assert quoted and not any(MODELS[0] in line for line in quoted)


def test_models_that_reject_most_counterparts_and_lost_pairs_are_said(results):
    rejecting = results.answers.assign(correct=results.answers["model"] != MODELS[0])
    few = results.prompts[results.prompts["entity"] < 3]
    found = study_cautions(replace(results, answers=rejecting, prompts=few))
    assert [(own.kind, own.model) for own in found] == [(LEFT_OUT, MODELS[0]), (LEFT_OUT, "")]
    assert found[0].numbers["accepted"] == 0
    assert set(void_models(found)) == {MODELS[0]}
    silent = study_cautions(replace(results, answers=results.answers.assign(answer="")))
    assert {own.model for own in silent if own.numbers.get("no_answer") == 1} == {*MODELS}
    drawn = results.drawn["entity_pair"].nunique()
    assert found[1].numbers == {"left_out": drawn - 3, "drawn": drawn}
