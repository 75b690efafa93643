"""Sentences are written from tables, which are made up here."""

import pandas as pd

from interp_experiments.rulebreakers.findings import confirmed


def contrast_rows(*rows):
    names = ["model", "factor", "contrast", "status", "difference", "p", "p_holm"]
    return pd.DataFrame(rows, columns=names)


def test_confirmatory_contrasts_are_told_by_factor_with_their_sign():
    table = contrast_rows(
        ("one", "rule", "mt - ds", "confirmatory", 0.251, 0.001, 0.005),
        ("two", "rule", "mt - ds", "confirmatory", -0.104, 0.002, 0.008),
        ("three", "rule", "mt - ds", "confirmatory", 0.3, 0.02, 0.06),
        ("one", "phrasing", "a - b", "confirmatory", 0.1, 0.5, 1.0),
        ("", "model", "one - two", "confirmatory", 0.4, 0.001, 0.005),
        ("", "model", "one - three", "confirmatory", 0.0, 1.0, 1.0),
        ("one", "question_verb", "a - b", "exploratory", 0.9, 0.001, float("nan")),
        ("one", "entity_group", "a - b", "confirmatory", 0.9, float("nan"), float("nan")),
    )
    told = confirmed(table)
    assert told.startswith("Confirmatory: 6 contrasts of paired accuracy were named in the code")
    assert "Modus tollens against disjunctive syllogism: one (+0.25) and two (−0.10)." in told
    assert "The best against the worst phrasing: no difference is shown." in told
    assert "Of 2 pairs of models 1 differ: one - two (+0.40)." in told
    # What was not named, or could not be tested, is no finding.
    assert "0.9" not in told
