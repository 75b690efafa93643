"""The prompts behind the numbers of a page: their texts, factors, and what each model answered."""

import re

import pandas as pd

from interp.report.page import PromptsItem

MOST_PROMPTS = 2000
"""Prompts that a page shows; of more, whole pairs that are spread evenly."""

MOST_CHARACTERS = 2_000_000
"""Characters of all prompts that a page shows, likewise."""

MOST_VALUES = 300
"""Different values of a factor by which prompts can be chosen on the page."""

RIGHT, WRONG = "✓", "✗"
"""What an answer ends with."""

_NO_FACTORS = ("prompt_id", "pair_id", "side", "text", "gold", "weight")


def prompts_item(prompts: pd.DataFrame, answers: pd.DataFrame) -> PromptsItem:
    """A table of prompts, one row each, that its page can filter.

    Args:
        prompts: the prompts table.
        answers: the answers table: model, prompt_id, answer, correct, error.
    """
    shown = _spread(prompts)
    factors = [name for name in prompts.columns if _is_factor(prompts[name])]
    models = answers["model"].unique().tolist()
    table = shown[["text", "gold"]].rename(columns={"text": "prompt"})
    for model in models:
        own = answers[answers["model"] == model].set_index("prompt_id")
        table[model] = _outcomes(own.reindex(shown["prompt_id"])).to_numpy()
    table = table.join(shown[["side", *factors]])
    of_all = "" if len(shown) == len(prompts) else f" of {len(prompts):,}, spread evenly over pairs"
    return PromptsItem(
        "Prompts and answers",
        table.reset_index(drop=True),
        filters=("side", *factors),
        models=tuple(models),
        note=f"{len(shown):,} prompts{of_all}. {RIGHT}: the model's answer is correct, {WRONG}: it "
        "is not, or there is none. An underlined accuracy elsewhere on this page leads to its "
        "prompts, each of which it counts by its weight.",
    )


def _spread(prompts: pd.DataFrame) -> pd.DataFrame:
    """About as many prompts as a page shows, pairs as a whole."""
    pairs = prompts["pair_id"].unique()
    characters = int(prompts["text"].str.len().sum())
    step = max(-(-len(prompts) // MOST_PROMPTS), -(-characters // MOST_CHARACTERS))
    return prompts[prompts["pair_id"].isin(pairs[:: max(1, step)])]


def _is_factor(values: pd.Series) -> bool:
    name = str(values.name)
    if name in _NO_FACTORS or re.search(r"_(start|end)$", name):
        return False
    texts = pd.api.types.is_string_dtype(values) or pd.api.types.is_object_dtype(values)
    return texts and 1 < values.nunique() <= MOST_VALUES


def _outcomes(rows: pd.DataFrame) -> pd.Series:
    """What a model answered, and whether that is correct; empty where it was not asked."""
    failed = rows["error"].fillna("") != ""
    answer = rows["answer"].fillna("").replace("", "no answer").mask(failed, "error")
    correct = rows["correct"].eq(True).fillna(False).astype(bool)
    marked = answer + " " + correct.map({True: RIGHT, False: WRONG})
    marked = marked.mask(rows["correct"].isna() & ~failed, "not judged")
    return marked.where(rows["error"].notna(), "")
