"""Sentences are written from tables, which are made up here."""

import pandas as pd

from interp_experiments.rulebreakers.findings import (
    above_chance,
    across_pairs,
    by_finding,
    confirmed,
)

NAN = float("nan")


def contrast_rows(*rows):
    names = ["model", "factor", "contrast", "status", "difference", "p", "verdict"]
    limits = ["excluded_below", "excluded_above"]
    return pd.DataFrame(rows, columns=[*names, *limits])


def test_confirmatory_contrasts_are_told_by_factor_with_what_they_exclude():
    table = contrast_rows(
        ("one", "rule", "mt - ds", "confirmatory", 0.251, 0.001, "different", 0.2, 0.3),
        ("two", "rule", "mt - ds", "confirmatory", -0.104, 0.002, "different", -0.2, -0.05),
        ("three", "rule", "mt - ds", "confirmatory", 0.3, 0.02, "open", -0.012, 0.6),
        ("one", "phrasing", "a - b", "confirmatory", 0.01, 0.5, "smaller", 0.0, 0.0604),
        ("", "model", "one - two", "confirmatory", 0.4, 0.001, "different", 0.3, 0.5),
        ("", "model", "one - three", "confirmatory", 0.0, 1.0, "open", -0.2, 0.2),
        ("one", "question_verb", "a - b", "exploratory", 0.9, 0.001, "different", 0.8, 1.0),
        ("one", "entity_group", "a - b", "confirmatory", 0.9, NAN, "not tested", NAN, NAN),
    )
    told = confirmed(table)
    assert told.startswith("Confirmatory: 6 contrasts of paired accuracy were named in the code")
    assert "any false finding among them is at most 5%" in told
    assert (
        "Modus tollens against disjunctive syllogism: a difference is shown for one (+0.25) and "
        "two (−0.10); a difference of 0.1 or more is not excluded for three (−0.012 to +0.600)."
    ) in told
    assert (
        "The best against the worst phrasing: a difference is shown for no model; a difference of "
        "0.1 or more is excluded for one (+0.000 to +0.060)."
    ) in told
    assert (
        "Of 2 pairs of models 1 differ: one - two (+0.40); a difference of 0.1 or more is not "
        "excluded for one - three (−0.200 to +0.200)."
    ) in told
    assert "no difference is shown." not in told
    # What was not named, or could not be tested, is no finding.
    assert "0.9" not in told


def test_where_nothing_is_shown_the_interval_says_what_is_left():
    rows = [
        ("one", "surer when right", 0.2, 0.1, 0.3),
        ("two", "no difference shown", -0.031, -0.104, 0.052),
        ("three", "not tested", NAN, NAN, NAN),
    ]
    table = pd.DataFrame(rows, columns=["model", "finding", "difference", "low", "high"])
    assert by_finding(table, "Confidence", {"surer when right": "larger, for"}) == (
        "Confidence: larger, for one; neither is shown after correction (difference [95% "
        "interval, not corrected]) for two "
        "(−0.03 [−0.10, 0.05]); too few entities to test, for three."
    )


def test_an_auroc_below_a_half_is_told_where_pairs_show_nothing():
    rows = [
        ("gemma2", "no difference shown", 0.414, 0.337, 0.494),
        ("other", "no difference shown", 0.45, 0.35, 0.55),
        ("third", "more often in the right order", 0.9, 0.8, 0.95),
    ]
    table = pd.DataFrame(rows, columns=["model", "finding", "auroc", "auroc_low", "auroc_high"])
    (told,) = across_pairs(table)
    assert "gemma2 (0.41 [0.34, 0.49])" in told
    assert "other" not in told and "third" not in told
    assert across_pairs(table[1:]) == []


def test_who_is_above_chance_is_told_with_what_is_taken_as_known():
    table = pd.DataFrame(
        {"model": ["one", "two"], "paired_low": [0.3, 0.2], "chance_yes_rate": [0.25, 0.25]}
    )
    assert above_chance(table).endswith("for one.")
    assert "taken as known" in above_chance(table)
    assert above_chance(table[1:]).endswith("for no model.")
