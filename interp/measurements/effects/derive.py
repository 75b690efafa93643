"""Effects of segments as trials, and how often answers are alike, so that effects cancel."""

import pandas as pd

from interp.choices import COUNTERPART, UNCHANGED
from interp.estimates.compute import WHY

EFFECT_KEY = ["model", "donor_kind", "segment", "other_segment"]

EFFECT_COLUMNS = [
    *EFFECT_KEY,
    *("prompt_id", "answer", "other_answer"),
    *("shapley", "leave_one_out", "interaction", "note", "error"),
]
"""Columns of the segment_effects table that its summaries use."""


def segment_trials(effects: pd.DataFrame) -> pd.DataFrame:
    """One row per prompt and combination of `EFFECT_KEY`, with the numbers of the table.

    Where no donor changes a segment, `WHY` says so.
    """
    rows = effects[effects["error"] == ""]
    rows = rows.assign(other_segment=rows["other_segment"].fillna(""))
    same = rows["note"].fillna("").str.contains(UNCHANGED, regex=False)
    same = same.groupby([rows[name] for name in EFFECT_KEY]).transform("all")
    why = rows["donor_kind"].map({COUNTERPART: "same on both sides"}).fillna(UNCHANGED)
    return rows.assign(shapley_size=rows["shapley"].abs(), **{WHY: why.where(same, "")})


def same_answers(segment_effects: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """By model, the pairs, and those both of whose sides get the same answer.

    An effect is one on the logit of the prompt's own answer. If both sides get the same answer,
    exchanging all segments moves it by some amount on one side and back on the other, so that the
    effects of the counterpart cancel in a mean over prompts, however large they are.
    """
    rows = segment_effects[segment_effects["donor_kind"] == COUNTERPART]
    rows = rows.drop_duplicates(["model", "prompt_id"]).dropna(subset="answer")
    rows = rows.merge(prompts[["prompt_id", "pair_id"]], on="prompt_id")
    answers = rows.groupby(["model", "pair_id"], sort=False)["answer"].agg(["size", "nunique"])
    whole = answers[answers["size"] > 1]["nunique"].eq(1).groupby("model", sort=False)
    return whole.agg(pairs="size", same="sum").reset_index()


def one_answer(segment_effects: pd.DataFrame) -> pd.DataFrame:
    """By model, the prompts, and those that get the more frequent of their two answers.

    If a model gives one answer to all prompts, replacing segments by those of other prompts moves
    its logit as often up as down, so that effects cancel in a mean over prompts.
    """
    rows = segment_effects[segment_effects["donor_kind"] != COUNTERPART]
    rows = rows.drop_duplicates(["model", "prompt_id"]).dropna(subset=["answer", "other_answer"])
    options = [
        " ".join(sorted(both)) for both in zip(rows["answer"], rows["other_answer"], strict=True)
    ]
    counts = rows.groupby(["model", pd.Series(options, rows.index, name="options"), "answer"])
    most = counts.size().groupby(["model", "options"]).max().groupby("model", sort=False)
    same = most.sum().rename("same").reset_index()
    return same.merge(rows.groupby("model").size().rename("prompts").reset_index(), on="model")
