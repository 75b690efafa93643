"""The columns that tables share, and the order of their rows."""

from collections.abc import Sequence

import pandas as pd

from interp_experiments.rulebreakers.templates import NEGATIONS, PHRASINGS, RULES

CLUSTER, WEIGHT = "entity_pair", "weight"
"""Columns of the cluster of a prompt, and of how many prompts of the data set it represents."""

_ORDER = {
    "rule": RULES,
    "entity_group": ("geographical", "categorical"),
    "verb": tuple(NEGATIONS),
    "phrasing": tuple(phrasing.id for phrasing in PHRASINGS),
    "question_verb": tuple(dict.fromkeys(phrasing.verb for phrasing in PHRASINGS)),
}
"""Values of each factor in the paper's order."""


def in_order(
    table: pd.DataFrame, factors: Sequence[str], *, models: Sequence[str] = ()
) -> pd.DataFrame:
    """Rows in the order of the models, and of the paper's values of the factors."""
    order = {name: _ORDER[name] for name in factors}
    if models:
        order = {"model": tuple(models), **order}
    places = table.assign(
        **{name: pd.Categorical(table[name], values) for name, values in order.items()}
    )
    if not order:
        return table.reset_index(drop=True)
    return table.loc[places.sort_values(list(order), kind="stable").index].reset_index(drop=True)
