"""The report's section of contrasts."""

from interp.report.page import Section, TableItem
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.contrasts import contrasts


def contrast_section(results: Results) -> Section:
    """Differences of paired accuracy, those named in advance first."""
    return Section(
        "Contrasts",
        "Differences of paired accuracy, weighted to the data set. The confirmatory ones were "
        "named in the code before any run and are corrected together (p_holm): the chance of any "
        "false finding among them is 5%. The others are exploratory, as is everything else on this "
        "page. Tests and intervals take entity pairs as the unit. detectable is the difference "
        "that a test at 5% finds with a power of 80%: of a smaller one the data say little.",
        (
            TableItem(
                "contrasts",
                "Rules, groups, phrasings and models compared",
                contrasts(results),
                "Of phrasings and the question's verbs: the best minus the worst, with an interval "
                "that holds for all pairs of them at once.",
            ),
        ),
    )
