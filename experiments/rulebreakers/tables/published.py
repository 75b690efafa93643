"""The paper's Tables 2 and 3, and what was measured next to them."""

from collections.abc import Sequence
from importlib.resources import files

import pandas as pd

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


def published_difference(
    measured: pd.DataFrame, published: pd.DataFrame, *, key: str, columns: Sequence[str]
) -> pd.DataFrame:
    """One row for each row that both tables have and each column to compare.

    Columns are `key`, quantity (the column's name), measured, published, and difference: measured
    minus published, in the column's own unit, undefined where either is. A column that
    a table lacks is undefined there.

    Args:
        measured: one row for each value of `key`.
        published: likewise.
        key: the column that names a row in both, such as "model".
        columns: the columns to compare.
    """
    long = (
        table.reindex(columns=[key, *columns])
        .assign(order=range(len(table)))
        .melt(id_vars=[key, "order"], var_name="quantity", value_name=name)
        for table, name in ((measured, "measured"), (published, "published"))
    )
    ours, theirs = long
    both = ours.merge(
        theirs.drop(columns="order"), on=[key, "quantity"], validate="one_to_one", sort=False
    )
    both = both.sort_values("order", kind="stable", ignore_index=True).drop(columns="order")
    values = both[["measured", "published"]].astype(float)
    return both.assign(**values, difference=values["measured"] - values["published"])
