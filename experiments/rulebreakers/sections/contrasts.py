"""The report's section of contrasts."""

from interp.report.page import Section, TableItem
from interp.statistics.decisions import DIFFERENT, OPEN, SIGNIFICANT, SMALLER, SMALLEST
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.contrasts import contrasts


def contrast_section(results: Results) -> Section:
    """Differences of paired accuracy, those named in advance first."""
    return Section(
        "Contrasts",
        "Differences of paired accuracy, weighted to the data set. The confirmatory ones were "
        "named in the code before any run and are corrected together (p_holm): the chance of any "
        "false finding among them is at most 5%. The others are exploratory, as is everything else "
        "on this page. Tests and intervals take entity pairs as the unit. detectable is the "
        "difference that a test at 5% finds with a power of 80%. Two one-sided tests, each at 5% "
        "and not corrected, exclude all differences below excluded_below and above excluded_above. "
        f"The smallest difference of interest is {SMALLEST:g}, one pair in ten. verdict: "
        f"{DIFFERENT}, where p_holm (of exploratory contrasts, p) is below {SIGNIFICANT:g}; "
        f"{SMALLER}, where no difference is shown and those of interest are excluded; {OPEN}, "
        "where they are not.",
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
