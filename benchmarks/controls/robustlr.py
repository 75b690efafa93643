"""The tests and intervals in the report of RobustLR, run on one simulated study.

Theories differ in how easy they are for a model, and all variants of a theory are equally easy. A
wrong answer is one of the other two labels. Without effects, two models score as high as the best
constant guess on every set, and a third model has the same score on all contrast sets.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd
from scipy.special import expit

from benchmarks.controls.rates import Tested
from interp_experiments.robustlr.findings import (
    AGAINST_GUESS,
    BETWEEN_MODELS,
    BETWEEN_SETS,
    comparisons,
)
from interp_experiments.robustlr.language import LABELS, Verdict
from interp_experiments.robustlr.results import SETS, score_table, theory_scores, with_baselines
from interp_experiments.robustlr.tables import SETS as SETS_OF
from interp_experiments.robustlr.tables import averages
from interp_experiments.robustlr.variants import CONTRAST_SETS, EQUIVALENCE_SETS

THEORIES = 40
"""Number of theories in each set, as in a study of the default size."""

SPREAD = 1.5
"""Standard deviation of the ease of theories, in log-odds of a right answer."""

POPULATION = 20_000
"""Number of theories from which true scores are computed."""

LEVEL, LEVELLED = 0.4, "level"
"""Weighted F1 of the third model on every contrast set, and the name of this model."""

EFFECT = 0.7
"""The planted effect, in log-odds of a right answer."""


def of_robustlr(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """Every named comparison, and the intervals of the scores."""
    prompts = _prompts(rng, THEORIES)
    shift = {"first": 0.0, "second": EFFECT * planted, LEVELLED: 0.0}
    rows = pd.concat(
        [_answered(rng, prompts, model, shift[model]) for model in shift], ignore_index=True
    )
    if planted:
        harder = (rows["model"] == LEVELLED) & (rows["set"] == "D-CS")
        own = prompts[prompts["set"] == "D-CS"]
        again = _answered(rng, own, LEVELLED, EFFECT)
        rows = pd.concat([rows[~harder], again], ignore_index=True)
    return [*_of_comparisons(comparisons({SETS: rows})), *_of_scores(rows)]


def _of_comparisons(table: pd.DataFrame) -> Iterator[Tested]:
    for row in table.to_dict("records"):
        models, kind = row["contrast"].split(" - "), row["kind"]
        against = kind == AGAINST_GUESS and row["model"] == "second"
        between = kind == BETWEEN_MODELS and models == ["first", "second"]
        if against or between or (kind == BETWEEN_SETS and row["model"] == LEVELLED):
            yield Tested(
                f"RobustLR, {kind}, {row['sets']}",
                row["p"],
                family="RobustLR, named comparisons",
                p_holm=row["p_holm"],
                low=row["low"],
                high=row["high"],
            )


def _of_scores(rows: pd.DataFrame) -> Iterator[Tested]:
    """Intervals of the first model's scores, minus the true scores."""
    own = rows[rows["model"] == "first"]
    means, consistent = _truth()
    for row in score_table(own, ["set"]).to_dict("records"):
        for name, truth in (("f1", means), ("consistency", consistent)):
            ends = (row[f"{name}_{end}"] - truth[row["set"]] for end in ("low", "high"))
            yield _interval(f"RobustLR, {name} of {row['set']}", *ends)
    theories = theory_scores(own.assign(source="measured"), ["source", "model", "set"])
    for kind, names in SETS_OF.items():
        truth = float(np.mean([means[name] for name in names]))
        row = averages(theories, kind).set_index("model").loc["first"]
        ends = (row[f"f1_{end}"] - truth for end in ("low", "high"))
        yield _interval(f"RobustLR, average of {kind} sets", *ends)


def _interval(test: str, low: float, high: float) -> Tested:
    return Tested(test, np.nan, low=low, high=high)


def _prompts(rng: np.random.Generator, theories: int) -> pd.DataFrame:
    """The labels of each set's theories; half of the base theories are True, half False."""
    parts = []
    for name in (*CONTRAST_SETS, *EQUIVALENCE_SETS):
        for number in range(theories):
            base = Verdict.TRUE if number % 2 else Verdict.FALSE
            golds = [base, base]
            if name in CONTRAST_SETS:
                golds = [edit.expected(base) for edit in CONTRAST_SETS[name]]
            parts += [
                (name, f"{name}/{number}", f"{name}/{number}/{place}", base.value, gold.value)
                for place, gold in enumerate(golds)
            ]
    return pd.DataFrame(parts, columns=["set", "pair_id", "prompt_id", "base_label", "gold"])


def _answered(
    rng: np.random.Generator, prompts: pd.DataFrame, model: str, shift: float
) -> pd.DataFrame:
    """The prompts with a model's answers."""
    levels = _levels(model == LEVELLED)
    theory, first = pd.factorize(prompts["pair_id"])
    easy = rng.normal(0, SPREAD, len(first))[theory] + prompts["set"].map(levels) + shift
    right = rng.random(len(prompts)) < expit(easy)
    gold = pd.Index(LABELS).get_indexer(prompts["gold"])
    said = np.where(right, gold, (gold + rng.integers(1, len(LABELS), len(prompts))) % len(LABELS))
    return prompts.assign(model=model, answer=np.array(LABELS, dtype=object)[said])


@cache
def _levels(levelled: bool) -> dict[str, float]:
    """For each set, the log-odds at which mean F1 is `LEVEL` or that of the best constant guess."""
    prompts = _prompts(np.random.default_rng(0), POPULATION // 10)
    guesses = theory_scores(with_baselines(prompts.assign(model="", answer="")), ["model", "set"])
    constant = guesses[guesses["model"].isin([f"always {label}" for label in LABELS])]
    best = constant.groupby(["set", "model"])["f1"].mean().groupby("set").max()
    return {
        name: _solved(rows, LEVEL if levelled and name in CONTRAST_SETS else float(best[name]))
        for name, rows in prompts.groupby("set")
    }


def _solved(prompts: pd.DataFrame, target: float) -> float:
    """The log-odds at which the mean F1 reaches the target, by bisection."""
    low, high = -6.0, 6.0
    for _ in range(20):
        middle = (low + high) / 2
        if _mean_scores(prompts, middle)[0] < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _mean_scores(prompts: pd.DataFrame, level: float) -> tuple[float, float]:
    """Mean F1 and consistency at given log-odds, over ten draws of answers to a set's theories."""
    rng, found = np.random.default_rng(1), []
    theory, first = pd.factorize(prompts["pair_id"])
    gold = pd.Index(LABELS).get_indexer(prompts["gold"])
    for _ in range(10):
        easy = rng.normal(0, SPREAD, len(first))[theory] + level
        wrong = (gold + rng.integers(1, len(LABELS), len(gold))) % len(LABELS)
        said = np.where(rng.random(len(gold)) < expit(easy), gold, wrong)
        answers = np.array(LABELS, dtype=object)[said]
        rows = prompts.assign(model="", answer=answers)
        scores = theory_scores(rows, ["set"])
        found.append((scores["f1"].mean(), scores["consistent"].mean()))
    f1, consistent = np.mean(found, axis=0)
    return float(f1), float(consistent)


@cache
def _truth() -> tuple[dict[str, float], dict[str, float]]:
    """Mean F1 and consistency on each set, for a model without effects."""
    prompts, levels = _prompts(np.random.default_rng(0), POPULATION // 10), _levels(False)
    both = {name: _mean_scores(rows, levels[str(name)]) for name, rows in prompts.groupby("set")}
    return ({str(n): f1 for n, (f1, _) in both.items()}, {str(n): c for n, (_, c) in both.items()})
