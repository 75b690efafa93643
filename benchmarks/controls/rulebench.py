"""The tests and intervals in the report of RuleBench, run on one simulated study.

Golden rules differ in how easy they are for a model, both overall and under each setting. Questions
about the same rule also differ in how easy they are. Some rules have many questions, as in
generated sets.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.special import expit

from benchmarks.controls.rates import Tested
from interp.statistics.contrasts import mcnemar
from interp.statistics.proportions import proportions
from interp_experiments.rulebench.results import MODELS, Results, comparisons
from interp_experiments.rulebench.tables import accuracy

QUESTIONS, RULES = 160, 60
"""Numbers of questions and of rules; earlier rules are drawn more often."""

OF_RULE, OF_SETTING, OF_QUESTION = 1.5, 1.0, 0.7
"""Standard deviations of ease, in log-odds, over rules, over rules within a setting, and over
questions."""

EFFECT = 1.0
"""The effect planted in the second model, in log-odds of a right answer."""

SETTINGS = ("no", "golden", "few")

POPULATION = 1_000_000


def of_rulebench(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """Every named comparison of two models, and the intervals of accuracies."""
    share = 1 / np.arange(1, RULES + 1) ** 0.7
    rule = rng.choice(RULES, QUESTIONS, p=share / share.sum())
    texts = pd.concat(
        [_texts(rng, rule, model, EFFECT * planted * place) for place, model in enumerate("ab")],
        ignore_index=True,
    )
    if planted:  # with the golden rule, 3 of 10 wrong answers become right
        texts["correct"] |= (texts["rules"] == "golden") & (rng.random(len(texts)) < 0.3)
    results = Results(texts, pd.DataFrame(columns=["model", "error"]))
    return [*_of_comparisons(results), *_of_accuracy(results)]


def _of_comparisons(results: Results) -> Iterator[Tested]:
    texts = results.texts
    for row in comparisons(results).to_dict("records"):
        levels = row["contrast"].split(" - ")
        if row["subject"] == MODELS:
            setting = row["name"].rpartition(", ")[2]
            sides = (texts[(texts["model"] == m) & (texts["rules"] == setting)] for m in levels)
        else:
            own = texts[texts["model"] == row["model"]]
            sides = (own[own["rules"] == level] for level in levels)
        judged = [side.sort_values("pair_id")["correct"].tolist() for side in sides]
        subject = row["subject"].lower()
        yield Tested(
            f"RuleBench, {subject}" + ("" if row["model"] != "b" else "@other"),
            row["p"],
            family="RuleBench, named comparisons",
            p_holm=row["p_holm"],
            naive=mcnemar(*judged),
            low=row["low"],
            high=row["high"],
        )


def _of_accuracy(results: Results) -> Iterator[Tested]:
    """Two intervals of the accuracy, minus the true accuracy: clustered, and Wilson's."""
    truth, own = _truth(), results.texts[results.texts["model"] == "a"]
    naive = proportions(own, values=["correct"], by=["rules"], cluster=None)
    both = {
        "golden rules": accuracy(results).frame.query("model == 'a'"),
        "questions, Wilson's": naive,
    }
    for over, table in both.items():
        row = table.set_index("rules").loc["few"]
        name = f"RuleBench, accuracy, over {over}"
        yield Tested(name, np.nan, low=row["low"] - truth, high=row["high"] - truth)


def _truth() -> float:
    """The expected accuracy over all rules and questions that could have been drawn."""
    spread = np.sqrt(OF_RULE**2 + OF_SETTING**2 + OF_QUESTION**2)
    return float(expit(np.random.default_rng(0).normal(0, spread, POPULATION)).mean())


def _texts(rng: np.random.Generator, rule: np.ndarray, model: str, shift: float) -> pd.DataFrame:
    """A model's answers to the questions under all settings."""
    of_rule = rng.normal(0, OF_RULE, RULES)
    of_question = rng.normal(0, OF_QUESTION, len(rule))
    parts = []
    for setting in SETTINGS:
        of_setting = rng.normal(0, OF_SETTING, RULES)
        odds = shift + of_rule[rule] + of_setting[rule] + of_question
        columns = {
            "model": model,
            "set": "kinship",
            "rules": setting,
            "pair_id": np.arange(len(rule)).astype(str),
            "rule": rule.astype(str),
            "correct": rng.random(len(rule)) < expit(odds),
            "outcome": "answered",
        }
        parts.append(pd.DataFrame(columns))
    plain = {"form": "natural", "shots": "no", "thought": "no", "version": "factual"}
    return pd.concat(parts).assign(**plain)
