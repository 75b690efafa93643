"""The sections of the page, in its order, except those of `effect_sections`."""

import pandas as pd

from interp.extend.cautions import said_outside
from interp.extend.page import FigureItem, Section, TableItem
from interp.extend.results import notes_without_answer
from interp_experiments.logical_forms import figures, tables
from interp_experiments.logical_forms.effect_sections import effect_items, remark
from interp_experiments.logical_forms.effects import RESPONSES, effects
from interp_experiments.logical_forms.forms import MODALITIES
from interp_experiments.logical_forms.results import MIN_ANSWERED, SET, Results
from interp_experiments.scaffold import compared_item


def model_section(results: Results, parameters: TableItem) -> Section:
    """The models that answer the questions and read them."""
    competent = results.competent
    text = (
        "A model is compared if it answers the questions, with a mean probability of Yes and No "
        f"together of at least {MIN_ANSWERED}, and if it reads them: the geometric mean of its "
        "perplexities is below the size of its vocabulary, which is the perplexity of guessing. "
        f"Models compared: {len(competent)} of {len(results.models)}; any others are gray in the "
        "figures. Models compared that also read the nonsense mirror, by the same criterion: "
        f"{len(results.reading('nonsense'))}. Perplexity covers every token from the second on, "
        "including the tokens of a chat template."
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
                tables.with_published(measured, "published_accuracy.csv"),
                "In the published rows, OpenAI-o1 and Gemini gave greedy answers to a sample; "
                "human is the mean of 710 answers. or: disjunctive syllogism, mp: modus ponens, "
                "mt: modus tollens, or_fallacy: affirming a disjunct, ac: affirming the "
                "consequent, da: denying the antecedent. leaderboard: mean on the Open LLM "
                "Leaderboard v2; ranks are among the ten open models.",
            ),
            TableItem(
                "table1_intervals",
                "Soft and hard accuracy with intervals",
                tables.intervals(results.scores["questions"]),
                "For commercial models, the paper reports hard accuracies; compare them with the "
                "hard accuracies here.",
            ),
            TableItem(
                "table1_nonsense",
                "Soft accuracy on the nonsense mirror",
                tables.accuracy(results.scores["nonsense"]),
                pairs={SET: "nonsense"},
            ),
            TableItem("forms", "Every form", by_form),
        ),
    )


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
                "forms, rho mixes perplexity with the effects of the forms; within a form it "
                "does not, since questions are ranked among those of one model and form. Rows "
                f"for {tables.TOGETHER!r} combine the models that answer and can read that set "
                "(the questions or their mirror); they are blank if there is no such model. "
                "Intervals: percentile bootstrap over interpretations.",
            ),
        ),
    )


def affirmation_section(results: Results, affirmed: pd.DataFrame) -> Section:
    """Formula 5: Figure 6."""
    found = effects(results.pooled("questions"), "relative_positive")
    return Section(
        "Affirmation and rejection (5)",
        "The dependent variable is the share of Yes in the probability of Yes and No. Over all "
        "questions, half of the correct answers are Yes, so a mean above 0.5 shows a bias to "
        "affirm, and a mean below 0.5 a bias to reject. The paper does not say which questions "
        "its model is fitted to; here it is fitted to all. (Where the answer is Yes, the share of "
        "Yes is the soft accuracy.) The model is exploratory and adjusted for perplexity; raw "
        f"means are next to the adjusted means.{remark(found)}",
        (
            TableItem(
                "affirmation",
                "Inclination to Yes separated from ability, in log-odds",
                affirmed,
                "bias: mean log-odds of Yes over theorems and fallacies, above 0 for an "
                "inclination to Yes. sensitivity: mean log-odds of the correct answer, 0 if "
                "answers do not depend on whether the conclusion follows.",
            ),
            *effect_items(found, name="yes", figure="Figure 6", chance=0.5),
        ),
    )


def introduction_section(results: Results) -> Section:
    """Appendix C.1: Table A2."""
    rows = results.scores["introduction"]
    measured = tables.accuracy(rows)[["model", *MODALITIES, "n"]]
    found = effects(results.pooled("introduction"), "soft_accuracy", factors=("modality",))
    return Section(
        "Introduction of a modality (Appendix C.1)",
        f"Each form is a sound rule of inference, so the answer is always Yes.{remark(found)}",
        (
            compared_item(
                "table_a2",
                "Soft accuracy on p, therefore p, □p or ◇p (Table A2)",
                tables.with_published(measured, "published_introduction.csv"),
            ),
            TableItem(
                "table_a2_intervals",
                "Soft and hard accuracy on these forms, with intervals",
                tables.intervals(rows).query("factor != 'argument_form'"),
            ),
            *effect_items(found, name="introduction"),
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
