"""Accuracy on either side and of pairs."""

from interp.analysis.accuracy import notes_without_answer
from interp.report.page import FigureItem, Section, TableItem
from interp_experiments.rulebreakers import figures
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.sections.marks import WHISKERS, marks
from interp_experiments.rulebreakers.tables.accuracy import accuracy
from interp_experiments.rulebreakers.tables.sensitivity import sensitivity


def accuracy_section(results: Results) -> Section:
    """Figures 3 and 4."""
    by_side, expected = accuracy(results), sensitivity(results)
    by_group = accuracy(results, "rule", "entity_group")
    mark = marks(results)
    return Section(
        "Accuracy",
        "A pair counts as recognized when the rulebreaker is rejected and its counterpart accepted "
        "(1); random answers would recognize a quarter.",
        (
            FigureItem(
                "figure4_accuracy",
                "Accuracy on either side (Figure 4)",
                lambda: figures.accuracy_by_side(mark(by_side)),
                f"Points: share of prompts answered correctly; n: pairs. {WHISKERS}",
            ),
            FigureItem(
                "figure3_paired_accuracy",
                "Paired accuracy, overall and by rule and entity group (Figure 3)",
                lambda: figures.paired_accuracy_by_group(mark(by_group), mark(expected)),
                f"Bars: share of pairs with both sides correct. {WHISKERS} Overall is weighted to "
                "the data set. Black line: chance given the rate of positive answers, for a model "
                "that gives as many whatever the side. Diamond: the product of both sides' "
                "accuracies, to be expected if they were independent. Dotted: random answers.",
            ),
            TableItem(
                "accuracy",
                "Accuracy by model (1, 2, 3)",
                by_side,
                "; ".join(notes_without_answer(results.answers)),
            ),
            TableItem("accuracy_by_group", "Accuracy by rule and entity group", by_group),
            TableItem("accuracy_by_verb", "Accuracy by verb", accuracy(results, "verb")),
        ),
    )
