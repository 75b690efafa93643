"""Answers that hardly depend on the prompt: the usual answers, and what they alone would score."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import bdtr

from interp.analysis.accuracy import accuracies

NEARLY = 0.95
"""Share of usual answers from which answers count as constant. With two equally frequent correct
answers, the accuracy is then at most 0.05 above that of a constant answer."""

MOSTLY = 0.9
"""The same share if the other answers gain nothing over a constant answer, so that they do not show
that anything is read."""

LEAST = 6
"""Smallest number of answers that can be called constant: six tosses of a coin are all equal with a
probability of 1/32."""

ALIKE = 4
"""Smallest number of prompts whose options, or phrasing, count as shared."""

TOSSES = 5
"""The same for answers that are constant within a phrasing: the number of pairs beyond the first of
each phrasing. A model that answers both sides of a pair alike, but pairs at random, is constant
within all phrasings with a probability of 1/32."""

COVERED = 0.8
"""Smallest share of the prompts that must have options, or a phrasing, in common with others."""

NAMED = 4
"""Largest number of usual answers whose names say more than their place among the options."""

TELLING = 0.01
"""If chance makes replies without an answer so unequally frequent at other correct answers with at
most this probability, giving no answer depends on the prompt."""

UNORDERED = "unordered_options"
"""Column of the options' names in one order: in whatever order prompts list the same options, they
have the same constant answers."""

UNLIKELY = 0.01
"""Answers to one phrasing count as constant if, at the rate of the others, as few unusual answers
have this probability at most, divided by the number of phrasings."""


@dataclass(frozen=True)
class Constant:
    """Answers of which nearly all are the usual ones."""

    usual: tuple[str, ...]
    """The usual answers to each set of options, most frequent first; empty if there are more than
    `NAMED` at a place."""
    place: int | None
    """The place of the usual answer among the options, from 0, if options differ by prompt."""
    within: bool
    """Whether the usual answer depends on the phrasing."""
    same: int
    """Number of usual answers."""
    answers: int
    by_phrasing: Mapping[str, float]
    """Share of usual answers by phrasing; empty if there is only one phrasing."""
    alone: Mapping[str, float]
    """Accuracies of the usual answers alone, given to every prompt: accuracy, paired_accuracy, and
    one for each side."""
    model: Mapping[str, float]
    """The same accuracies of the model; replies without an answer count as wrong."""


def constant_answers(rows: pd.DataFrame) -> Constant | None:
    """What the usual answers are, if one model's answers hardly depend on the prompt.

    The usual answer is the most frequent one among prompts with the same options. If options differ
    by prompt, it is the option at the most frequent place, unless the correct answer always has the
    same place. Otherwise, it is the most frequent one within a phrasing.

    Replies without an answer are not usual ones, but if they occur at prompts with other correct
    answers than the rest, the replies depend on the prompt. Rows have prompt_id, pair_id, side,
    weight, gold, answer (one of the options; empty if the reply gives none), options (a tuple of
    their names, empty if unknown) and, if known, phrasing.
    """
    rows = _in_one_order(rows)
    heard = rows[rows["answer"] != ""]
    usual_answers = _usual_answers(heard)
    if usual_answers is None:
        return None
    usual, place, within = usual_answers
    everywhere = _everywhere(rows, usual, place=place, within=within)
    if _silence_tells(rows, everywhere):
        return None
    usual = everywhere[heard.index]
    same = heard["answer"] == usual
    by_phrasing: Mapping[str, float] = {}
    if "phrasing" in heard and heard["phrasing"].nunique() > 1:
        shares = same.groupby(heard["phrasing"], sort=False).mean()
        by_phrasing = {str(name): float(share) for name, share in shares.items()}
    names = tuple(usual.value_counts().index)
    return Constant(
        usual=names if place is None or len(names) <= NAMED else (),
        place=place,
        within=within,
        same=int(same.sum()),
        answers=len(heard),
        by_phrasing=by_phrasing,
        alone=_scores(rows, everywhere),
        model=_scores(rows, rows["answer"]),
    )


def _usual_answers(rows: pd.DataFrame) -> tuple[pd.Series, int | None, bool] | None:
    """The usual answer to each prompt, its place, and whether it depends on the phrasing."""
    if len(rows) < LEAST:
        return None
    shared = _tosses(rows, [UNORDERED], "prompt_id") >= LEAST - 1 and _shared(rows, [UNORDERED])
    if shared and is_constant(rows, usual := _most_frequent(rows, [UNORDERED])):
        return usual, None, False
    if not shared or rows["options"].nunique() > rows[UNORDERED].nunique():
        at_place, place = _at_usual_place(rows)
        if at_place is not None and is_constant(rows, at_place):
            return at_place, place, False
    if "phrasing" not in rows:
        return None
    by = ["phrasing", UNORDERED]
    if _tosses(rows, by, "pair_id") < TOSSES or not _shared(rows, by):
        return None
    usual = _most_frequent(rows, by)
    return (usual, None, True) if is_constant(rows, usual) else None


def best_constant(prompts: pd.DataFrame) -> pd.Series | None:
    """The answers of a model that reads nothing but the options, as often correct as possible.

    For prompts with the same options, it is the most frequent correct answer. If options differ by
    prompt, it is the option at the most frequent place of the correct answer; None if the correct
    answer is always there, which is then the way in which the options are listed.
    """
    rows = _in_one_order(prompts.assign(answer=prompts["gold"]))
    if rows.empty:
        return None
    if _shared(rows, [UNORDERED]):
        return _most_frequent(rows, [UNORDERED])
    return _at_usual_place(rows)[0]


def constant_phrasings(rows: pd.DataFrame) -> dict[str, str]:
    """The phrasings whose answers hardly depend on the prompt, unlike others', with the answer."""
    if "phrasing" not in rows:
        return {}
    rows = _in_one_order(rows)
    usual = _most_frequent(rows, ["phrasing", UNORDERED])
    constant = {}
    for phrasing, answers in rows.groupby("phrasing", sort=False):
        same = usual[answers.index] == answers["answer"]
        others = (usual != rows["answer"])[rows["phrasing"] != phrasing]
        if len(answers) < LEAST or others.empty or not is_constant(answers, usual[answers.index]):
            continue
        chance = bdtr(int((~same).sum()), len(answers), float(others.mean()))
        if chance <= UNLIKELY / rows["phrasing"].nunique():
            constant[str(phrasing)] = str(usual[answers.index].mode()[0])
    return constant


def is_constant(rows: pd.DataFrame, usual: pd.Series) -> bool:
    """Whether nearly all answers are the usual ones, and correct ones would be unusual more often.

    If the correct answer never varies either, being right does not show that anything is read.
    """
    same, expected = rows["answer"] == usual, rows["gold"] == usual
    unusual, others = 1 - same.mean(), 1 - expected.mean()
    right = rows["answer"] == rows["gold"]
    gain = int((right & ~expected).sum()) - int((expected & ~right).sum())
    least = MOSTLY if gain <= 0 else NEARLY
    return bool(same.mean() >= least and unusual <= others / 2)


def _in_one_order(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with a column `UNORDERED`."""
    named = [tuple(sorted(names)) for names in rows["options"]]
    return rows.assign(**{UNORDERED: pd.Series(named, rows.index, dtype=object)})


def _tosses(rows: pd.DataFrame, by: list[str], of: str) -> int:
    """How many prompts or pairs there are beyond the first of each group."""
    return int((rows.groupby(by, sort=False)[of].nunique() - 1).sum())


def _shared(rows: pd.DataFrame, by: list[str]) -> bool:
    """Whether most rows have values in common with at least `ALIKE` rows."""
    sizes = rows.groupby(by, sort=False)["prompt_id"].transform("size")
    return bool((sizes >= ALIKE).mean() >= COVERED)


def _most_frequent(rows: pd.DataFrame, by: list[str]) -> pd.Series:
    usual = rows.groupby(by, sort=False)["answer"].transform(lambda answers: answers.mode().iloc[0])
    return usual.astype(object)


def _at_usual_place(rows: pd.DataFrame) -> tuple[pd.Series | None, int | None]:
    """The option at the most frequent place; None if the correct answer is always there."""
    choices = zip(rows["options"], rows["answer"], strict=True)
    places = [names.index(answer) if answer in names else -1 for names, answer in choices]
    place = int(pd.Series(places).mode().iloc[0])
    usual = pd.Series([names[place : place + 1] for names in rows["options"]], rows.index).str[0]
    if place < 0 or (usual == rows["gold"]).mean() > MOSTLY:
        return None, None
    return usual, place


def _everywhere(
    rows: pd.DataFrame, usual: pd.Series, *, place: int | None, within: bool
) -> pd.Series:
    """The usual answer to each prompt, also to those without an answer; empty if there is none."""
    if place is not None:
        at_place = [names[place] if place < len(names) else "" for names in rows["options"]]
        return pd.Series(at_place, rows.index, dtype=object)
    by = ["phrasing", UNORDERED] if within else [UNORDERED]
    heard = rows.loc[usual.index]
    usual_of = dict(zip(zip(*(heard[name] for name in by), strict=True), usual, strict=True))
    keys = zip(*(rows[name] for name in by), strict=True)
    return pd.Series([usual_of.get(key, "") for key in keys], rows.index, dtype=object)


def _silence_tells(rows: pd.DataFrame, usual: pd.Series) -> bool:
    """Whether silence is more or less frequent where the usual answer is right (Fisher's test)."""
    silent, expected = rows["answer"] == "", rows["gold"] == usual
    if not silent.any():
        return False
    from scipy.stats import fisher_exact  # a second of imports, which most evaluations need not

    counts = [[int((a & b).sum()) for b in (expected, ~expected)] for a in (silent, ~silent)]
    return bool(fisher_exact(counts).pvalue <= TELLING)


def _scores(rows: pd.DataFrame, answer: pd.Series) -> dict[str, float]:
    judged = rows[["prompt_id"]].assign(correct=answer == rows["gold"])
    right, weights = judged["correct"].to_numpy(dtype=float), rows["weight"].to_numpy(dtype=float)
    shares = accuracies(judged, rows).drop("prompts").astype(float)
    scores = {"accuracy": float(np.average(right, weights=weights)), **shares.to_dict()}
    return {str(name): score for name, score in scores.items() if not math.isnan(score)}
