"""The sections of the page, in their order."""

from functools import partial
from typing import Any

import pandas as pd

from interp.analysis.accuracy import notes_without_answer
from interp.analysis.equivalence import SMALLEST
from interp.analysis.mixed.linear import MIN_GROUPS
from interp.analysis.mixed.pooling import MIN_STUDIES
from interp.errors import UserError
from interp.report.page import FigureItem, Item, Section, TableItem
from interp_experiments.logical_forms import figures, tables
from interp_experiments.logical_forms.contrasts import (
    NOBODY,
    Contrasts,
    contrasts_by_model,
    means_by_model,
    pooled_contrasts,
)
from interp_experiments.logical_forms.effects import RESPONSES, Effects, effects
from interp_experiments.logical_forms.results import MIN_ANSWERED, Results


def model_section(results: Results, parameters: TableItem) -> Section:
    """Which models answer and read at all."""
    text = (
        "A model is compared if it answers, with a mean probability of Yes and No "
        f"together of at least {MIN_ANSWERED}, and if it reads them: the geometric mean of its "
        "perplexities is below the size of its vocabulary, which is the perplexity of guessing. "
        f"{len(results.competent)} of {len(results.models)} do; the others are grey in the "
        "figures. Perplexity counts everything that a model reads from its second token on, a chat "
        "template included."
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
            parameters,
        ),
    )


POINTS = (
    "Points are means of soft accuracy and geometric means of perplexity over the questions of a "
    "form; whiskers: 95% intervals, clustered by interpretation. Filled: valid forms. Grey panels, "
    "without whiskers: models that do not answer or do not read."
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
                tables.with_published(measured, "published_accuracy.csv"),
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


WITHIN_FORM = "perplexity_within_form"


def valid_section(found: Contrasts | str) -> Section:
    """The confirmatory contrasts (Table 2)."""
    text = (
        "Means of the questions whose answer is Yes, as they are: modalities and argument forms "
        "are not compared at equal perplexity, most of which a question's form makes. "
        f"With at least {MIN_GROUPS} models each contrast is made for every model, and the models "
        "are the observations; with fewer the interpretations are, and the tests are about these "
        "models alone."
    )
    if isinstance(found, str):
        return Section("Differences between valid forms", f"{text} There are none: {found}.")
    return Section(
        "Differences between valid forms",
        f"{text} Of these tests: {found.note}.",
        (
            FigureItem(
                "valid_means",
                "Soft accuracy on valid forms",
                lambda: figures.estimated_means(
                    found.means, response="soft accuracy", tests=found.tests
                ),
                "Means with 95% intervals, over models or, if there are few, clustered by "
                "interpretation. Brackets: p of the difference by Holm's method. n counts answers.",
            ),
            TableItem("valid_means", "Soft accuracy on valid forms", found.means),
            TableItem(
                "valid_tests",
                "Pairwise tests of these means (Table 2): confirmatory",
                found.tests,
                f"difference: first less second. Two-sided, by Student's t. {LIMITS}",
            ),
            TableItem(
                "valid_term_tests",
                "Tests of each factor, and of their interaction (exploratory)",
                found.term_tests,
                TERM_TESTS,
            ),
        ),
    )


def adjusted_section(results: Results) -> Section:
    """Formula 4 as in the paper: Figures 3 and 4."""
    rows = results.pooled("questions", valid=True)
    found = mixed_model(rows, "soft_accuracy")
    return Section(
        "The paper's model: soft accuracy on valid forms, adjusted for perplexity (4)",
        "Exploratory: a linear mixed model of the questions whose answer is Yes, with perplexity "
        "beside modality and argument form. Perplexity is in standard deviations from the mean of "
        "the model's own questions: per-token perplexities of different tokenizers are not "
        "comparable. The effects of modality and argument form vary by model where there are at "
        f"least {MIN_GROUPS} models. An adjusted mean is that at mean perplexity. Forms differ in "
        "perplexity, and so an adjusted difference leaves out what a form does through the "
        "perplexity of its words; where a level has no question of mean perplexity, its adjusted "
        "mean is extrapolated. A second model has perplexity centred within each form: its "
        f"coefficient compares questions of one form.{remark(found)}",
        (
            *effect_items(found, name="adjusted", figure="Figure 3"),
            *random_effect_items(found),
            *_within_form_items(mixed_model(rows, "soft_accuracy", covariate=WITHIN_FORM)),
        ),
    )


def _within_form_items(found: Effects | str) -> tuple[Item, ...]:
    if isinstance(found, str):
        return ()
    return (
        TableItem(
            "within_form_coefficients",
            "Fixed effects with perplexity centred within each form",
            found.model.coefficients(),
        ),
    )


def random_effect_items(found: Effects | str) -> tuple[Item, ...]:
    """Figure 4, where there are random effects."""
    if isinstance(found, str):
        return ()
    spread = TableItem(
        "adjusted_spread", "Spread of the random effects", found.model.random_spread()
    )
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


def models_section(results: Results) -> Section:
    """The contrasts of both scores, each model first, then all."""
    contrasts = contrasts_by_model(results)
    count = len(results.competent)
    few = (
        ""
        if count >= MIN_STUDIES
        else f" There is nothing to pool: {count} model answers and reads."
    )
    pooled = (
        [
            TableItem(
                "pooled_contrasts", "Contrasts over models", pooled_contrasts(contrasts), LIMITS
            )
        ]
        if count >= MIN_STUDIES
        else []
    )
    return Section(
        "Each model, and models in general",
        "Means of soft accuracy on valid forms and of the share of Yes on all forms, and their "
        "contrasts, of each model alone with errors robust to interpretations, then over models, "
        "each of which counts as one: Student's t with one degree of freedom less than models. "
        "estimate is the mean over models, tau the standard deviation of the true contrasts "
        "between them, I2 the share of variance that is between models, and predicted_low to "
        "predicted_high the range in which a further model is expected, errors of measurement "
        f"included.{few}",
        (
            *pooled,
            TableItem("means_by_model", "Means of each model alone", means_by_model(results)),
            TableItem(
                "contrasts_by_model", "Pairwise tests of each model alone", contrasts, LIMITS
            ),
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
                "The paper reports a weak negative correlation over its ten models. Over several "
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
        "The share of Yes in the probability of Yes and No. Over all questions half of the correct "
        "answers are Yes, so a mean above 0.5 is a bias to affirm, below it one to reject. The "
        "paper does not say which questions its model is fitted to; here it is all of them, then "
        "those whose answer is Yes. It is exploratory, and adjusted for perplexity; the raw means "
        "are next to the adjusted ones."
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
            TableItem(
                "detection",
                "Valid arguments told from invalid ones",
                tables.detection(results),
                "auroc: probability that a valid argument has a larger share of Yes than an "
                "invalid one. d_prime and bias: of the greedy answers, d' and c of signal "
                "detection; a bias above 0 leans to No. Intervals: bootstrap over "
                "interpretations.",
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
                tables.with_published(measured, "published_introduction.csv"),
            ),
            TableItem(
                "table_a2_intervals",
                "The same with intervals, soft and hard",
                tables.intervals(results.scores["introduction"]).query("factor != 'argument_form'"),
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


TERM_TESTS = (
    "F: Wald's test, whose df2 is one less than there are models; with too few of them Hotelling's "
    "T squared over interpretations, whose number less df1 is df2. chi_square: the paper's "
    "likelihood-ratio test against the model without the effect, both by maximum likelihood, which "
    "takes the questions of an interpretation as independent. The interaction is tested in a model "
    "that has it."
)

LIMITS = (
    "verdict, by p_holm: different; smaller, where no difference is shown and one of "
    f"{SMALLEST:g} or more is excluded; open, where neither is. Differences below excluded_below "
    "and above excluded_above are excluded by two one-sided tests, each at 5% and not corrected."
)
"""What tables of pairwise tests say where no difference is shown."""


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
    title = f"Means of {words}, adjusted for perplexity"
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
            "Holm's method. n counts answers. Where a level has no question of mean perplexity, "
            "its adjusted mean is extrapolated.",
        ),
        TableItem(
            f"{name}_means",
            title,
            found.means,
            "Raw means have intervals clustered by interpretation.",
        ),
        TableItem(f"{name}_fit", "The model", found.fit),
        TableItem(f"{name}_coefficients", "Fixed effects", found.model.coefficients()),
        TableItem(f"{name}_term_tests", "Tests of each fixed effect", found.term_tests, TERM_TESTS),
        TableItem(
            f"{name}_tests",
            "Pairwise tests of the adjusted means (exploratory)",
            found.tests,
            f"Two-sided, by Student's t with {found.model.freedom:,} degrees of freedom. {LIMITS}",
        ),
    )
