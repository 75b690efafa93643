"""The measurements of a study of RobustLR: answers by stage, and the scores of theories.

The authors' code scores every theory (a base and its variants) by scikit-learn's weighted F1,
rounds the score to two decimals, and averages over theories. Here scores are not rounded;
`f1_rounded` is the authors' number. A slice of the data (a group, a label) is also scored theory by
theory.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from interp import Attributions, StudyFolder
from interp.extend import InFolder, RunFolder
from interp.extend.cautions import Caution, cautions_on, said_outside
from interp.extend.estimates import CLUSTER, NUMBER, TEXT, Share, Table, column, estimate
from interp.extend.results import notes_without_answer, whole_pairs
from interp_experiments.robustlr.language import LABELS, Verdict

SETS, DISTRACTORS = "sets", "distractors"
"""Stages of the evaluation sets, without and with distractors."""

BARE, SHORT, IN_DOMAIN = "bare", "short", "in-domain"
"""Stages of the test split of All, by the sentences that theories keep: those that decide a
statement, a few more, or all."""


@dataclass(frozen=True)
class Results:
    """One row per model and instance, by stage.

    Columns are model, prompt_id, pair_id (the theory), side (the version), set, group, base_label,
    gold and answer (empty if the most probable token is not an answer, or after an error).
    """

    rows: Mapping[str, pd.DataFrame]
    notes: Sequence[str]
    """What to know of prompts without an answer or with an error, both of which count as wrong."""
    found: pd.DataFrame = field(default_factory=pd.DataFrame)
    """How methods rank the proof in short theories: the columns of `Attributions.finds`, pair_id
    (the theory), gold and outcome (right or wrong). Empty if nothing was attributed."""
    prompts: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Of the evaluation sets, with the theories that all models answered in full."""
    answers: pd.DataFrame = field(default_factory=pd.DataFrame)
    options: pd.DataFrame = field(default_factory=pd.DataFrame)
    places: Mapping[str, str] = field(default_factory=dict)
    cautions: tuple[Caution, ...] = ()

    @property
    def models(self) -> list[str]:
        """The models that were measured."""
        return list(self.rows[SETS]["model"].unique())


def read_results(study: StudyFolder) -> Results:
    """The results for theories that all models have answered in full (UserError: none yet)."""
    begun = {stage: run for stage, run in study.runs.items() if run.tables()}
    study.require(SETS)
    rows = {
        stage: answered(run.table("prompts"), run.table("answers")) for stage, run in begun.items()
    }
    answers = begun[SETS].table("answers")
    prompts = whole_pairs(begun[SETS].table("prompts"), answers)
    measured = InFolder(begun[SETS])
    options = measured.table("option_probabilities")
    cautions = cautions_on(prompts, answers=answers, options=options, facts=measured.facts())
    said = said_outside(cautions)
    notes = [
        f"{stage}: {note}" for stage in rows for note in _notes(begun[stage].table("answers"), said)
    ]
    proofs, places = _found(begun, rows), study.places()
    return Results(rows, notes, proofs, prompts, answers, options, places, cautions)


def _found(begun: Mapping[str, RunFolder], rows: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """How the methods rank the proof, and whether the answer was right."""
    if SHORT not in begun:
        return pd.DataFrame()
    premises = Attributions.of(begun[SHORT]).finds()
    if premises.empty:
        return premises
    judged = rows[SHORT][["model", "prompt_id", "pair_id", "gold", "answer"]]
    right = judged["answer"] == judged["gold"]
    outcomes = judged.assign(outcome=right.map({True: "right", False: "wrong"}))
    return premises.merge(outcomes.drop(columns="answer"), on=["model", "prompt_id"])


def answered(prompts: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """The rows of a stage (`Results`), made from its prompts and its answers table."""
    columns = ["prompt_id", "pair_id", "side", "set", "group", "base_label", "gold"]
    whole = whole_pairs(prompts, answers)[columns]
    rows = answers[["model", "prompt_id", "answer"]].merge(whole, on="prompt_id")
    return rows.assign(answer=rows["answer"].fillna(""))


def _notes(answers: pd.DataFrame, said: Collection[str]) -> list[str]:
    """Lines on prompts without an answer, unless a caution says it, and on errors."""
    failed = (answers["error"] != "").groupby(answers["model"], sort=False).mean()
    errors = [
        f"{model}: {share:.1%} of the prompts could not be measured and count as wrong"
        for model, share in failed[failed > 0].items()
    ]
    return notes_without_answer(answers, said=said) + errors


OF_BASE = ("always the base's label", "always the base's negated")
"""Guesses that use only the label of each theory's base."""

BASELINES = (*(f"always {label}" for label in LABELS), *OF_BASE)
"""Constant guesses: the three labels, then those of `OF_BASE`."""


def weighted_f1(
    gold: Sequence[str], answer: Sequence[str], theory: Int[np.ndarray, " instances"]
) -> Float[np.ndarray, " theories"]:
    """The weighted F1 of each theory: its labels' mean F1, weighted by their shares of `gold`.

    `theory` is the index of each instance's theory, from 0. Anything but a label is a wrong answer.
    """
    right, said = np.asarray(gold, dtype=object), np.asarray(answer, dtype=object)
    theories = int(theory.max(initial=-1)) + 1
    total = np.zeros(theories)
    for label in LABELS:
        of_label, called = right == label, said == label
        support, predicted, hits = (
            np.bincount(theory, weights=which, minlength=theories)
            for which in (of_label, called, of_label & called)
        )
        # 2 precision recall / (precision + recall); a label without correct answers has no weight.
        total += support * 2 * hits / np.maximum(support + predicted, 1)
    return total / np.bincount(theory, minlength=theories)


SCORES = Table(
    name="scores",
    title="Every score of every set, with intervals",
    text="Scores of measured models and of guesses, averaged over theories with their variants.",
    by=["source", "model", "set"],
    measured="answers",
    numbers=[
        Share("f1", "weighted F1 of the answers to a theory and its variants", "share"),
        Share("consistency", "theories with every answer right", "share", of="consistent"),
    ],
    trials="theories",
    key="pair_id",
    more=[
        column("source", TEXT, "measured, or baseline for guesses without a model"),
        column("set", TEXT, "the evaluation set"),
        column(
            "f1_rounded",
            NUMBER,
            "f1 if each theory's is rounded before averaging, as in the authors' code",
            "share",
        ),
    ],
)
"""Weighted F1 and consistency; other tables have further columns in `by`."""


def theory_scores(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Trials of `SCORES`, one row per combination of `by` and theory.

    `rows` has model, pair_id, gold, answer and the columns of `by` of each model and instance.
    """
    keys = list(dict.fromkeys([*by, "pair_id"]))
    grouped = rows.groupby(keys, sort=False, observed=True)
    scores = grouped.size().reset_index()[keys]
    number = grouped.ngroup().to_numpy()
    f1 = weighted_f1(rows["gold"].tolist(), rows["answer"].tolist(), number)
    wrong = np.bincount(number, weights=(rows["gold"] != rows["answer"]), minlength=len(scores))
    order = grouped.ngroup().drop_duplicates().to_numpy()
    scores = scores.assign(f1=f1[order], consistent=(wrong == 0)[order])
    return scores.assign(**{CLUSTER: pd.factorize(scores["pair_id"])[0]})


def score_table(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """One row per combination of `by`: `SCORES`, means over theories with 95% intervals.

    benchmarks/rates.md has the coverage of the intervals.
    """
    theories = theory_scores(rows, by)
    table = estimate(replace(SCORES, by=by), theories)
    rounded = theories.assign(f1=theories["f1"].round(2)).groupby(list(by), sort=False)["f1"].mean()
    table.insert(len(by) + 3, "f1_rounded", rounded.round(2).to_numpy())
    return table


def with_baselines(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows, followed by the rows of constant guesses; `source` is "measured" or "baseline"."""
    prompts = rows.drop_duplicates("prompt_id")
    base = prompts["base_label"]
    negated = base.map(lambda label: Verdict(label).negated.value)
    answers: list[str | pd.Series] = [*LABELS, base, negated]
    guesses = [
        prompts.assign(model=name, answer=answer, source="baseline")
        for name, answer in zip(BASELINES, answers, strict=True)
    ]
    return pd.concat([rows.assign(source="measured"), *guesses], ignore_index=True)
