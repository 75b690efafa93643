"""The measurements of a study of RuleBench: every text with its setting and how it was judged.

A text that answers at once names no rule, but each rule of kinship and StringGame says what it
would answer. An answer that a noise rule gives is a triggering error, any other wrong one an
execution error. Rules of the other sets do not give their answers in a form that can be compared.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import pandas as pd

from interp.errors import UserError
from interp.results.attributions import Attributions
from interp.runs.folder import RunFolder
from interp.studies.folder import StudyFolder
from interp_experiments.rulebench.items import CLUTRR, KINSHIP, STRING_GAME
from interp_experiments.rulebench.reading import behaviour
from interp_experiments.rulebench.string_game import StringRule, string_rules

STAGES = ("direct", "demonstrated", "thought")
"""Answers at once, without and with demonstrations; and answers after a chain of thought."""

ATTRIBUTION = "attribution"
"""The stage of attributions: which rule they find in answers at once, with few rules."""

SETTING = ("set", "rules", "form", "shots", "thought", "version")
"""Factors that say how a question was asked."""

RULE = "rule"
"""The factor that names the golden rule: questions with the same one are a cluster."""

_PROMPTS = ["prompt_id", "pair_id", RULE, "gold", "golden_place", *SETTING]
_TEXTS = ["model", "prompt_id", "completion", "outcome", "correct", "error"]

RIGHT, TRIGGERING, EXECUTION = "right", "triggering error", "execution error"

OUTCOMES = (RIGHT, TRIGGERING, EXECUTION, "wrong", "no answer")
"""A wrong answer is only "wrong" if the set's rules do not say their answers."""

_CONCLUSION = re.compile(r"\bis the ([\w-]+) of \w+\W*$")


@dataclass(frozen=True)
class Results:
    """The texts of a study."""

    texts: pd.DataFrame
    """One row per model and prompt that was measured: model, prompt_id, pair_id (the question),
    rule (its golden rule), the factors of `SETTING`, gold, golden_place, completion, outcome,
    correct (bool)."""
    failed: pd.DataFrame
    """The prompts that could not be measured, with the same columns and error."""
    found: pd.DataFrame = field(default_factory=pd.DataFrame)
    """How attribution methods rank the golden rule, prompt by prompt: the columns of
    `interp.analysis.segments.finds`, set, and outcome (of `OUTCOMES`). Empty if nothing
    was attributed."""
    prompts: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The prompts tables of all settings, one after the other."""
    answers: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The answers read from the texts: one row per model and prompt."""

    @property
    def models(self) -> list[str]:
        """The models that were measured."""
        return list(pd.concat([self.texts, self.failed])["model"].unique())

    def behaviours(self) -> pd.DataFrame:
        """The texts that should name one of a few rules, with a column behaviour.

        If a set has a counterfactual version, only its texts, as in the paper.
        """
        rows = self.texts
        rows = rows[(rows["thought"] == "yes") & (rows["rules"] == "few")]
        has_other = rows[rows["version"] == "counterfactual"]["set"].unique()
        rows = rows[(rows["version"] == "counterfactual") | ~rows["set"].isin(has_other)]
        found = [
            behaviour(text, correct=correct, golden_place=int(place))
            for text, correct, place in zip(
                rows["completion"], rows["correct"], rows["golden_place"], strict=True
            )
        ]
        return rows.assign(behaviour=pd.Series(found, index=rows.index, dtype=str))


def read_results(study: StudyFolder) -> Results:
    """The results of a study, finished or not.

    Raises:
        UserError: nothing was measured yet, or an earlier version measured prompts that lack a
            factor.
    """
    runs = [run for stage in STAGES if (run := study.runs.get(stage)) and run.tables()]
    if not runs:
        raise UserError(f"{study.folder} has no texts yet; run the study's command again to resume")
    rows = pd.concat([_texts(run) for run in runs], ignore_index=True)
    failed = rows["error"] != ""
    texts = rows[~failed].drop(columns="error").astype({"correct": bool})
    return Results(
        texts.reset_index(drop=True),
        rows[failed].reset_index(drop=True),
        _found(study),
        prompts=_joined(runs, "prompts"),
        answers=_joined(runs, "completions", ["model", "prompt_id", "answer", "correct", "error"]),
    )


def _joined(
    runs: Sequence[RunFolder], table: str, columns: Sequence[str] | None = None
) -> pd.DataFrame:
    return pd.concat([run.table(table, columns) for run in runs], ignore_index=True)


def _found(study: StudyFolder) -> pd.DataFrame:
    """How methods rank the golden rule, with the outcome of the text after the same prompt."""
    attributed, answered = (study.runs.get(name) for name in (ATTRIBUTION, "direct"))
    if attributed is None or answered is None or not answered.tables():
        return pd.DataFrame()
    found = Attributions.of(attributed).finds()
    if found.empty:
        return found
    prompts = attributed.table("prompts").set_index("prompt_id")
    texts = answered.table("completions", ["model", "prompt_id", "answer", "correct", "error"])
    texts = texts[(texts["error"] == "") & texts["prompt_id"].isin(prompts.index)]
    outcomes = [
        followed(prompts.loc[id_], answer, correct=bool(correct))
        for id_, answer, correct in zip(
            texts["prompt_id"], texts["answer"].astype(str), texts["correct"], strict=True
        )
    ]
    judged = texts[["model", "prompt_id"]].assign(
        set=texts["prompt_id"].map(prompts["set"]), outcome=outcomes
    )
    return found.merge(judged, on=["model", "prompt_id"])


def _texts(run: RunFolder) -> pd.DataFrame:
    prompts = run.table("prompts")
    if missing := [name for name in _PROMPTS if name not in prompts]:
        raise UserError(
            f"the prompts in {run.folder} lack {', '.join(missing)}: an earlier version of interp "
            "measured them; run the study again with another --out"
        )
    return run.table("completions", _TEXTS).merge(prompts[_PROMPTS], on="prompt_id")


def followed(prompt: pd.Series, answer: str, *, correct: bool) -> str:
    """One of `OUTCOMES`.

    Args:
        prompt: its row of the prompts table.
        answer: what the parser found in the text; empty if it found nothing.
        correct: whether the answer is the golden rule's.
    """
    if correct:
        return RIGHT
    if not answer:
        return "no answer"
    answers = [_answer(prompt, rule) for rule in _noise(prompt)]
    if None in answers:
        return "wrong"
    return TRIGGERING if answer in answers else EXECUTION


def _noise(prompt: pd.Series) -> Iterator[str]:
    """The texts of the noise rules."""
    number = 1
    while pd.notna(start := prompt.get(f"noise{number}_start")):
        yield prompt["text"][int(start) : int(prompt[f"noise{number}_end"])]
        number += 1


def _answer(prompt: pd.Series, rule: str) -> str | None:
    """The answer that a rule leads to, whether it fits or not; None if it is not known.

    It is "None" for a rule of StringGame without a number for the string.
    """
    if prompt["set"] in (KINSHIP.name, CLUTRR.name):
        found = _CONCLUSION.search(rule)
        return found[1] if found else None
    if prompt["set"] == STRING_GAME.name:
        known = _by_text().get(rule)
        return None if known is None else str(known.action.result(prompt["string"]))
    return None


@cache
def _by_text() -> Mapping[str, StringRule]:
    return {rule.rule.natural: rule for rule in string_rules().values()}
