"""What speaks for the positive answer, by prompt and by pair."""

import pandas as pd

from interp_experiments.rulebreakers.prompts import POSITIVE
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.columns import CLUSTER, WEIGHT


def positive_answers(results: Results) -> pd.DataFrame:
    """One row per model and prompt: what speaks for the positive answer (formulas 4, 5).

    Columns are model, prompt_id, pair_id, side, entity_pair, weight; confidence, the probability of
    the positive answer; relative, its share of both answers' probability; accepted_by_probability,
    whether it is the likelier of the two; accepted, whether it was given.
    """
    chosen = results.options["option"].isin(POSITIVE)
    names = {"probability": "confidence", "relative_probability": "relative"}
    positive = results.options[chosen].rename(columns=names)
    prompts = results.prompts[["prompt_id", "pair_id", "side", CLUSTER, WEIGHT]]
    table = positive[["model", "prompt_id", *names.values()]].merge(prompts, on="prompt_id")
    answers = results.answers[["model", "prompt_id", "answer"]]
    table = table.merge(answers, on=["model", "prompt_id"])
    table["accepted_by_probability"] = table["relative"] > 0.5
    return table.assign(accepted=table["answer"].isin(POSITIVE)).drop(columns="answer")


def answered_pairs(positive: pd.DataFrame) -> pd.DataFrame:
    """One row per model and pair: columns of `positive_answers` by side, such as relative_SIDE."""
    values = ["confidence", "relative", "accepted_by_probability"]
    keys = ["model", "pair_id", CLUSTER, WEIGHT]
    wide = positive.pivot(index=keys, columns="side", values=values)
    wide.columns = pd.Index([f"{value}_{side}" for value in values for side in wide[value].columns])
    return wide.reset_index()
