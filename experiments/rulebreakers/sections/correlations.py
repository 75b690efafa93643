"""What correlates with accuracy."""

from functools import partial

import pandas as pd

from interp.console import counted
from interp.report.page import FigureItem, Section, TableItem
from interp_experiments.rulebreakers import figures
from interp_experiments.rulebreakers.prompt_models import prompt_models
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.sections.marks import marks
from interp_experiments.rulebreakers.tables.attribution import (
    RATIOS,
    attribution,
    model_correlations,
)
from interp_experiments.rulebreakers.tables.entities import entities, entity_correlations


def correlation_section(results: Results) -> Section:
    """What correlates with accuracy: across models, entity pairs and prompts."""
    models, pairs, mark = attribution(results), entities(results), marks(results)
    correlations, across_pairs = model_correlations(results), entity_correlations(results)
    cities = pairs[pairs["entity_group"] == "geographical"]
    scatter = [
        FigureItem(
            f"{ratio}_and_accuracy",
            f"{ratio.partition('_')[0].capitalize()} ratio and paired accuracy across models",
            partial(figures.ratio_and_accuracy, mark(models), ratio=ratio),
            "Points: geometric mean over prompts of the score of a token of premise 2 over one of "
            "premise 1, and paired accuracy. Whiskers: 95% intervals, clustered by entity pair. "
            f"{_rho(correlations, ratio)}",
        )
        for ratio in RATIOS
    ]
    return Section(
        "What correlates with accuracy",
        "Across models, across the entity pairs of each model, and across prompts.",
        (
            *scatter,
            TableItem(
                "model_correlations",
                "Across models: Spearman's correlation",
                correlations,
                "Up to eight models the p-value is exact, by all permutations.",
            ),
            FigureItem(
                "familiarity_and_accuracy",
                "Familiarity and paired accuracy across cities",
                lambda: figures.familiarity_and_accuracy(mark(cities), mark(across_pairs)),
                "Dots: cities; their area is the number of pairs of prompts. They are moved up or "
                "down by up to 0.02, so that those of the same place can be told apart. rho: "
                "Spearman's correlation over cities; p: corrected by Holm's method over the table "
                "of correlations across entity pairs.",
            ),
            TableItem(
                "entity_correlations",
                "Across entity pairs: Spearman's correlation",
                across_pairs,
                "Familiarity is that of cities; score ratios are those of all entity pairs.",
            ),
            TableItem(
                "prompt_models",
                "Across prompts: what goes with a correct answer to a rulebreaker",
                prompt_models(results),
                "Log-odds of a correct answer per standard deviation, adjusted for rule, verb and "
                "phrasing. ratio_of_entity is the mean of an entity pair, ratio_within_entity the "
                "deviation from it. df: degrees of freedom over entity pairs, infinite where what "
                "varies within them is tested. fitted names the model: where the entity pair "
                "decides nearly every answer, entity pairs are the observations.",
            ),
        ),
    )


def _rho(correlations: pd.DataFrame, ratio: str) -> str:
    """A correlation across models as a sentence."""
    row = correlations[correlations["x"] == ratio].iloc[0]
    if pd.isna(row["rho"]):
        return f"Spearman's correlation is {row['note']}."
    interval = f"[{row['low']:.2f}, {row['high']:.2f}]" if not row["note"] else f"({row['note']})"
    return (
        f"Spearman's rho {row['rho']:.2f} {interval}, p_holm {row['p_holm']:.2f}, over "
        f"{counted(int(row['n']), 'model')}."
    )
