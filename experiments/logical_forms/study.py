"""The study of LogicalForms: what is measured, and what the report shows."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import pandas as pd

from interp.analysis.accuracy import notes_without_answer
from interp.errors import UserError
from interp.measurements.soft_score import SoftScore
from interp.prompts.prompt_set import PromptSet
from interp.prompts.source import PromptSource
from interp.report.page import FigureItem, Item, Report, Section, TableItem
from interp.runs.plan import Stage
from interp.studies.folder import StudyFolder
from interp.studies.plan import Study
from interp_experiments.logical_forms import figures, tables
from interp_experiments.logical_forms.forms import (
    distribution_forms,
    introduction_forms,
    main_forms,
)
from interp_experiments.logical_forms.interpretations import INTERPRETATIONS
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

NOBODY = "no model answers Yes or No often enough with a perplexity below that of guessing"


class LogicalFormsStudy(Study):
    """Section 4 and Appendix C of the paper."""

    name: ClassVar[str] = "logical-forms"
    default_limit: ClassVar[int] = DEFAULT_LIMIT

    def stages(self, source: PromptSource) -> Sequence[Stage]:
        """Soft scores of the questions, of their nonsense mirror, and of the sets of Appendix C.

        The extra sets have as many questions per form as the main one.
        """
        limit = source.pairs(self.default_limit)
        pairs = len(main_forms()) // 2 * INTERPRETATIONS if limit is None else limit
        each = max(1, pairs // (len(main_forms()) // 2))
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
        questions = results.scores["questions"]["prompt_id"].nunique()
        return Report(
            title="LogicalForms",
            text=(
                f"{len(results.models)} models on {questions:,} questions. Soft accuracy is the "
                "share of the correct answer in the probability of Yes and No. Intervals are 95%. "
                "p_holm is corrected by Holm's method within the family named in the row. "
                "Numbers in brackets refer to the formulas of the paper."
            ),
            sections=(
                model_section(results),
                accuracy_section(results),
                valid_section(results),
                perplexity_section(results),
                affirmation_section(results),
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
        f"together of at least {MIN_ANSWERED}, and if it reads them: its mean perplexity is below "
        "the size of its vocabulary, which is the perplexity of guessing. Perplexity counts "
        "everything that a model reads from its second token on, a chat template included."
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
        "Soft accuracy",
        "Random answers have a soft accuracy of 0.5, and so has a model that always says Yes.",
        (
            FigureItem(
                "figure1_forms",
                "Soft accuracy and perplexity of each form (Figure 1)",
                lambda: figures.forms_over_perplexity(main),
            ),
            TableItem(
                "table1",
                "Soft accuracy by modality and argument form (Table 1)",
                tables.measured_and_published(measured, tables.published_accuracy()),
                "As published, OpenAI-o1 and Gemini are greedy answers to a sample, human is the "
                "mean of 710 answers. or: disjunctive syllogism, mp: modus ponens, mt: modus "
                "tollens, or_fallacy: affirming a disjunct, ac: affirming the consequent, da: "
                "denying the antecedent.",
            ),
            TableItem(
                "table1_nonsense",
                "The same on the nonsense mirror",
                tables.accuracy(results.scores["nonsense"]),
            ),
            TableItem("forms", "Every form", by_form),
        ),
    )


def valid_section(results: Results) -> Section:
    """Formula 4: Table 2, Figures 3 and 4."""
    found = mixed_model(
        results.pooled("questions", valid=True), "soft_accuracy", "modality", "argument_form"
    )
    return Section(
        "What determines soft accuracy on valid forms (4)",
        "A linear mixed model of the questions whose answer is Yes. Perplexity is in standard "
        "deviations from the mean of the model's own questions: per-token perplexities of "
        f"different tokenizers are not comparable.{remark(found)}",
        (
            *effect_items(found, name="valid", figure="Figure 3"),
            *random_effect_items(found),
            TableItem(
                "means_by_model",
                "Estimated marginal means of each model alone (4, 5)",
                tables.effects_by_model(results),
                "By least squares on the rows of one model.",
            ),
        ),
    )


def perplexity_section(results: Results) -> Section:
    """Figure 5."""
    by_form = tables.by_form(results)
    return Section(
        "Perplexity",
        "Questions and their mirror in pseudo-words, under the same forms.",
        (
            FigureItem(
                "figure5_perplexity",
                "From real words to pseudo-words, form by form (Figure 5)",
                lambda: figures.forms_over_perplexity(by_form),
            ),
            TableItem(
                "perplexity_correlations",
                "Spearman's correlation of perplexity with soft accuracy",
                tables.correlations(results),
                "The paper reports -0.09 over its ten models and the valid forms.",
            ),
        ),
    )


def affirmation_section(results: Results) -> Section:
    """Formula 5: Figure 6."""
    balanced, valid = (
        mixed_model(
            results.pooled("questions", valid=only),
            "relative_positive",
            "modality",
            "argument_form",
        )
        for only in (False, True)
    )
    return Section(
        "Affirmation and rejection (5)",
        "The share of Yes in the probability of Yes and No. Half of the answers are Yes, so a mean "
        "above 0.5 is a bias to affirm, below it one to reject. The paper does not say which "
        "questions its model is fitted to; here it is all of them, then those whose answer is Yes."
        f"{remark(balanced)}",
        (
            *effect_items(balanced, name="yes", figure="Figure 6"),
            *effect_items(valid, name="yes_valid", figure="valid forms alone"),
        ),
    )


def introduction_section(results: Results) -> Section:
    """Appendix C.1: Table A2."""
    measured = tables.introduction(results.scores["introduction"])
    found = mixed_model(results.pooled("introduction"), "soft_accuracy", "modality")
    return Section(
        "Introduction of a modality (Appendix C.1)",
        f"Each is a sound rule of inference, so the answer is always Yes.{remark(found)}",
        (
            TableItem(
                "table_a2",
                "Soft accuracy on p, therefore p, □p or ◇p (Table A2)",
                tables.measured_and_published(measured, tables.published_introduction()),
            ),
            *effect_items(found, name="introduction"),
        ),
    )


def distribution_section(results: Results) -> Section:
    """Appendix C.2."""
    rows = results.scores["distribution"]
    pooled = tables.cells(results.pooled("distribution"))
    accuracy, yes = (
        mixed_model(pooled, response, "cell", pairs=tables.FORM_CHANGES)
        for response in tables.RESPONSES
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
                ),
                TableItem(
                    f"planted_{str(model).rpartition('/')[2]}", "Share of Yes, form by form", rows
                ),
            ),
        )
        for model, rows in table.groupby("model")
    ]


def mixed_model(
    rows: pd.DataFrame,
    response: str,
    *factors: str,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> tables.Effects | str:
    """`tables.effects`, or why these rows allow none."""
    if rows.empty:
        return NOBODY
    try:
        return tables.effects(rows, response=response, factors=factors, pairs=pairs)
    except UserError as error:
        return str(error)


def remark(found: tables.Effects | str) -> str:
    """A sentence on the limits of a fit, or why there is none; empty if nothing is to note."""
    if isinstance(found, str):
        return f" There is no mixed model: {found}."
    return f" Of this fit: {found.model.note}." if found.model.note else ""


def effect_items(
    found: tables.Effects | str, *, name: str, figure: str | None = None
) -> tuple[Item, ...]:
    """Figure and tables of one mixed model, if there is one."""
    if isinstance(found, str):
        return ()
    words = tables.RESPONSES[found.model.formula.response]
    title = f"Estimated marginal means of {words}"
    return (
        FigureItem(
            f"{name}_means",
            f"{title} ({figure})" if figure else title,
            lambda: figures.estimated_means(found.means, response=words),
            "Averaged over the other factor with equal weights, at mean perplexity. n counts "
            "answers.",
        ),
        TableItem(f"{name}_means", "Estimated marginal means", found.means),
        TableItem(f"{name}_fit", "The model", found.fit),
        TableItem(f"{name}_coefficients", "Fixed effects", found.model.coefficients()),
        TableItem(
            f"{name}_ratio_tests",
            "Likelihood-ratio tests of each fixed effect",
            found.ratio_tests,
            "Against the model without it, both by maximum likelihood.",
        ),
        TableItem(
            f"{name}_tests",
            "Pairwise tests of the marginal means" + (" (Table 2)" if name == "valid" else ""),
            found.tests,
            "Two-sided, by the normal approximation.",
        ),
    )


def random_effect_items(found: tables.Effects | str) -> tuple[Item, ...]:
    """Figure 4, where there are random effects."""
    if isinstance(found, str):
        return ()
    spread = TableItem("valid_spread", "Spread of the random effects", found.model.random_spread())
    if not found.model.design.random_columns:
        return (spread,)
    table: pd.DataFrame = found.model.random_effects()
    return (
        FigureItem(
            "figure4_random_effects",
            "Random effects of each model (Figure 4)",
            lambda: figures.random_effects(table),
        ),
        TableItem("random_effects", "Random effects of each model", table),
        spread,
    )
