"""Entity pairs: which are answered well, and what goes with it."""

import pandas as pd

from interp.statistics.classical import spearman_table
from interp.statistics.decisions import holm
from interp_experiments.rulebreakers.entity_features import feature_contrast, most_and_least
from interp_experiments.rulebreakers.levels import entity_level
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results

ENTITY_RATIOS = ("gradient_ratio", "attention_ratio")
"""Columns of the table of entity pairs."""

EXTREMES = 10
"""Entity pairs named at either end of Appendix G's list."""


def entities(results: Results) -> pd.DataFrame:
    """One row per model and entity pair: accuracies, mean ratios, familiarity, number of pairs.

    Familiarity is that of cities.
    """
    columns = ["entity_pair", "entity_group"]
    groups = results.prompts[columns].drop_duplicates()
    table = entity_level(
        results.answers,
        results.prompts,
        results.ratios,
        results.cities(),
        key="entity_pair",
        sides=SIDES,
    )
    table = table.merge(groups, on="entity_pair")
    return table[["entity_pair", "model", *table.columns.drop(["entity_pair", "model"])]]


def entity_correlations(results: Results) -> pd.DataFrame:
    """Spearman's correlations across the entity pairs of each model; of familiarity over cities."""
    pairs = [(name, "paired_accuracy") for name in ("familiarity", *ENTITY_RATIOS)]
    pairs += [("familiarity", ratio) for ratio in ENTITY_RATIOS]
    table = spearman_table(entities(results), pairs=pairs, by=["model"])
    return holm(table, family="across entity pairs")


def extremes(results: Results) -> pd.DataFrame:
    """The entity pairs most and least often answered correctly, over all models (Appendix G)."""
    return most_and_least(entities(results), key="entity_pair", k=EXTREMES)


def names_within(results: Results) -> pd.DataFrame:
    """Cities that contain their country's name against the others (Appendix G)."""
    facts = results.familiarity.drop_duplicates("entity_pair").set_index("entity_pair")
    cities = entities(results).query("entity_group == 'geographical'")
    country = cities["entity_pair"].map(facts["entity_a"])
    city = cities["entity_pair"].map(facts["entity_b"])
    contained = [a in b for a, b in zip(country, city, strict=True)]
    table = feature_contrast(
        cities.assign(city_contains_country=contained),
        value="paired_accuracy",
        feature="city_contains_country",
    )
    return holm(table, family="cities that contain their country")
