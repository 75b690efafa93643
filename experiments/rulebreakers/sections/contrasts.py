"""The report's section of contrasts."""

from interp.report.page import Section, TableItem
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.contrasts import contrasts


def contrast_section(results: Results) -> Section:
    """Differences of paired accuracy, those named in advance first."""
    return Section(
        "Contrasts",
        "Differences of paired accuracy, weighted to the data set. Those named in the code before "
        "any run are corrected together (p_holm); the others are exploratory. Tests and intervals "
        "take entity pairs as the unit. `detectable` is the difference that a test at 5% finds "
        "with a power of 80%: of a smaller one the data say little.",
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
