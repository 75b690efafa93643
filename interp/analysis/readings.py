"""Ways to read an answer from stored probabilities, and how often each reading is correct.

The free reading is the option of the most probable token. A forced choice is the most probable of
the options, whatever the model would write. A calibrated choice is the option that gained most over
what the model prefers anyway, either in the same phrasing (`MEDIAN`) or without content
(`CONTENT_FREE`).

Equally probable options share the point: a choice between m of them is right with probability 1/m.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.analysis.accuracy import is_correct
from interp.analysis.constant import ALIKE
from interp.tables import TIE

FREE, FORCED = "most probable token", "most probable option"
MEDIAN, CONTENT_FREE = "calibrated: median", "calibrated: content-free"

SAME = 1e-9
"""Log-probabilities and log-odds that differ by less are equal; subtracting medians rounds them."""

_TINY = 5e-324
"""The smallest positive number; smaller shares are stored as 0."""


def scored_options(
    options: pd.DataFrame, prompts: pd.DataFrame, *, unit: str = "pair_id"
) -> pd.DataFrame:
    """The options of prompts that offer several, with what is known about each prompt.

    One row per prompt and option: prompt_id, option, relative_probability, log_odds (against all
    other options, in logits), pair_id, side, weight, gold, phrasing ("" without such a column),
    unit (the cluster) and right (whether the option is correct).
    """
    kept = prompts[["prompt_id", "pair_id", "side", "weight", "gold"]].assign(
        phrasing=prompts.get("phrasing", ""), unit=prompts[unit]
    )
    rows = options.dropna(subset="relative_probability")
    rows = rows[["prompt_id", "option", "relative_probability"]].merge(
        kept, on="prompt_id", validate="many_to_one"
    )
    return rows.assign(right=rows["option"] == rows["gold"], log_odds=_log_odds(rows))


def free_choice(answers: pd.DataFrame) -> pd.DataFrame:
    """The option of the most probable token for judged prompts: credit (1 or 0), tied, outside."""
    judged = answers[answers["correct"].notna()].set_index("prompt_id")
    return pd.DataFrame(
        {
            "credit": is_correct(judged).astype(float),
            "tied": judged["answer"] == TIE,
            "outside": judged["answer"] == "",
        }
    )


def chosen_by(scored: pd.DataFrame, score: pd.Series) -> pd.DataFrame:
    """The option with the highest score: credit, from 0 to 1, tied and chosen, by prompt_id.

    `chosen` holds the name of the option, or of all tied ones. Prompts with an undefined score have
    no credit (NaN); scores that differ by at most `SAME` are equal.
    """
    prompt = scored["prompt_id"].to_numpy()
    known = score.notna().groupby(prompt).transform("all")
    best = known & (score >= score.groupby(prompt).transform("max") - SAME)
    counts = best.groupby(prompt).sum()
    hits = (best & scored["right"]).groupby(prompt).sum()
    names = scored.loc[best].groupby("prompt_id")["option"].agg("|".join)
    credit = hits / counts.where(counts > 0)
    return pd.DataFrame({"credit": credit, "tied": counts > 1, "chosen": names})


def forced_choice(scored: pd.DataFrame) -> pd.DataFrame:
    """The most probable option (`chosen_by`), whatever the most probable token is.

    Shares of the options' probability decide, which are known even if all probabilities are too
    small to be stored, and which take the lengths of whole texts into account if those are divided
    by their length.
    """
    return chosen_by(scored, logs(scored["relative_probability"]))


def median_choice(scored: pd.DataFrame) -> pd.DataFrame:
    """The option whose log-odds exceed their median in the same phrasing most (`chosen_by`).

    The median of a prompt's option is that of all other clusters' prompts with the same phrasing
    and option, so no prompt and no dependent one calibrates itself; with fewer than `ALIKE` of
    them, the prompt has no credit. It is right to subtract it if every option is correct equally
    often: two options then each win half of the prompts.
    """
    medians = pd.Series(np.nan, scored.index)
    for _, rows in scored.groupby(["phrasing", "option"], sort=False):
        medians[rows.index] = left_out_medians(
            rows["log_odds"].to_numpy(dtype=float), pd.factorize(rows["unit"])[0]
        )
    return chosen_by(scored, scored["log_odds"] - medians)


def left_out_medians(
    values: Float[np.ndarray, " n"], clusters: Sequence[int] | np.ndarray
) -> Float[np.ndarray, " n"]:
    """For each value, the median of the values of all other clusters; NaN if they are too few."""
    order = np.argsort(values, kind="stable")
    ordered, rank = values[order], np.argsort(order)
    medians = np.full(len(values), np.nan)
    for places in pd.Series(np.arange(len(values))).groupby(np.asarray(clusters)).indices.values():
        left = len(values) - len(places)
        if left < ALIKE:
            continue
        gone = np.sort(rank[places]) - np.arange(len(places))
        # The number of removed values that precede the value at a place among the others.
        middle = np.array([(left - 1) // 2, left // 2])
        middle += np.searchsorted(gone, middle, side="right")
        medians[places] = ordered[middle].mean()
    return medians


def content_free_choice(scored: pd.DataFrame, prior: pd.Series) -> pd.DataFrame:
    """The option whose share is largest relative to its share without content (`chosen_by`).

    This is the diagonal W of Zhao et al. (2021, Calibrate Before Use, Section 5). `prior` is each
    row's mean share in content-free prompts; NaN if there are none.
    """
    return chosen_by(scored, logs(scored["relative_probability"]) - logs(prior))


def _log_odds(rows: pd.DataFrame) -> pd.Series:
    """The log-odds of each option against all others, finite and exact if a share is nearly 1."""
    share = rows["relative_probability"].astype(float)
    others = share.where(share <= 0.5, 0.0).groupby(rows["prompt_id"].to_numpy()).transform("sum")
    rest = (1 - share).where(share <= 0.5, others)
    return logs(share) - logs(rest)


def logs(shares: pd.Series) -> pd.Series:
    """The natural logarithms of shares; finite, since a share stored as 0 is tiny instead."""
    values = shares.to_numpy(dtype=float)
    return pd.Series(np.log(np.where(values < _TINY, _TINY, values)), shares.index)
