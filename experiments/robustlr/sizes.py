"""How scores depend on the size of the training set (Figure 5)."""

from collections.abc import Sequence

import pandas as pd

from interp.training.folder import training_of
from interp_experiments.robustlr.learning import STATEMENTS, RobustLRTraining
from interp_experiments.robustlr.scores import score_table
from interp_experiments.robustlr.tables import SETS


def training_sizes(models: Sequence[str]) -> pd.DataFrame:
    """One row per model that `train robustlr` made: begun_as, train_set and statements learned."""
    rows = [(model, training_of(model)) for model in models]
    return pd.DataFrame(
        [
            {
                "model": model,
                "begun_as": record.training.model,
                "train_set": str(record.training.options.get("train_set")),
                "statements": theories * STATEMENTS,
            }
            for model, record in rows
            if record is not None
            and record.training.task == RobustLRTraining.name
            and isinstance(theories := record.training.options.get("theories"), int)
        ],
        columns=["model", "begun_as", "train_set", "statements"],
    )


def size_table(rows: pd.DataFrame, sizes: pd.DataFrame) -> pd.DataFrame:
    """Scores of all contrast sets and of all equivalence sets, by the size of the training set.

    Only models with others that began alike and learned another number of statements.

    Args:
        rows: rows of the evaluation sets.
        sizes: what `training_sizes` gives.
    """
    numbers = sizes.groupby(["begun_as", "train_set"])["statements"].transform("nunique")
    kinds = {name: kind for kind, names in SETS.items() for name in names}
    compared = sizes[numbers > 1].merge(rows.assign(sets=rows["set"].map(kinds)), on="model")
    by = ["begun_as", "train_set", "sets", "statements", "model"]
    return score_table(compared.sort_values(by, kind="stable"), by)
