"""Soft and hard accuracy, by form and by modality."""

from interp.report.page import FigureItem, Section, TableItem
from interp_experiments.logical_forms import figures, tables
from interp_experiments.logical_forms.results import Results

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
