"""Token heat maps of a few pairs."""

import pandas as pd

from interp.report.page import Section
from interp.results.attributions import Attributions
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results

EXAMPLE_PAIRS = 8
"""Pairs of which each model's first failure is shown token by token."""


def example_section(results: Results) -> Section:
    """Token heat maps."""
    answers = results.example_answers
    return Section(
        "Examples",
        "Each token's share of the score: the two sides of a pair, one below the other. Of each "
        f"model, the first of {EXAMPLE_PAIRS} pairs whose rulebreaker it answers incorrectly; the "
        "first pair, if there is none.",
        tuple(
            item
            for model in results.models
            for item in Attributions.of(results.example_run).heat_maps(
                example_pair(results.examples, answers[answers["model"] == model]),
                answers[answers["model"] == model],
                pairs=1,
            )
        ),
    )


def example_pair(prompts: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """The prompts of the first pair whose rulebreaker is answered incorrectly, or of the first."""
    correct = prompts["prompt_id"].map(answers.set_index("prompt_id")["correct"]).eq(True)
    failed = prompts.loc[(prompts["side"] == SIDES[0]) & ~correct, "pair_id"]
    first = failed.iloc[0] if len(failed) else prompts["pair_id"].iloc[0]
    chosen: pd.DataFrame = prompts[prompts["pair_id"] == first]
    return chosen
