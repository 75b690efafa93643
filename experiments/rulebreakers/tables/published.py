"""The paper's Tables 2 and 3, and what was measured next to them."""

from importlib.resources import files

import pandas as pd

from interp_experiments.rulebreakers.published_differences import published_difference
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.attribution import attribution


def published_tables() -> pd.DataFrame:
    """The paper's Tables 2 and 3; which column is which method is inferred from Section 6."""
    file = files("interp_experiments.rulebreakers") / "data" / "published_tables.csv"
    with file.open(encoding="utf-8") as opened:
        return pd.read_csv(opened)


def measured_and_published(results: Results) -> pd.DataFrame:
    """Measured next to published figures, for the models of the study that the paper measured."""
    measured = attribution(results)
    # The paper gives names without their owners: microsoft/Phi-3-mini-128k-instruct is its
    # Phi-3-mini-128k-instruct. An organism is never one of them.
    names = measured["model"].str.rpartition("/")[2]
    measured["model"] = names.where(~measured["model"].str.startswith("organism/"))
    columns = [column for column in published_tables().columns if column != "model"]
    return published_difference(
        measured.dropna(subset="model"), published_tables(), key="model", columns=columns
    )
