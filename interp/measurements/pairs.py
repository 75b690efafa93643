"""What the results of measurements of pairs share."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from interp.console import counted
from interp.report.glance import Opening
from interp.results.result import Result, note_errors

_FEW = 3
"""Models up to which each one's recognized pairs are counted, and contrasts up to which all are
named."""


class PairResult(Result):
    """Results of a measurement that reads both prompts of each pair."""

    @property
    def _parameters(self) -> Mapping[str, Any]:
        return self.measured.about.parameters

    @property
    def pairs(self) -> pd.DataFrame:
        """The pairs table: one row per pair."""
        return self.table("pairs")

    def noted(self) -> Mapping[str, Mapping[str, object]]:
        """Numbers of pairs and of errors."""
        numbers = {}
        for model, rows in self.pairs.groupby("model", sort=False):
            errors = note_errors(str(model), rows.loc[rows["error"] != "", "error"], "pair")
            numbers[str(model)] = {"pairs": len(rows), "errors": errors}
        return numbers

    def opening(self) -> Opening:
        """With how many pairs are recognized, and what the numbers mean."""
        return replace(super().opening(), extent=self.extent(self.recognized(), self.meaning()))

    def extent(self, *said: str) -> str:
        """The numbers of pairs and models, and what is said after them."""
        pairs = counted(self.table("pairs", ["pair_id"])["pair_id"].nunique(), "pair")
        models = counted(len(self.measured.models()), "model")
        return " ".join([f"{pairs}, {models}.", *said])

    def recognized(self) -> str:
        """How many pairs each model recognizes, that is, prefers the correct answers of."""
        columns = ["model", "pair_id", "recognized"]
        pairs = self.table("pairs", columns).dropna().drop_duplicates(columns[:2])
        counts = pairs["recognized"].astype(bool).groupby(pairs["model"], sort=False)
        each = [f"{sum(flags)} of {len(flags)} by {model}" for model, flags in counts]
        return f"Pairs recognized: {', '.join(each)}." if 0 < len(each) <= _FEW else ""

    def meaning(self) -> str:
        """What the numbers mean, in words."""
        return meaning(self.table("pairs", ["positive_option", "negative_option"]))


def meaning(pairs: pd.DataFrame) -> str:
    """What an effect on a pair's answers is, in words; empty without pairs."""
    options = pairs[["positive_option", "negative_option"]].dropna().drop_duplicates()
    if options.empty:
        return ""
    answers = options.sort_values(["positive_option", "negative_option"]).to_numpy().tolist()
    if len(answers) > _FEW:
        answers = [["the positive option", "the negative option"]]
    contrasts = ", or of ".join(f"{first} minus that of {second}" for first, second in answers)
    against = " or ".join(dict.fromkeys(second for _, second in answers))
    return (
        f"An effect is a change in the logit of {contrasts}; if negative, it is towards {against}."
    )
