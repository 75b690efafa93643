"""Accuracy by phrasing and by the question's verb."""

from functools import partial

from interp.report.page import FigureItem, Section, TableItem
from interp_experiments.rulebreakers import figures
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.sections.marks import WHISKERS, marks
from interp_experiments.rulebreakers.tables.accuracy import accuracy, phrasings


def phrasing_section(results: Results) -> Section:
    """Figures 7 and 8."""
    by_phrasing, spread = accuracy(results, "phrasing"), phrasings(results)
    by_verb, mark = accuracy(results, "question_verb"), marks(results)
    names = dict(zip(SIDES, ("rulebreakers", "non_rulebreakers"), strict=True))
    return Section(
        "Phrasings",
        "yn asks for Yes or No, tf for True or False.",
        (
            FigureItem(
                "figure7_phrasings",
                "Paired accuracy by phrasing (Figure 7)",
                lambda: figures.paired_accuracy_by_phrasing(mark(by_phrasing), mark(spread)),
                "Cells: paired accuracy, and its 95% interval clustered by entity pair. range: of "
                "the highest over the lowest phrasing; SD: between phrasings.",
            ),
            *(
                FigureItem(
                    f"figure8_{name}",
                    f"Accuracy on {name.replace('_', '-')} by the question's verb (Figure 8)",
                    partial(figures.accuracy_by_question_verb, mark(by_verb), side=side),
                    f"Points: share of prompts answered correctly; n: pairs. {WHISKERS}",
                )
                for side, name in names.items()
            ),
            TableItem("phrasings", "Range of the phrasings (Appendix D)", spread),
            TableItem("accuracy_by_phrasing", "Accuracy by phrasing", by_phrasing),
            TableItem("accuracy_by_question_verb", "Accuracy by the question's verb", by_verb),
        ),
    )
