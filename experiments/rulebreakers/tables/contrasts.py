"""Differences of paired accuracy between rules, groups, phrasings and models."""

import pandas as pd

from interp.analysis.accuracy import pairs_of
from interp.analysis.contrasts import contrast_table
from interp.prompts.systems import Contrast
from interp_experiments.rulebreakers.named import NAMED
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.columns import CLUSTER, WEIGHT

EXPLORATORY = (Contrast("question_verb"),)
"""Others that the report shows, without a corrected p-value."""


def contrasts(results: Results) -> pd.DataFrame:
    """Differences of paired accuracy (`interp.analysis.contrasts.contrast_table`), by weight."""
    factors = ["rule", "entity_group", "phrasing", "question_verb", CLUSTER, WEIGHT]
    pairs = pairs_of(results.answers, results.prompts, keep=factors, sides=SIDES)
    pairs["paired"] = pairs[list(SIDES)].all(axis=1)
    return contrast_table(
        pairs, named=NAMED, exploratory=EXPLORATORY, cluster=CLUSTER, weight=WEIGHT
    )
