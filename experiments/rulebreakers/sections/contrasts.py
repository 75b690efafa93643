"""The report's section of contrasts."""

import pandas as pd

from interp.analysis.accuracy import pairs_of
from interp.analysis.contrasts import Contrast, contrast_table
from interp.report.page import Section, TableItem
from interp_experiments.rulebreakers.named import NAMED
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results

EXPLORATORY = (Contrast("question_verb"),)
"""Others that the report shows, without a corrected p-value."""


def contrasts(results: Results) -> pd.DataFrame:
    """Differences of paired accuracy (`interp.analysis.contrasts.contrast_table`), by weight."""
    factors = ["rule", "entity_group", "phrasing", "question_verb", "entity_pair", "weight"]
    pairs = pairs_of(results.answers, results.prompts, keep=factors, sides=SIDES)
    pairs["paired"] = pairs[list(SIDES)].all(axis=1)
    return contrast_table(
        pairs, named=NAMED, exploratory=EXPLORATORY, cluster="entity_pair", weight="weight"
    )


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
