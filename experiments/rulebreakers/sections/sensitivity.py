"""Whether the sides are told apart, and confidence."""

from interp.report.page import FigureItem, Section, TableItem
from interp_experiments.rulebreakers import figures
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.sections.marks import marks
from interp_experiments.rulebreakers.tables.confidence import confidence, confidence_differences
from interp_experiments.rulebreakers.tables.sensitivity import sensitivity


def sensitivity_section(results: Results) -> Section:
    """Whether the sides are told apart at all, and Figure 5."""
    table, mark = confidence(results), marks(results)
    entities = confidence_differences(results)
    return Section(
        "Sensitivity and confidence",
        "Does a model tell the sides of a pair apart, wherever it draws the line between Yes and "
        "No? Concordance and AUROC above 0.5 and d' above 0 say so; a bias above 0 leans to No, "
        "below to Yes. A model of high concordance and low paired accuracy notices rulebreakers "
        "and accepts them all the same.",
        (
            TableItem(
                "sensitivity",
                "How well the sides are told apart",
                sensitivity(results),
                "concordance: share of pairs in which the relative probability of the positive "
                "answer, c+ / (c+ + c-), is higher on the non-rulebreaker, with its interval and "
                "the test that it is a half. auroc: the same of any two prompts. chance_yes_rate "
                "and independent_sides: paired accuracies to be expected by the rates of positive "
                "answers, of a model blind to the side, and of one whose sides are independent.",
            ),
            FigureItem(
                "figure5_confidence",
                "Confidence in positive answers, right and wrong (Figure 5)",
                lambda: figures.confidence(mark(table), mark(entities)),
                "Dots: mean difference of one entity pair, over pairs of prompts of which both "
                "sides are answered positively; their area is the number of pairs. Large points: "
                "mean over pairs; whiskers: 95% interval, clustered by entity pair; n: entity "
                "pairs. p by a studentized bootstrap over entity pairs, corrected by Holm's "
                "method over the models. Above 0, a model is surer where the answer is right.",
            ),
            TableItem(
                "confidence",
                "Confidence in positive answers",
                table,
                "difference: non-rulebreaker, where the positive answer is right (6), minus "
                "rulebreaker, where it is wrong (7), within pairs of which both are answered "
                "positively; share: of all pairs. Columns in _paper are Welch's test over all "
                "positive answers, as the paper makes it: it takes prompts about one entity for "
                "independent, and compares different entities.",
            ),
        ),
    )
