"""What goes with a correct answer to a rulebreaker, between entity pairs and within each."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from interp.statistics.clusters import FEWEST, too_few
from interp.statistics.decisions import holm
from interp.statistics.mixed.logistic import mixed_logistic_table
from interp_experiments.rulebreakers.levels import prompt_level
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results

ENTITY = "entity_pair"

PREDICTORS = ("ratio_of_entity", "ratio_within_entity", "familiarity")
"""The mean score ratio of an entity pair over its prompts, a prompt's deviation from it, and how
familiar the entity pair is: what goes with the first need not go with the second."""

FACTORS = ("rule", "phrasing", "verb")
"""What the predictors are adjusted for. The entity group follows from the verb. Where they separate
the outcomes, the last is left out until there is an estimate: few entity pairs share a verb."""

FAMILY = "across prompts, predictors of all models and methods"


def prompt_models(results: Results) -> pd.DataFrame:
    """One row per model, method and predictor: what goes with a correct answer to a rulebreaker.

    Each model and method has a mixed-effects logistic regression with random intercepts for entity
    pairs, or, where the entity pair alone decides nearly every outcome, a quasi-binomial regression
    over entity pairs (`interp.statistics.mixed.logistic`; `fitted` says which). Prompts of a rule,
    verb or phrasing whose answers are all alike say nothing of the predictors and are left out;
    `left_out` counts them. Estimates are log-odds per standard deviation of the predictor; what
    belongs to entity pairs has degrees of freedom (`df`) over them. Below ten entity pairs nothing
    is tested.
    """
    groups = _rows(results).groupby(["model", "method"], sort=False, observed=True)
    tables = [_fitted(rows) for _, rows in groups]
    if not tables:
        return pd.DataFrame(columns=["model", "method", "term", "fitted"])
    whole = pd.concat(tables, ignore_index=True)
    shown = whole[whole["term"].isin(PREDICTORS)].reset_index(drop=True)
    return holm(shown, family=FAMILY)


def _fitted(rows: pd.DataFrame) -> pd.DataFrame:
    """The regression of one model and method, adjusted for as many factors as have an estimate."""
    for count in range(len(FACTORS), -1, -1):
        used = without_constant_levels(rows, outcome="correct", factors=FACTORS[:count])
        varying = [name for name in FACTORS[:count] if used[name].nunique() > 1]
        table = mixed_logistic_table(
            used if len(used) else rows,
            outcome="correct",
            terms=[*PREDICTORS, *varying],
            groups=[ENTITY],
            by=["model", "method"],
        )
        if table["estimate"].notna().any():
            break
    if (entities := used[ENTITY].nunique()) < FEWEST and table["p"].notna().any():
        table = table.assign(low=np.nan, high=np.nan, p=np.nan, note=too_few(entities))
    left_out = len(rows) - len(used)
    return table.assign(left_out=left_out, adjusted_for=", ".join(varying))


def without_constant_levels(
    rows: pd.DataFrame, *, outcome: str, factors: Sequence[str]
) -> pd.DataFrame:
    """The rows whose levels of all factors have both outcomes.

    The effect of another level is infinite, and its rows are explained by it alone. To leave a
    level out may leave another one with a single outcome, so this is repeated.
    """
    while True:
        kept = pd.Series(True, index=rows.index)
        for factor in factors:
            kept &= rows.groupby(factor, observed=True)[outcome].transform("nunique") > 1
        if kept.all():
            return rows
        rows = rows[kept]


def _rows(results: Results) -> pd.DataFrame:
    """One row per model, method and rulebreaker, with its predictors and factors."""
    rulebreakers = results.prompts[results.prompts["side"] == SIDES[0]]
    ids = rulebreakers["prompt_id"]
    rows = prompt_level(
        results.answers[results.answers["prompt_id"].isin(ids)],
        rulebreakers,
        results.ratios[results.ratios["prompt_id"].isin(ids)],
        results.familiarity,
        key=ENTITY,
        keep=list(FACTORS),
    ).dropna(subset=["ratio", "familiarity"])
    mean = rows.groupby(["model", "method", ENTITY])["ratio"].transform("mean")
    return rows.assign(ratio_of_entity=mean, ratio_within_entity=rows["ratio"] - mean)
