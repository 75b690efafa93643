"""What a study of RuleBench has measured: every text with its setting and how it was judged."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from interp.errors import UserError
from interp.results.attributions import Attributions
from interp.runs.folder import RunFolder
from interp.studies.folder import StudyFolder
from interp_experiments.rulebench.behaviour import behaviour
from interp_experiments.rulebench.followed import followed

STAGES = ("direct", "demonstrated", "thought")
"""Answers at once, without and with demonstrations; and answers after a chain of thought."""

ATTRIBUTION = "attribution"
"""Which rule is looked at when an answer is given at once, with few rules."""

SETTING = ("set", "rules", "form", "shots", "thought", "version")
"""Factors that say how a question was asked."""

RULE = "rule"
"""The factor that names the golden rule: questions with the same one are a cluster."""

_PROMPTS = ["prompt_id", "pair_id", RULE, "gold", "golden_place", *SETTING]
_TEXTS = ["model", "prompt_id", "completion", "outcome", "correct", "error"]


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
    `interp.analysis.decisive.finds`, set, and outcome (of `followed.OUTCOMES`). Empty if nothing
    was attributed."""
    prompts: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The prompts tables of all settings, one after the other."""
    answers: pd.DataFrame = field(default_factory=pd.DataFrame)
    """What was read from each text: one row per model and prompt."""

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
    """How methods rank the golden rule, with the outcome of the text behind the same prompt."""
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
    return run.table("completions", _TEXTS).merge(run.table("prompts")[_PROMPTS], on="prompt_id")
