"""What a study of RobustLR has measured: the answers of each stage beside the correct ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from interp.analysis.accuracy import notes_without_answer, whole_pairs
from interp.errors import UserError
from interp.results.attributions import Attributions
from interp.runs.folder import RunFolder
from interp.studies.folder import StudyFolder

SETS, DISTRACTORS = "sets", "distractors"
"""Stages: the evaluation sets without distractors and with them."""

BARE, SHORT, IN_DOMAIN = "bare", "short", "in-domain"
"""Stages: the test split of All with what decides a statement, with few other sentences, whole."""


@dataclass(frozen=True)
class Results:
    """One row per model and instance, by stage.

    Columns are model, prompt_id, pair_id (the theory), side (the version), set, group, base_label,
    gold and answer (empty where the likeliest token is no answer, or where there is an error).
    """

    rows: Mapping[str, pd.DataFrame]
    notes: Sequence[str]
    """A line on the prompts of a model that have no answer, or an error; they count as wrong."""
    found: pd.DataFrame = field(default_factory=pd.DataFrame)
    """How attribution methods rank the proof of short theories, prompt by prompt: the columns of
    `interp.analysis.decisive.finds`, gold and outcome (right or wrong). Empty if none was."""
    prompts: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The prompts table of the evaluation sets, theories whole."""
    answers: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Their answers table: one row per model and instance."""

    @property
    def models(self) -> list[str]:
        """The models that were measured."""
        return list(self.rows[SETS]["model"].unique())


def read_results(study: StudyFolder) -> Results:
    """The results of a study, without theories that some model has not answered in full.

    Raises:
        UserError: the evaluation sets were not begun.
    """
    begun = {stage: run for stage, run in study.runs.items() if run.tables()}
    if SETS not in begun:
        raise UserError(
            f"{study.folder} has nothing of the stage {SETS!r} yet; rerun the study's command to "
            "resume"
        )
    rows = {
        stage: answered(run.table("prompts"), run.table("answers")) for stage, run in begun.items()
    }
    notes = [f"{stage}: {note}" for stage in rows for note in _notes(begun[stage].table("answers"))]
    answers = begun[SETS].table("answers")
    prompts = whole_pairs(begun[SETS].table("prompts"), answers)
    return Results(rows, notes, _found(begun, rows), prompts, answers)


def _found(begun: Mapping[str, RunFolder], rows: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """How methods rank the proof, with the outcome of the answer."""
    if SHORT not in begun:
        return pd.DataFrame()
    found = Attributions.of(begun[SHORT]).finds()
    if found.empty:
        return found
    judged = rows[SHORT][["model", "prompt_id", "gold", "answer"]]
    right = judged["answer"] == judged["gold"]
    outcomes = judged.assign(outcome=right.map({True: "right", False: "wrong"}))
    return found.merge(outcomes.drop(columns="answer"), on=["model", "prompt_id"])


def answered(prompts: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """The rows of a stage, from its prompts and its answers table."""
    columns = ["prompt_id", "pair_id", "side", "set", "group", "base_label", "gold"]
    whole = whole_pairs(prompts, answers)[columns]
    rows = answers[["model", "prompt_id", "answer"]].merge(whole, on="prompt_id")
    return rows.assign(answer=rows["answer"].fillna(""))


def _notes(answers: pd.DataFrame) -> list[str]:
    failed = (answers["error"] != "").groupby(answers["model"], sort=False).mean()
    errors = [
        f"{model}: {share:.1%} of the prompts could not be measured and count as wrong"
        for model, share in failed[failed > 0].items()
    ]
    return notes_without_answer(answers) + errors
