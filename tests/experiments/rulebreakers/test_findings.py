"""Sentences are written from tables, which are made up here."""

import re

import pandas as pd

from interp_experiments.rulebreakers.findings import familiar, outliers, rejects_less, sides


def by_side():
    rows = [
        ("rulebreaker", "one", 0.1, 0.3),
        ("non_rulebreaker", "one", 0.4, 0.6),
        ("rulebreaker", "two", 0.3, 0.5),
        ("non_rulebreaker", "two", 0.4, 0.6),
    ]
    return pd.DataFrame(rows, columns=["measure", "model", "low", "high"]).assign(pairs=72)


def test_models_that_fail_rulebreakers_more_often_are_counted():
    assert rejects_less(by_side()) == ["one"]
    said = sides(by_side())
    assert re.match("1 of 2 models .*rulebreakers less ", said)
    assert said.endswith("n = 72 pairs.")


def test_familiarity_counts_what_was_found_and_what_was_not_tested():
    findings = ["recognized more familiar", "not tested", "no difference shown"]
    table = pd.DataFrame({"cities": "all", "finding": findings, "clusters": [20, 9, 24]})
    other = pd.DataFrame({"cities": ["own"], "finding": findings[:1], "clusters": [99]})
    said = familiar(pd.concat([table, other]))
    assert re.search(r"more familiar .*1 of 3 .*less .* 0 \(1 not", said)
    assert said.endswith("n = 24 cities.")


def test_means_that_depend_on_one_prompt_are_counted():
    table = pd.DataFrame({"largest_share": [0.2, 0.01, 0.9], "ratio": ["ratio", "ratio", "other"]})
    (sentence,) = outliers(table)
    assert re.match("In 1 of 2 combinations", sentence)
    assert outliers(table[1:]) == []
