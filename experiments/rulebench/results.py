"""What a study of RuleBench has measured: every text with its setting and how it was judged."""

from dataclasses import dataclass

import pandas as pd

from interp.errors import UserError
from interp.runs.folder import RunFolder
from interp.studies.folder import StudyFolder
from interp_experiments.rulebench.behaviour import behaviour

STAGES = ("direct", "demonstrated", "thought")
"""Answers at once, without and with demonstrations; and answers after a chain of thought."""

SETTING = ("set", "rules", "form", "shots", "thought", "version")
"""Factors that say how a question was asked."""

_PROMPTS = ["prompt_id", "gold", "golden_place", *SETTING]
_TEXTS = ["model", "prompt_id", "completion", "outcome", "correct", "error"]


@dataclass(frozen=True)
class Results:
    """The texts of a study."""

    texts: pd.DataFrame
    """One row per model and prompt that was measured: model, prompt_id, the factors of `SETTING`,
    gold, golden_place, completion, outcome, correct (bool)."""
    failed: pd.DataFrame
    """The prompts that could not be measured, with the same columns and error."""

    @property
    def models(self) -> list[str]:
        """The models that were measured."""
        return list(pd.concat([self.texts, self.failed])["model"].unique())

    def behaviours(self) -> pd.DataFrame:
        """The texts in which a rule was to be named, one of a few, with a column behaviour.

        Counterfactual ones where a set has them, as in the paper; the others of other sets.
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
        UserError: nothing was measured yet.
    """
    runs = [run for stage in STAGES if (run := study.runs.get(stage)) and run.tables()]
    if not runs:
        raise UserError(f"{study.folder} has no texts yet; run the study's command again to resume")
    rows = pd.concat([_texts(run) for run in runs], ignore_index=True)
    failed = rows["error"] != ""
    texts = rows[~failed].drop(columns="error").astype({"correct": bool})
    return Results(texts.reset_index(drop=True), rows[failed].reset_index(drop=True))


def _texts(run: RunFolder) -> pd.DataFrame:
    return run.table("completions", _TEXTS).merge(run.table("prompts")[_PROMPTS], on="prompt_id")
