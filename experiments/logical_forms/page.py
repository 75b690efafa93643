"""The page of the study of LogicalForms: its sections, tables and figures."""

from collections.abc import Iterator

import pandas as pd

from interp import StudyFolder
from interp.extend.page import Number, Report, study_browser
from interp.extend.results import model_parameters, whole_pairs
from interp_experiments.logical_forms import sections, tables
from interp_experiments.logical_forms.effects import confirmatory
from interp_experiments.logical_forms.findings import first_screen
from interp_experiments.logical_forms.results import CLUSTER, SET, STAGES, Results, read_results
from interp_experiments.scaffold import about_pairs, choice_section

NAMES = {
    "accuracy": "soft accuracy, unless called hard",
    "effect": "what a factor adds to the mean in a mixed model; it is the same for all models",
    "side": "which member of its pair a question is: theorem or fallacy",
    "theorem": "in the main set, the side of a pair on which the conclusion follows",
    "fallacy": "the other side: the second premise and the conclusion are negated and swapped",
    "box": 'necessity, □, "certain"; diamond is possibility, ◇, "possible"; none is neither',
    "vL": "disjunctive syllogism, the left side denied; vR: the right side",
    "toL": "modus ponens; toR: modus tollens",
    "argument form": "or: disjunctive syllogism, mp: modus ponens, mt: modus tollens; or_fallacy: "
    "affirming a disjunct, ac: affirming the consequent, da: denying the antecedent",
    "⊢": "the left side entails the right side; ⊬: it does not",
    "interpretation": "the events that stand for p and q in a question; one cluster",
    "nonsense": "a separate set: the same questions with invented words (their mirror)",
}
"""Terms explained on the report's page."""


def report_of(folder: StudyFolder) -> Report:
    """The report page, made from the files in the study's folder."""
    results = read_results(folder)
    valid = confirmatory(results)
    affirmed = tables.affirmation(results)
    correlations = tables.perplexity_correlations(results)
    main = folder.runs["questions"]
    answers, options = main.table("answers"), main.table("option_probabilities")
    prompts = whole_pairs(main.table("prompts"), answers)
    return Report(
        title="Logical forms",
        text=(
            "Soft accuracy is the correct answer's share of the probability of Yes and No. Hard "
            "accuracy is the share of questions whose most probable token is the correct answer. "
            "Intervals are 95%, with all questions of an interpretation as one cluster, unless "
            "models are the observations. p_holm is p, Holm-corrected over the tests in a table "
            "that have the same value of the column family. Numbers in brackets refer to the "
            "formulas of the paper."
        ),
        glance=first_screen(results, valid=valid, correlations=correlations),
        sections=(
            sections.valid_section(valid),
            sections.model_section(results, model_parameters(main)),
            sections.accuracy_section(results),
            choice_section(answers, prompts, options, CLUSTER, by=["modality"]),
            sections.models_section(results),
            sections.adjusted_section(results),
            sections.perplexity_section(results, correlations),
            sections.affirmation_section(results, affirmed),
            about_pairs(sections.introduction_section(results), set="introduction"),
            about_pairs(sections.distribution_section(results), set="distribution"),
        ),
        browser=study_browser(
            folder,
            results.prompts,
            results.answers_of_all,
            cluster=CLUSTER,
            numbers=tuple(score_numbers(results)),
            prefixed=STAGES,
        ),
        pairs={SET: STAGES[0]},
        names=NAMES,
        paper="Wang and Shi (2025): Logical forms complement probability in understanding "
        "language model (and human) performance.",
        record=folder.provenance(),
        problems=tuple(folder.problems()),
    )


def score_numbers(results: Results) -> Iterator[Number]:
    """The mean over a pair's questions of each score, under the names of the tables' columns."""
    rows = pd.concat(
        scores.assign(pair=f"{stage}/" + scores["pair_id"])
        for stage, scores in results.scores.items()
    )
    for score in ("soft_accuracy", "relative_positive", "perplexity"):
        means = rows.dropna(subset=score).groupby(["model", "pair"])[score].mean()
        for model in means.index.unique("model"):
            yield Number(score.replace("_", " "), {"model": model}, means[model].to_dict())
