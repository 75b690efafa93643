"""What figures of several sections say of models and of whiskers."""

from collections.abc import Callable

import pandas as pd

from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.sample import competence

WHISKERS = "Whiskers: 95% intervals, Gaffke's bound over entity pairs."
"""What figures of accuracies say of their intervals."""


def marks(results: Results) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """What puts a † behind the names of models that cannot be asked, in tables for figures."""
    asked = competence(results)
    names = asked.loc[~asked["competent"], "model"]
    marked = {name: f"{name} †" for name in names}
    return lambda table: table.assign(model=table["model"].replace(marked))
