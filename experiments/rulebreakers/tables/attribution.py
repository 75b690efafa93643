"""Score ratios, next to accuracy and familiarity."""

import pandas as pd

from interp.analysis.ratios import ratio_table
from interp.statistics.classical import spearman_table
from interp.statistics.decisions import holm
from interp_experiments.rulebreakers.levels import model_level
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.accuracy import accuracy
from interp_experiments.rulebreakers.tables.columns import CLUSTER

RATIOS = ("gradient_geometric", "attention_geometric")
"""Columns of the attribution table that are correlated with accuracy over models."""


def attribution(results: Results) -> pd.DataFrame:
    """Score ratios next to accuracy and mean familiarity, one row per model (Tables 2 and 3)."""
    return model_level(accuracy(results), ratios(results), results.cities())


def ratios(results: Results) -> pd.DataFrame:
    """Score ratios summed up robustly, one row per model, method and ratio."""
    return ratio_table(results.ratios, results.prompts, cluster=CLUSTER)


def model_correlations(results: Results) -> pd.DataFrame:
    """Spearman's correlations with paired accuracy across models.

    The score ratios are geometric means, whose order no single prompt decides.
    """
    pairs = [(name, "paired_accuracy") for name in (*RATIOS, "familiarity")]
    return holm(spearman_table(attribution(results), pairs=pairs), family="across models")
