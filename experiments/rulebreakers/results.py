"""The joined tables of a study, without prompts about entity pairs that are not completed."""

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from interp import Attributions, StudyFolder, UserError
from interp.extend import InFolder, shortened
from interp.extend.cautions import Caution, cautions_on, ordered
from interp.extend.results import pairs_of, whole_pairs
from interp_experiments.rulebreakers.prompts import SIDES
from interp_probes.facts import show

STAGES = ("answers", "familiarity", "knowledge", "residuals")

CLUSTER = "entity_pair"

WEIGHT = "weight"
"""Column: the number of prompts in the data set that a prompt represents."""

ENTITY = ["category", "entity_b"]
"""Each B has only one A."""


@dataclass(frozen=True)
class Results:
    """The tables of a study: one row per prompt, or per model and prompt, unless said otherwise."""

    models: tuple[str, ...]
    drawn: pd.DataFrame
    """Complete pairs; also question_verb and entity_pair, such as "Stockholm (Sweden)", of both
    sides."""
    prompts: pd.DataFrame
    """The drawn prompts, without those about excluded entity pairs."""
    answers: pd.DataFrame
    ratios: pd.DataFrame
    """Score of premise 2 divided by that of premise 1, by model, prompt and method."""
    options: pd.DataFrame
    familiarity: pd.DataFrame
    """By model and entity pair; shared_with counts other answers with the same first token."""
    unknown: pd.DataFrame
    """Entity pairs that a model failed to complete: excluded, the models that failed,
    completions."""
    residuals: tuple[Path, ...]
    """Files of the models that have finished this stage."""
    probed: pd.DataFrame
    """Without prompts about excluded entity pairs."""
    probed_answers: pd.DataFrame
    worded: pd.DataFrame = field(default_factory=pd.DataFrame)
    """`KnownFacts.by_wording`."""
    cautions: tuple[Caution, ...] = ()

    def judged(self, *factors: str) -> pd.DataFrame:
        """One row per model and pair: entity_pair, weight, factors, which sides are right, paired.

        A pair is `paired` if both of its sides are answered correctly.
        """
        return pairs_of(self.answers, self.prompts, keep=[CLUSTER, WEIGHT, *factors], sides=SIDES)

    def pairs(self) -> pd.DataFrame:
        """One row per model and geographical prompt pair: city, weight, familiarity, group.

        `group` is "recognized" if both sides were answered correctly (Section 6), else "failed".
        Columns that older folders lack are NaN.
        """
        pairs = self.judged()
        pairs["group"] = pairs["paired"].map({True: "recognized", False: "failed"})
        measures = ["familiarity", "whole_name", "after_echo", "echoes", "shared_with"]
        cities = self.cities().reindex(columns=["model", CLUSTER, *measures])
        return pairs.merge(cities, on=["model", CLUSTER])

    def cities(self) -> pd.DataFrame:
        """The familiarity of the cities asked about, which every model completes."""
        asked = self.prompts[self.prompts["entity_group"].isin(show.FILTERED_GROUPS)]
        return self.familiarity[self.familiarity["entity_pair"].isin(asked["entity_pair"])]


def read_results(study: StudyFolder) -> Results:
    """The results of a study, finished or not.

    For all models, the prompts, answers and ratios exclude the entity pairs that any model fails to
    complete (Section 4.1) and the pairs with a side that has not been measured yet.

    Raises:
        UserError: a stage has no measurements, or no pair is completed by every model.
    """
    study.require(*STAGES)
    asked, familiar, completed, probed = (study.runs[stage] for stage in STAGES)
    answers, facts = asked.table("answers"), familiar.table("prompts")
    if (answers["error"] != "").all():
        raise UserError(
            f"no prompt in {study.folder} could be measured; the most frequent error: "
            f"{shortened(answers['error'].mode()[0])}"
        )
    facts["entity_pair"] = facts["entity_b"] + " (" + facts["entity_a"] + ")"
    known_facts = show.KnownFacts.of(completed)
    unknown = show.excluded(known_facts.asked, facts)
    drawn = whole_pairs(asked.table("prompts"), answers)
    drawn = drawn.merge(facts[[*ENTITY, "entity_pair"]], on=ENTITY)
    if drawn.empty:
        raise UserError(
            f"{study.folder} has no pair that was measured for every model and whose entities have "
            "facts; rerun the study's command to resume"
        )
    drawn["question_verb"] = drawn["phrasing"].str.partition("-")[0]
    prompts = _without(drawn, unknown)
    if prompts.empty:
        raise UserError(
            f"no pair in {study.folder} is left to report on: {unknown['excluded'].sum():,} entity "
            "pairs were excluded because at least one model does not complete them as asked "
            "(knowledge/ has the completions); use models that complete the facts"
        )
    about = facts[["prompt_id", "entity_group", "entity_pair", "entity_a", "entity_b"]]
    given, options = _of(answers, prompts), _of(asked.table("option_probabilities"), prompts)
    familiarity = show.flag_shared(familiar.table("familiarity"), facts)
    models = InFolder(asked).facts()
    cautions = cautions_on(prompts, answers=given, options=options, facts=models, cluster=CLUSTER)
    return Results(
        models=tuple(answers["model"].unique()),
        drawn=drawn,
        prompts=prompts,
        answers=given,
        ratios=_of(Attributions.of(asked).ratios(), prompts),
        options=options,
        familiarity=familiarity.merge(about, on="prompt_id").drop(columns="prompt_id"),
        unknown=unknown.drop(columns=["prompt_id", "entity_group"]),
        residuals=tuple(probed.files("residuals", probed.finished_models())),
        probed=_without(probed.table("prompts"), unknown),
        probed_answers=probed.table("answers"),
        worded=known_facts.by_wording,
        cautions=ordered([*cautions, *show.leading(show.in_wordings(familiarity))]),
    )


def _without(prompts: pd.DataFrame, unknown: pd.DataFrame) -> pd.DataFrame:
    left_out = unknown.loc[unknown["excluded"], ENTITY].assign(left_out=True)
    flagged = prompts.merge(left_out, on=ENTITY, how="left")
    return flagged[flagged["left_out"].isna()].drop(columns="left_out").reset_index(drop=True)


def _of(rows: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["prompt_id"].isin(prompts["prompt_id"])].reset_index(drop=True)
