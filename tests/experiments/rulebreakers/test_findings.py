"""Sentences are written from tables, which are made up here."""

import pandas as pd

from interp_experiments.rulebreakers.findings import familiar, outliers, sides


def by_side():
    rows = [
        ("rulebreaker", "one", 0.1, 0.3),
        ("non_rulebreaker", "one", 0.4, 0.6),
        ("rulebreaker", "two", 0.3, 0.5),
        ("non_rulebreaker", "two", 0.4, 0.6),
    ]
    return pd.DataFrame(rows, columns=["measure", "model", "low", "high"]).assign(pairs=72)


def test_models_that_fail_rulebreakers_more_often_are_counted():
    assert sides(by_side()) == (
        "1 of 2 models rejected rulebreakers less often than they accepted non-rulebreakers, with "
        "intervals that do not overlap; n = 72 pairs."
    )


def test_familiarity_counts_what_was_found_and_what_was_not_tested():
    findings = ["recognized more familiar", "not tested", "no difference shown"]
    table = pd.DataFrame({"cities": "all", "finding": findings, "clusters": [20, 9, 24]})
    other = pd.DataFrame({"cities": ["own"], "finding": findings[:1], "clusters": [99]})
    assert familiar(pd.concat([table, other])) == (
        "Recognized cities proved more familiar than failed ones to 1 of 2 models tested, less "
        "familiar to 0; 1 not tested; n = 24 cities."
    )


def test_what_was_not_tested_is_not_counted_as_none():
    table = pd.DataFrame({"cities": "all", "finding": ["not tested"] * 2, "clusters": 9})
    told = familiar(table)
    assert "not tested for any of 2 models" in told and "0 of" not in told
    one = by_side().assign(low=float("nan"))
    assert "not tested" in sides(one) and "0 of" not in sides(one)
    both = pd.concat([by_side(), one.replace({"one": "three", "two": "four"})])
    assert sides(both).startswith("1 of 2 models")


def test_means_that_depend_on_one_prompt_are_counted():
    table = pd.DataFrame({"largest_share": [0.2, 0.01, 0.9], "ratio": ["ratio", "ratio", "other"]})
    (sentence,) = outliers(table)
    assert "In 1 of 2 combinations of model and method" in sentence
    assert outliers(table[1:]) == []
