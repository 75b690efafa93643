"""The sections of the page."""

import pandas as pd

from interp.extend.cautions import said_outside
from interp.extend.page import FigureItem, Item, Section, TableItem
from interp.extend.results import notes_without_answer
from interp.extend.statistics import SMALLEST
from interp_experiments.findings import EXPLORATORY
from interp_experiments.logical_forms import figures, tables
from interp_experiments.logical_forms.effects import (
    RESPONSES,
    Effects,
    contrasts_by_model,
    effects,
    means_by_model,
    pooled_contrasts,
)
from interp_experiments.logical_forms.forms import MODALITIES
from interp_experiments.logical_forms.mixed.linear import MIN_GROUPS
from interp_experiments.logical_forms.mixed.means import MIN_STUDIES
from interp_experiments.logical_forms.results import MIN_ANSWERED, Results
from interp_experiments.scaffold import compared_item, measured_and_published, published_table


def model_section(results: Results, parameters: TableItem) -> Section:
    """The models that answer the questions and read them."""
    competent = results.competent
    text = (
        "A model is compared if it answers the questions, with a mean probability of Yes and No "
        f"together of at least {MIN_ANSWERED}, and if it reads them: the geometric mean of its "
        "perplexities, of all tokens but the first, is below the size of its vocabulary, which is "
        f"the perplexity of guessing. Models compared: {len(competent)} of {len(results.models)}; "
        "any others are gray in the figures. Models compared that also read the nonsense mirror, "
        f"by the same criterion: {len(results.reading('nonsense'))}."
    )
    silent = "; ".join(notes_without_answer(results.answers, said=said_outside(results.cautions)))
    return Section(
        "Models",
        text,
        (
            TableItem(
                "models",
                "Whether models answer, and the perplexity of the questions",
                tables.models(results),
                f"In the main set of questions, {silent}" if silent else "",
            ),
            parameters,
        ),
    )


POINTS = (
    "Points are means of soft accuracy and geometric means of perplexity over the questions of a "
    "form; whiskers: 95% intervals, clustered by interpretation. Filled: valid forms. Gray panels, "
    "without whiskers: models that do not answer or do not read the questions."
)


def accuracy_section(results: Results) -> Section:
    """Figure 1 and Table 1."""
    by_form = tables.by_form(results)
    main = by_form[by_form["set"] == "questions"]
    measured = tables.accuracy(results.scores["questions"])
    return Section(
        "Soft and hard accuracy",
        "Over all forms, half of which are valid, random answers have a soft accuracy of 0.5, "
        "and so does a model that always says Yes. On the valid forms alone, such a model has 1.",
        (
            FigureItem(
                "figure1_forms",
                "Soft accuracy and perplexity of each form (Figure 1)",
                lambda: figures.forms_over_perplexity(main, competent=results.competent),
                POINTS,
            ),
            compared_item(
                "table1",
                "Soft accuracy by modality and argument form (Table 1)",
                _with_published(measured, "published_accuracy.csv"),
                "In the published rows, OpenAI-o1 and Gemini gave greedy answers to a sample; "
                "human is the mean of 710 answers. leaderboard: mean on the Open LLM Leaderboard "
                "v2; ranks are among the ten open models.",
            ),
            TableItem(
                "table1_intervals",
                "Soft and hard accuracy with intervals",
                tables.intervals(results.scores["questions"]),
                "For commercial models, the paper reports hard accuracies; compare them with the "
                "hard accuracies here.",
            ),
            TableItem("forms", "Every form, and its nonsense mirror", by_form),
        ),
    )


def _with_published(measured: pd.DataFrame, file: str) -> pd.DataFrame:
    """A table, followed by the rows of the paper's Table 1 or A2, read from a file in data/."""
    # pandas turns integers into floats if a column has missing values; keep them integers.
    return measured_and_published(measured, published_table(__package__, file)).convert_dtypes()


def perplexity_section(results: Results, correlations: pd.DataFrame) -> Section:
    """Figure 5."""
    by_form = tables.by_form(results)
    return Section(
        "Perplexity",
        "Questions and their mirror in pseudo-words, with the same forms.",
        (
            FigureItem(
                "figure5_perplexity",
                "From real words to pseudo-words, form by form (Figure 5)",
                lambda: figures.forms_over_perplexity(by_form, competent=results.competent),
                f"{POINTS} A line leads from the questions to their mirror. A model that reads "
                "the questions does not necessarily read the mirror.",
            ),
            TableItem(
                "perplexity_correlations",
                "Spearman's correlation of perplexity with soft accuracy",
                correlations,
                "The paper reports a weak negative correlation over its ten models. Across "
                "forms, rho mixes perplexity with the effects of the forms; within a form, "
                "questions are ranked among those of one model and form. Rows for "
                f"{tables.TOGETHER!r} combine the models that answer and can read that set. "
                "Intervals: percentile bootstrap over interpretations.",
            ),
        ),
    )


def affirmation_section(results: Results, affirmed: pd.DataFrame) -> Section:
    """Formula 5: Figure 6."""
    fitted = effects(results.pooled("questions"), "relative_positive")
    return Section(
        "Affirmation and rejection (5)",
        "The dependent variable is the share of Yes in the probability of Yes and No. Half of the "
        "correct answers are Yes, so a mean above 0.5 shows a bias to affirm, and a mean below 0.5 "
        "a bias to reject. The paper does not say which questions its model is fitted to; here it "
        f"is fitted to all. Exploratory, and adjusted for perplexity.{remark(fitted)}",
        (
            TableItem(
                "affirmation",
                "Inclination to Yes separated from ability, in log-odds",
                affirmed,
                "bias: mean log-odds of Yes over theorems and fallacies, above 0 for an "
                "inclination to Yes. sensitivity: mean log-odds of the correct answer, 0 if "
                "answers do not depend on whether the conclusion follows.",
            ),
            *effect_items(fitted, name="yes", figure="Figure 6", chance=0.5),
        ),
    )


def introduction_section(results: Results) -> Section:
    """Appendix C.1: Table A2."""
    rows = results.scores["introduction"]
    measured = tables.accuracy(rows)[["model", *MODALITIES, "n"]]
    fitted = effects(results.pooled("introduction"), "soft_accuracy", factors=("modality",))
    return Section(
        "Introduction of a modality (Appendix C.1)",
        f"Each form is a sound rule of inference, so the answer is always Yes.{remark(fitted)}",
        (
            compared_item(
                "table_a2",
                "Soft accuracy on p, therefore p, □p or ◇p (Table A2)",
                _with_published(measured, "published_introduction.csv"),
            ),
            TableItem(
                "table_a2_intervals",
                "Soft and hard accuracy on these forms, with intervals",
                tables.intervals(rows).query("factor != 'argument_form'"),
            ),
            *effect_items(fitted, name="introduction"),
        ),
    )


def distribution_section(results: Results) -> Section:
    """Appendix C.2."""
    rows = results.scores["distribution"]
    pooled = tables.cells(results.pooled("distribution"))
    accuracy, yes = (
        effects(pooled, response, factors=("cell",), pairs=tables.FORM_CHANGES)
        for response in RESPONSES
    )
    return Section(
        "Distribution of a modality (Appendix C.2)",
        "Does the modality of a conditional distribute over its parts? Necessity over implication "
        "does (theorem), necessity over disjunction does not (spurious); under possibility it is "
        f"the reverse. base is modus ponens of the main set.{remark(accuracy)}",
        (
            TableItem("table_a3", "Scores of each form (Table A3)", tables.distribution(rows)),
            *effect_items(accuracy, name="distribution_accuracy"),
            *effect_items(yes, name="distribution_yes"),
        ),
    )


TERM_TESTS = (
    "F: Wald's test; df2 is the number of models minus one. With too few models, F comes from "
    "Hotelling's T squared over interpretations, and df2 is the number of interpretations minus "
    "df1. chi_square: the paper's likelihood-ratio test against the model without the effect, "
    "both fitted by maximum likelihood, as if the questions of an interpretation were "
    "independent. The interaction is tested in a model that includes it."
)

LIMITS = (
    "verdict: different if p_holm shows a difference; otherwise smaller if all differences of "
    f"{SMALLEST:g} or more are excluded, and open if not. Two one-sided tests, each at 5% and not "
    "corrected, exclude the differences below excluded_below and above excluded_above."
)
"""How to read the verdicts of pairwise tests."""


def valid_section(fitted: Effects | str) -> Section:
    """The confirmatory contrasts (Table 2)."""
    title = "Differences between valid forms"
    text = (
        "Unadjusted means over the questions whose answer is Yes. Modalities and argument forms "
        "are not compared at equal perplexity, since most of a question's perplexity comes from "
        f"its form. With at least {MIN_GROUPS} models, each contrast is computed for every model, "
        "and models are the observations. With fewer models, interpretations are the observations, "
        "and the tests are about these models only. The contrasts were fixed in the code and are "
        "corrected together by Holm's method."
    )
    if isinstance(fitted, str):
        return Section(title, f"{text} No contrast was tested: {fitted}.\n\n{EXPLORATORY}")
    model = fitted.model
    note = f"the observations are {len(model.groups)} models" if model.random else model.note
    items = effect_items(fitted, name="valid")
    return Section(title, f"{text} Note: {note}.\n\n{EXPLORATORY}", items)


def models_section(results: Results) -> Section:
    """The contrasts of both scores, first for each model, then over all models."""
    contrasts = contrasts_by_model(results)
    text = (
        "Means of soft accuracy on valid forms and of the share of Yes on all forms, and their "
        "contrasts, for each model, with errors clustered by interpretation."
    )
    items = [
        TableItem("means_by_model", "Means of each model", means_by_model(results)),
        TableItem("contrasts_by_model", "Pairwise tests of each model", contrasts, LIMITS),
    ]
    if len(results.competent) >= MIN_STUDIES:
        text += (
            " The contrasts over models, which come first, give each model the same weight "
            "(Student's t). The contrast of another model is expected to lie between predicted_low "
            "and predicted_high, measurement error included."
        )
        pooled = pooled_contrasts(contrasts)
        items.insert(0, TableItem("pooled_contrasts", "Contrasts over models", pooled, LIMITS))
    else:
        text += f" Nothing is pooled: fewer than {MIN_STUDIES} models answer and read questions."
    return Section("Each model, and models in general", text, tuple(items))


def adjusted_section(results: Results) -> Section:
    """Formula 4 as in the paper: Figures 3 and 4."""
    fitted = effects(results.pooled("questions", valid=True), "soft_accuracy")
    return Section(
        "The paper's model: soft accuracy on valid forms, adjusted for perplexity (4)",
        "Exploratory: a linear mixed model of the questions whose answer is Yes, with perplexity "
        "in standard deviations from a model's mean, because tokenizers differ. The effects of "
        f"modality and argument form vary by model if there are at least {MIN_GROUPS} models. An "
        "adjusted mean is the mean predicted at mean perplexity. Forms differ in perplexity, so an "
        f"adjusted difference excludes what a form does through perplexity.{remark(fitted)}",
        (*effect_items(fitted, name="adjusted", figure="Figure 3"), *_random_effects(fitted)),
    )


def _random_effects(fitted: Effects | str) -> tuple[Item, ...]:
    """The spread of the random effects, and Figure 4 if the slopes vary."""
    if isinstance(fitted, str):
        return ()
    spread = TableItem(
        "adjusted_spread",
        "Spread of the random effects",
        fitted.model.random_spread,
        "correlation: between the models' intercepts and slopes; blank for all other effects.",
    )
    if fitted.slopes.empty:
        return (spread,)
    return (
        FigureItem(
            "figure4_slopes",
            "Intercept and slope for perplexity of each model (Figure 4)",
            lambda: figures.slopes(fitted.slopes),
            "The sum of the fixed effect and the model's deviation from it.",
        ),
        TableItem("slopes", "Intercept and slope of each model", fitted.slopes),
        TableItem(
            "random_effects", "Deviations from the fixed effects", fitted.model.random_effects
        ),
        spread,
    )


def remark(fitted: Effects | str) -> str:
    """A sentence on the limits of a fit, or on why there is none; usually empty."""
    if isinstance(fitted, str):
        return f" There is no mixed model: {fitted}."
    return f" Note: {fitted.model.note}." if fitted.model.note else ""


def effect_items(
    fitted: Effects | str, *, name: str, figure: str = "", chance: float | None = None
) -> tuple[Item, ...]:
    """Figure, with a line at `chance`, and tables of effects, if they could be estimated.

    `figure` is the paper's. Means that are not adjusted are those of the confirmatory contrasts.
    """
    if isinstance(fitted, str):
        return ()
    words, adjusted = RESPONSES[fitted.model.formula.response], "raw_mean" in fitted.means
    title = f"Means of {words}{', adjusted for perplexity' if adjusted else ' on valid forms'}"
    freedom = f"Student's t with {fitted.model.freedom:,} degrees of freedom"
    crossed = fitted.means["factor"].nunique() > 1
    averaged = "averaged over the other factor with equal weights, " if crossed else ""
    drawn = (
        f"adjusted: means {averaged}at mean perplexity, with the 95% interval by {freedom}. raw: "
        "means over questions. n: number of answers. If a level has no question with mean "
        "perplexity, its adjusted mean is extrapolated."
        if adjusted
        else "Means with 95% intervals, over models or, with few models, clustered by "
        "interpretation. n: number of answers."
    )
    tested = f"{title}: pairwise tests ({'exploratory' if adjusted else 'Table 2, confirmatory'})"
    raw = "Raw means have intervals clustered by interpretation." if adjusted else ""
    tests = f"difference: first minus second. Two-sided, by {freedom}. {LIMITS}"
    told = {
        "means": (title, fitted.means, raw),
        "tests": (tested, fitted.tests, tests),
        "term_tests": (f"Tests of each fixed effect on {words}", fitted.term_tests, TERM_TESTS),
    }
    if adjusted:
        told["fit"] = (f"The mixed model of {words}", fitted.fit, "")
        told["coefficients"] = (f"Fixed effects on {words}", fitted.model.coefficients(), "")
    return (
        FigureItem(
            f"{name}_means",
            f"{title} ({figure})" if figure else title,
            lambda: figures.estimated_means(fitted.means, response=words, chance=chance),
            drawn,
        ),
        *(TableItem(f"{name}_{kind}", *table) for kind, table in told.items()),
    )
