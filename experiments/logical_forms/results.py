"""What a study of LogicalForms has measured: the scores of each set of questions with factors."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from interp.analysis.accuracy import whole_pairs
from interp.errors import UserError
from interp.models.organisms import PREFIX, organism_card
from interp.runs.folder import RunFolder
from interp.studies.folder import StudyFolder
from interp_experiments.logical_forms.forms import ARGUMENT_FORMS, MODALITIES
from interp_experiments.logical_forms.prompts import YES

STAGES = ("questions", "nonsense", "introduction", "distribution")
"""Sets of questions: the 24 forms, their nonsense mirror, and the two of Appendix C."""

MIN_ANSWERED = 0.5
"""Least mean probability of Yes and No together with which a model counts as answering."""

_FACTORS = [
    "prompt_id",
    "pair_id",
    "side",
    "modality",
    "argument_form",
    "schema",
    "formula",
    "gold",
]
_SHARE = "relative_probability"
_SCORES = ["soft_accuracy", "perplexity"]


@dataclass(frozen=True)
class Results:
    """One row per model and question, by set of questions.

    Columns are model, the factors of the question, form (such as "box-vL-theorem"),
    relative_positive, soft_accuracy, perplexity, answered (probability of Yes and No together) and
    relative_perplexity.
    """

    scores: dict[str, pd.DataFrame]
    """Set of questions to its rows."""
    vocabulary: dict[str, int]
    """Model to the size of its vocabulary: the perplexity of guessing."""
    answers: pd.DataFrame
    """The answers table of the main set: one row per model and question."""

    @property
    def models(self) -> list[str]:
        """The models that were measured."""
        return list(self.scores["questions"]["model"].unique())

    @property
    def competent(self) -> list[str]:
        """The models that mixed models are fitted to.

        They answer the questions of the main set by Yes or No, and read them better than guessing
        does: the mean perplexity is below the size of the vocabulary.
        """
        means = self.scores["questions"].groupby("model")[["answered", "perplexity"]].mean()
        return [
            model
            for model in self.models
            if means["answered"].loc[model] >= MIN_ANSWERED
            and means["perplexity"].loc[model] < self.vocabulary[model]
        ]

    def pooled(self, stage: str, *, valid: bool = False) -> pd.DataFrame:
        """The rows that mixed models are fitted to.

        Args:
            stage: a set of questions.
            valid: only questions whose gold answer is Yes.
        """
        rows = self.scores[stage]
        rows = rows[rows["model"].isin(self.competent)]
        return rows[rows["gold"] == "Yes"] if valid else rows


def read_results(study: StudyFolder) -> Results:
    """The results of a study, finished or not; pairs of which a side is missing are left out.

    Raises:
        UserError: a stage in which nothing was measured yet.
    """
    scores = {stage: _scores(study, stage) for stage in STAGES}
    records = study.runs["questions"].models()
    return Results(
        scores,
        vocabulary={name: record.vocabulary for name, record in records.items()},
        answers=study.runs["questions"].table("answers", ["model", "answer", "error"]),
    )


def planted(results: Results) -> dict[str, pd.DataFrame]:
    """The forms that were planted in packaged organisms of this system, by model."""
    cards = {name: organism_card(name) for name in results.models if name.startswith(PREFIX)}
    return {
        name: pd.DataFrame(card["forms"])[["form", "planted_yes"]]
        for name, card in cards.items()
        if card["system"] == "logical-forms"
    }


def _scores(study: StudyFolder, stage: str) -> pd.DataFrame:
    run = study.runs.get(stage)
    if run is None or not run.tables():
        raise UserError(
            f"{study.folder} has nothing of the stage {stage!r} yet; run the study's command "
            "again to resume"
        )
    answers = run.table("answers")
    prompts = whole_pairs(run.table("prompts"), answers)[_FACTORS]
    scores = run.table("soft_answers", ["model", "prompt_id", *_SCORES])
    rows = scores.merge(_options(run), on=["model", "prompt_id"], how="left")
    rows = rows.merge(prompts, on="prompt_id")
    rows["form"] = rows["prompt_id"].str.partition("/")[2]
    rows["modality"] = pd.Categorical(rows["modality"], MODALITIES)
    if set(rows["argument_form"]) <= set(ARGUMENT_FORMS):
        rows["argument_form"] = pd.Categorical(rows["argument_form"], list(ARGUMENT_FORMS))
    rows["relative_perplexity"] = rows.groupby("model")["perplexity"].transform(_standardised)
    return rows


def _options(run: RunFolder) -> pd.DataFrame:
    """One row per model and question: relative_positive, and answered."""
    key = ["model", "prompt_id"]
    options = run.table("option_probabilities", [*key, "option", "probability", _SHARE])
    yes = options[options["option"] == YES.name].set_index(key)[_SHARE].rename("relative_positive")
    answered = options.groupby(key)["probability"].sum().rename("answered")
    return pd.concat([yes, answered], axis=1).reset_index()


def _standardised(values: pd.Series) -> pd.Series:
    """Standard deviations from the mean; zero where nothing varies."""
    sd = float(np.nan_to_num(values.std()))
    return (values - values.mean()) / (sd or 1.0)
