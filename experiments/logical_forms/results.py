"""The measurements of a study of LogicalForms, by set of questions, and means with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from interp import StudyFolder
from interp.extend import InFolder, RunFolder
from interp.extend.cautions import LEFT_OUT, Caution, cautions_on, ordered
from interp.extend.page import stacked
from interp.extend.results import whole_pairs
from interp.extend.statistics import UPPER
from interp_experiments.logical_forms.forms import ARGUMENT_FORMS, MODALITIES
from interp_experiments.logical_forms.system import YES

CLUSTER = "interpretation"
"""The factor that defines clusters: questions under one interpretation share their words."""

STAGES = ("questions", "nonsense", "introduction", "distribution")
"""Sets of questions: the 24 forms, their nonsense mirror, and the two sets in Appendix C."""

SET = "set"
"""The factor that names the set of questions."""

MIN_ANSWERED = 0.5
"""Minimum mean probability of Yes and No together for a model to count as answering."""

SHARES = ("soft_accuracy", "relative_positive")
"""Scores from 0 to 1; the intervals of their means are cut at 0 and 1."""


@dataclass(frozen=True)
class Results:
    """One row per model and question, by set of questions.

    Columns are model, the factors of the question, form (such as "box-vL-theorem"),
    relative_positive, soft_accuracy, hard_accuracy (1 if the most probable token is the correct
    answer, else 0), perplexity, answered (probability of Yes and No together) and
    relative_perplexity (in standard deviations from the mean of the model's own questions).
    """

    scores: dict[str, pd.DataFrame]
    vocabulary: dict[str, int]
    """The size of each model's vocabulary, which is the perplexity of a uniform guess."""
    answers: pd.DataFrame
    """The answers table of the main set."""
    prompts: pd.DataFrame
    """Of all sets, stacked, with whole pairs; ids begin with the value of `set`."""
    answers_of_all: pd.DataFrame
    """The answers tables of all sets."""
    found: tuple[Caution, ...] = ()
    """The cautions about the answers to the main set."""

    @property
    def models(self) -> list[str]:
        """The models that were measured."""
        return list(self.scores["questions"]["model"].unique())

    @property
    def competent(self) -> list[str]:
        """The models to which mixed models are fitted: those for which `incompetence` is empty."""
        return [model for model, why in self.incompetence.items() if not why]

    @cached_property
    def incompetence(self) -> dict[str, str]:
        """By model, why its scores say nothing about logical forms; empty for competent models."""
        rows = self.scores["questions"].groupby("model")
        shares, perplexities = rows["answered"].mean(), typical_perplexity(rows)
        incompetence = {}
        for model in self.models:
            answered, perplexity, guess = shares[model], perplexities[model], self.vocabulary[model]
            silent = f"Yes and No together have a probability of {answered:.2g}"
            lost = f"its perplexity is {perplexity:,.0f}; that of guessing is {guess:,}"
            reasons = {silent: answered < MIN_ANSWERED, lost: perplexity >= guess}
            incompetence[model] = "; ".join(why for why, holds in reasons.items() if holds)
        return incompetence

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """The cautions about the answers, and about the models whose numbers are left out."""
        left_out = (
            Caution(LEFT_OUT, model, f"its numbers are left out: {why}.", voids=True)
            for model, why in self.incompetence.items()
            if why
        )
        return ordered([*self.found, *left_out])

    def reading(self, stage: str) -> list[str]:
        """The competent models that also read another set, by the criterion of `incompetence`."""
        perplexities = typical_perplexity(self.scores[stage].groupby("model"))
        return [
            name
            for name in self.competent
            if perplexities.get(name, np.inf) < self.vocabulary[name]
        ]

    def pooled(self, stage: str, *, valid: bool = False) -> pd.DataFrame:
        """The rows of the competent models; if `valid`, only of questions whose answer is Yes."""
        rows = self.scores[stage]
        rows = rows[rows["model"].isin(self.competent)]
        return rows[rows["gold"] == YES.name] if valid else rows


def typical_perplexity(rows: Any) -> pd.Series:
    """Geometric mean of the perplexities in each group of rows: exp of their mean surprisal."""
    means: pd.Series = np.exp(rows["perplexity"].agg(lambda values: np.log(values).mean()))
    return means


def read_results(study: StudyFolder) -> Results:
    """The results, without pairs that lack a side (UserError: a stage has no results yet)."""
    scores = {stage: _scores(study, stage) for stage in STAGES}
    main = study.runs["questions"]
    names = {stage: stage for stage in STAGES}
    prompts, answers_of_all = stacked({stage: study.runs[stage] for stage in STAGES}, SET, names)
    vocabulary = {name: record.vocabulary for name, record in main.models().items()}
    answers = main.table("answers")
    cautions = cautions_on(
        whole_pairs(main.table("prompts"), answers),
        answers=answers,
        options=main.table("option_probabilities"),
        facts=InFolder(main).facts(),
        cluster=CLUSTER,
    )
    shown = answers[["model", "answer", "error"]]
    return Results(scores, vocabulary, shown, prompts, answers_of_all, cautions)


def _scores(study: StudyFolder, stage: str) -> pd.DataFrame:
    study.require(stage)
    run = study.runs[stage]
    answers, keys = run.table("answers"), ["model", "prompt_id"]
    factors = ["modality", "argument_form", "schema", "formula", "gold", "interpretation"]
    prompts = whole_pairs(run.table("prompts"), answers)[["prompt_id", "pair_id", "side", *factors]]
    answers["hard_accuracy"] = answers["correct"].map({True: 1.0, False: 0.0}).astype(float)
    scores = run.table("soft_answers", [*keys, "soft_accuracy", "perplexity"])
    rows = scores.merge(_options(run), on=keys, how="left").merge(prompts, on="prompt_id")
    rows = rows.merge(answers[[*keys, "hard_accuracy"]], on=keys, validate="one_to_one")
    rows["form"] = rows["prompt_id"].str.partition("/")[2]
    rows["modality"] = pd.Categorical(rows["modality"], MODALITIES)
    if set(rows["argument_form"]) <= set(ARGUMENT_FORMS):
        rows["argument_form"] = pd.Categorical(rows["argument_form"], list(ARGUMENT_FORMS))
    rows["relative_perplexity"] = rows.groupby("model")["perplexity"].transform(_standardized)
    return rows


def _options(run: RunFolder) -> pd.DataFrame:
    """One row per model and question: relative_positive, and answered."""
    key, share = ["model", "prompt_id"], "relative_probability"
    options = run.table("option_probabilities", [*key, "option", "probability", share])
    yes = options[options["option"] == YES.name].set_index(key)[share].rename("relative_positive")
    answered = options.groupby(key)["probability"].sum().rename("answered")
    return pd.concat([yes, answered], axis=1).reset_index()


def _standardized(values: pd.Series) -> pd.Series:
    """Standard deviations from the mean; zero if the values do not vary."""
    sd = float(np.nan_to_num(values.std()))
    return (values - values.mean()) / (sd or 1.0)


def clustered_means(
    rows: pd.DataFrame, value: str, *, by: Sequence[str], cluster: str = CLUSTER
) -> pd.DataFrame:
    """One row per combination of `by`, in order of appearance: mean, low, high, n, clusters.

    low and high are the ends of the mean's 95% interval, by Student's t for the number of clusters,
    with the linearized variance of a ratio of sums (Cochran, 1977, Sampling Techniques, 6.3); they
    are NaN if there is only one cluster. The intervals of `SHARES` are cut at 0 and 1. Missing
    values are omitted. The last column is named after the cluster: interpretations, or models for
    the mean over models in general.
    """
    rows = rows.dropna(subset=[value])
    grouped = rows.groupby([*by, cluster], sort=False, observed=True)[value]
    sums = grouped.agg(total="sum", n="size").reset_index()
    cells = sums.groupby(list(by), sort=False, observed=True)
    table = cells.agg(total=("total", "sum"), n=("n", "sum"), clusters=("n", "size"))
    mean = table["total"] / table["n"]
    apart = (sums["total"] - mean.to_numpy()[cells.ngroup()] * sums["n"]) ** 2
    squares = apart.groupby(cells.ngroup()).sum().to_numpy()
    count = table["clusters"].to_numpy(dtype=float)
    variance = pd.Series(count * squares, index=table.index).div((count - 1) * table["n"] ** 2)
    half = stdtrit(count - 1, UPPER) * variance.where(count > 1) ** 0.5
    means = pd.DataFrame({"mean": mean, "low": mean - half, "high": mean + half})
    if value in SHARES:
        means[["low", "high"]] = means[["low", "high"]].clip(0.0, 1.0)
    means = means.assign(n=table["n"], **{f"{cluster}s": table["clusters"]})
    return means.reset_index()
