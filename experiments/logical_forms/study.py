"""The study of LogicalForms: what is measured, and what the report shows."""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import pandas as pd

from interp.analysis.accuracy import notes_without_answer
from interp.analysis.mixed.linear import MIN_GROUPS
from interp.analysis.mixed.pooling import MIN_STUDIES
from interp.errors import UserError
from interp.measurements.soft_score import SoftScore
from interp.models.organisms import PREFIX
from interp.prompts.prompt_set import PromptSet
from interp.prompts.source import PromptSource
from interp.report.page import FigureItem, Item, Report, Section, TableItem
from interp.runs.plan import Stage
from interp.studies.folder import StudyFolder
from interp.studies.plan import Study
from interp_experiments.logical_forms import figures, tables
from interp_experiments.logical_forms.effects import (
    RESPONSES,
    Effects,
    contrasts_by_model,
    effects,
    effects_by_model,
    pooled_contrasts,
)
from interp_experiments.logical_forms.findings import findings
from interp_experiments.logical_forms.forms import (
    distribution_forms,
    introduction_forms,
    main_forms,
)
from interp_experiments.logical_forms.interpretations import INTERPRETATIONS
from interp_experiments.logical_forms.perplexity import perplexity_correlations
from interp_experiments.logical_forms.results import MIN_ANSWERED, STAGES, Results, read_results
from interp_experiments.logical_forms.system import (
    LogicalForms,
    distribution,
    introduction,
    nonsense,
    system,
)

DEFAULT_LIMIT = 480
"""Pairs: each of the 24 forms under forty interpretations."""

POINTS = (
    "Points are means of soft accuracy and geometric means of perplexity over the questions of a "
    "form. Grey panels: models that do not answer or do not read."
)

NOBODY = "no model answers Yes or No often enough with a perplexity below that of guessing"


class LogicalFormsStudy(Study):
    """Section 4 and Appendix C of the paper."""

    name: ClassVar[str] = "logical-forms"
    default_limit: ClassVar[int] = DEFAULT_LIMIT

    def stages(self, source: PromptSource) -> Sequence[Stage]:
        """Soft scores of the questions, of their nonsense mirror, and of the sets of Appendix C.

        Every form of every set is asked under the same interpretations.
        """
        limit = source.pairs(self.default_limit)
        of_each = len(main_forms()) // 2
        each = INTERPRETATIONS if limit is None else max(1, limit // of_each)
        # Whole interpretations, so that all forms are asked under the same ones.
        pairs = limit if limit is not None and limit < of_each else each * of_each
        limits = {
            system: pairs,
            nonsense: pairs,
            introduction: each * len(introduction_forms()),
            distribution: each * len(distribution_forms()),
        }
        return tuple(
            Stage(name, self._chosen(chosen, source).spread(some, source.seed), SoftScore())
            for name, (chosen, some) in zip(STAGES, limits.items(), strict=True)
        )

    def _chosen(self, system: LogicalForms, source: PromptSource) -> PromptSet:
        return system.prompts(seed=source.seed, data=source.data)

    def report(self, folder: StudyFolder) -> Report:
        """The report, from what the study has on disk."""
        results = read_results(folder)
        main = results.scores["questions"]
        valid = mixed_model(results.pooled("questions", valid=True), "soft_accuracy")
        affirmed = tables.affirmation(results)
        correlations = perplexity_correlations(results)
        found = findings(results, valid=valid, affirmation=affirmed, correlations=correlations)
        return Report(
            title="LogicalForms",
            text=(
                f"{len(results.models)} models on {main['prompt_id'].nunique():,} questions: "
                f"{main['form'].nunique()} forms under the same "
                f"{main['interpretation'].nunique()} interpretations. Soft accuracy is the share "
                "of the correct answer in the probability of Yes and No, hard accuracy the share "
                "of questions whose most probable token is the correct answer. Intervals are 95%, "
                "with all questions of an interpretation as one cluster. p_holm is corrected by "
                "Holm's method within the family named in the row. Numbers in brackets refer to "
                "the formulas of the paper."
            ),
            sections=(
                Section("What was found", found),
                model_section(results),
                accuracy_section(results),
                valid_section(results, valid),
                models_section(results),
                perplexity_section(results, correlations),
                affirmation_section(results, affirmed),
                introduction_section(results),
                distribution_section(results),
                *planted_sections(results),
            ),
            record=folder.record.model_dump(mode="json"),
            problems=tuple(folder.problems()),
        )


def model_section(results: Results) -> Section:
    """Which models answer and read at all."""
    text = (
        "A model is in the mixed models if it answers, with a mean probability of Yes and No "
        f"together of at least {MIN_ANSWERED}, and if it reads them: the geometric mean of its "
        "perplexities is below the size of its vocabulary, which is the perplexity of guessing. "
        f"{len(results.competent)} of {len(results.models)} do; the others are grey in the "
        "figures. Perplexity counts everything that a model reads from its second token on, a chat "
        "template included."
    )
    if any(model.startswith(PREFIX) for model in results.models):
        text += (
            f"\n\nModels named {PREFIX}... are small models trained for this project on text with "
            "planted effects: they show what the measurements find where the truth is known, and "
            "nothing about language models."
        )
    return Section(
        "Models",
        text,
        (
            TableItem(
                "models",
                "Whether they answer, and the perplexity of the questions",
                tables.models(results),
                "; ".join(notes_without_answer(results.answers)),
            ),
        ),
    )


def accuracy_section(results: Results) -> Section:
    """Figure 1 and Table 1."""
    by_form = tables.by_form(results)
    main = by_form[by_form["set"] == "questions"]
    measured = tables.accuracy(results.scores["questions"])
    return Section(
        "Soft and hard accuracy",
        "Random answers have a soft accuracy of 0.5, and so has a model that always says Yes: half "
        "of the forms are valid.",
        (
            FigureItem(
                "figure1_forms",
                "Soft accuracy and perplexity of each form (Figure 1)",
                lambda: figures.forms_over_perplexity(main, competent=results.competent),
                POINTS,
            ),
            TableItem(
                "table1",
                "Soft accuracy by modality and argument form (Table 1)",
                tables.measured_and_published(measured, tables.published_accuracy()),
                "As published, OpenAI-o1 and Gemini are greedy answers to a sample, human is the "
                "mean of 710 answers. or: disjunctive syllogism, mp: modus ponens, mt: modus "
                "tollens, or_fallacy: affirming a disjunct, ac: affirming the consequent, da: "
                "denying the antecedent. leaderboard: mean on the Open LLM Leaderboard v2; ranks "
                "among the ten open models.",
            ),
            TableItem(
                "table1_intervals",
                "The same with intervals, soft and hard",
                tables.intervals(results.scores["questions"]),
                "Commercial models were published with hard accuracies, which compare with the "
                "hard ones here.",
            ),
            TableItem(
                "table1_nonsense",
                "The same on the nonsense mirror",
                tables.accuracy(results.scores["nonsense"]),
            ),
            TableItem("forms", "Every form", by_form),
        ),
    )


def valid_section(results: Results, found: Effects | str) -> Section:
    """Formula 4: Table 2, Figures 3 and 4."""
    within = mixed_model(
        results.pooled("questions", valid=True),
        "soft_accuracy",
        covariate="perplexity_within_form",
    )
    return Section(
        "What determines soft accuracy on valid forms (4)",
        "A linear mixed model of the questions whose answer is Yes. Perplexity is in standard "
        "deviations from the mean of the model's own questions: per-token perplexities of "
        "different tokenizers are not comparable. The effects of modality and argument form vary "
        f"by model where there are at least {MIN_GROUPS} models. An adjusted mean is that at mean "
        "perplexity; where a level has no question of mean perplexity, it is extrapolated, and the "
        "raw mean tells more. A second model has perplexity centred within each form, which leaves "
        f"what forms do to perplexity to the forms.{remark(found)}",
        (
            *effect_items(found, name="valid", figure="Figure 3"),
            *random_effect_items(found),
            *effect_items(within, name="valid_within_form", figure="perplexity within form"),
        ),
    )


def models_section(results: Results) -> Section:
    """Formulas 4 and 5, each model first, then all."""
    contrasts = contrasts_by_model(results)
    count = len(results.competent)
    few = "" if count >= MIN_STUDIES else f" There is no such table: {count} model is in it."
    pooled = (
        [TableItem("pooled_contrasts", "Contrasts over models", pooled_contrasts(contrasts))]
        if count >= MIN_STUDIES
        else []
    )
    return Section(
        "Each model, and models in general",
        "The mixed models once more, of each model alone and by least squares, and their contrasts "
        "pooled by a random-effects meta-analysis over models (Hartung and Knapp's interval, t "
        "with one degree of freedom less than models). estimate is the mean over models, tau the "
        "standard deviation of the true contrasts between them, I2 the share of variance that is "
        "between models, and predicted_low to predicted_high the range in which a further model "
        f"is expected.{few}",
        (
            *pooled,
            TableItem(
                "means_by_model",
                "Estimated marginal means of each model alone (4, 5)",
                effects_by_model(results),
            ),
            TableItem("contrasts_by_model", "Pairwise tests of each model alone", contrasts),
        ),
    )


def perplexity_section(results: Results, correlations: pd.DataFrame) -> Section:
    """Figure 5."""
    by_form = tables.by_form(results)
    return Section(
        "Perplexity",
        "Questions and their mirror in pseudo-words, under the same forms.",
        (
            FigureItem(
                "figure5_perplexity",
                "From real words to pseudo-words, form by form (Figure 5)",
                lambda: figures.forms_over_perplexity(by_form, competent=results.competent),
                f"{POINTS} A line leads from the questions to their mirror.",
            ),
            TableItem(
                "perplexity_correlations",
                "Spearman's correlation of perplexity with soft accuracy",
                correlations,
                "The paper reports -0.09 over its ten models and the valid forms. Over several "
                "forms rho mixes perplexity with what the forms do; within a form it does not: "
                "questions are ranked among those of the same model and form. Intervals: "
                "percentile bootstrap over interpretations.",
            ),
        ),
    )


def affirmation_section(results: Results, affirmed: pd.DataFrame) -> Section:
    """Formula 5: Figure 6."""
    balanced, valid = (
        mixed_model(results.pooled("questions", valid=only), "relative_positive")
        for only in (False, True)
    )
    return Section(
        "Affirmation and rejection (5)",
        "The share of Yes in the probability of Yes and No. Half of the answers are Yes, so a mean "
        "above 0.5 is a bias to affirm, below it one to reject. The paper does not say which "
        "questions its model is fitted to; here it is all of them, then those whose answer is Yes."
        f"{remark(balanced)}",
        (
            TableItem(
                "affirmation",
                "Inclination to Yes apart from the ability, in log-odds",
                affirmed,
                "bias: mean log-odds of Yes over theorems and fallacies, 0 without an inclination. "
                "sensitivity: mean log-odds of the correct answer, 0 where answers do not depend "
                "on what follows.",
            ),
            *effect_items(balanced, name="yes", figure="Figure 6"),
            *effect_items(valid, name="yes_valid", figure="valid forms alone"),
        ),
    )


def introduction_section(results: Results) -> Section:
    """Appendix C.1: Table A2."""
    measured = tables.introduction(results.scores["introduction"])
    found = mixed_model(results.pooled("introduction"), "soft_accuracy", factors=("modality",))
    return Section(
        "Introduction of a modality (Appendix C.1)",
        f"Each is a sound rule of inference, so the answer is always Yes.{remark(found)}",
        (
            TableItem(
                "table_a2",
                "Soft accuracy on p, therefore p, □p or ◇p (Table A2)",
                tables.measured_and_published(measured, tables.published_introduction()),
            ),
            TableItem(
                "table_a2_intervals",
                "The same with intervals, soft and hard",
                tables.intervals(results.scores["introduction"]).query("factor == 'modality'"),
            ),
            *effect_items(found, name="introduction"),
        ),
    )


def distribution_section(results: Results) -> Section:
    """Appendix C.2."""
    rows = results.scores["distribution"]
    pooled = tables.cells(results.pooled("distribution"))
    accuracy, yes = (
        mixed_model(pooled, response, factors=("cell",), pairs=tables.FORM_CHANGES)
        for response in RESPONSES
    )
    return Section(
        "Distribution of a modality (Appendix C.2)",
        "Does the modality of a conditional distribute over its parts? Necessity over implication "
        "does (theorem), necessity over disjunction does not (spurious); under possibility it is "
        f"the other way round. base is modus ponens of the main set.{remark(accuracy)}",
        (
            TableItem("table_a3", "Scores of each form (Table A3)", tables.distribution(rows)),
            *effect_items(accuracy, name="distribution_accuracy"),
            *effect_items(yes, name="distribution_yes"),
        ),
    )


def planted_sections(results: Results) -> list[Section]:
    """What the organisms of this system were made to answer, and what they answer."""
    table = tables.planted_and_measured(results)
    return [
        Section(
            f"Planted and measured: {model}",
            "The share of Yes with which the training text answers each form, and that of the "
            "trained model.",
            (
                FigureItem(
                    f"planted_{str(model).rpartition('/')[2]}",
                    "Share of Yes, form by form",
                    partial(figures.planted_and_measured, rows),
                    "On the dotted line training text and model agree. Whiskers: 95%, clustered by "
                    "interpretation. Filled: valid forms. Some of the forms that are further "
                    "off than the others are named.",
                ),
                TableItem(
                    f"planted_{str(model).rpartition('/')[2]}", "Share of Yes, form by form", rows
                ),
            ),
        )
        for model, rows in table.groupby("model")
    ]


def mixed_model(rows: pd.DataFrame, response: str, **options: Any) -> Effects | str:
    """`effects` with its options, or why these rows allow none."""
    if rows.empty:
        return NOBODY
    try:
        return effects(rows, response=response, **options)
    except UserError as error:
        return str(error)


def remark(found: Effects | str) -> str:
    """A sentence on the limits of a fit, or why there is none; empty if nothing is to note."""
    if isinstance(found, str):
        return f" There is no mixed model: {found}."
    return f" Of this fit: {found.model.note}." if found.model.note else ""


def effect_items(found: Effects | str, *, name: str, figure: str | None = None) -> tuple[Item, ...]:
    """Figure and tables of one mixed model, if there is one."""
    if isinstance(found, str):
        return ()
    response = found.model.formula.response
    words = RESPONSES[response]
    title = f"Estimated marginal means of {words}"
    return (
        FigureItem(
            f"{name}_means",
            f"{title} ({figure})" if figure else title,
            lambda: figures.estimated_means(
                found.means,
                response=words,
                tests=found.tests,
                neutral=0.5 if response == "relative_positive" else None,
            ),
            "Filled: averaged over the other factor with equal weights, at mean perplexity, with "
            f"the 95% interval by Student's t ({found.model.freedom:,} degrees of freedom). "
            "Hollow: the mean of the questions as they are. Brackets: p of the difference by "
            "Holm's method. n counts answers.",
        ),
        TableItem(
            f"{name}_means",
            "Estimated marginal means",
            found.means,
            "Raw means have intervals clustered by interpretation.",
        ),
        TableItem(f"{name}_fit", "The model", found.fit),
        TableItem(f"{name}_coefficients", "Fixed effects", found.model.coefficients()),
        TableItem(
            f"{name}_term_tests",
            "Tests of each fixed effect",
            found.term_tests,
            "F: Wald's test, whose df2 is one less than there are models (with too few of them: "
            "interpretations). chi_square: the paper's likelihood-ratio test against the model "
            "without the effect, both by maximum likelihood, which takes the questions of an "
            "interpretation as independent. The interaction is tested in a model that has it.",
        ),
        TableItem(
            f"{name}_tests",
            "Pairwise tests of the marginal means" + (" (Table 2)" if name == "valid" else ""),
            found.tests,
            f"Two-sided, by Student's t with {found.model.freedom:,} degrees of freedom.",
        ),
    )


def random_effect_items(found: Effects | str) -> tuple[Item, ...]:
    """Figure 4, where there are random effects."""
    if isinstance(found, str):
        return ()
    spread = TableItem("valid_spread", "Spread of the random effects", found.model.random_spread())
    if found.slopes.empty:
        return (spread,)
    return (
        FigureItem(
            "figure4_slopes",
            "Intercept and slope of perplexity of each model (Figure 4)",
            lambda: figures.slopes(found.slopes, covariate=found.covariate),
            "Fixed effect and the model's deviation from it together.",
        ),
        TableItem("slopes", "Intercept and slope of each model", found.slopes),
        TableItem(
            "random_effects", "Deviations from the fixed effects", found.model.random_effects()
        ),
        spread,
    )
