"""Paired accuracy and accuracy by side, by model and factors."""

import pandas as pd

from interp.analysis.accuracy import accuracy_by
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.columns import CLUSTER, WEIGHT, in_order


def accuracy(results: Results, *factors: str) -> pd.DataFrame:
    """Paired accuracy and accuracy by side, by model and factors (Figures 3, 4, 7 and 8).

    Prompts about one entity pair are a cluster, which the intervals take into account. Rows are in
    the order of the study's models and of the paper's rules, verbs and phrasings.
    """
    table = accuracy_by(
        results.answers,
        results.prompts,
        factors=factors,
        sides=SIDES,
        cluster=CLUSTER,
        weight=WEIGHT,
    )
    return in_order(table, factors, models=results.answers["model"].unique().tolist())


def phrasings(results: Results) -> pd.DataFrame:
    """How paired accuracy differs between phrasings, one row per model (Appendix D).

    Columns are model, mean, sd (of a sample), lowest and highest with their phrasings, range. The
    deviations of small samples are in part chance.
    """
    table = accuracy(results, "phrasing").query("measure == 'paired'")
    rows = []
    for model, own in table.groupby("model", sort=False):
        by_phrasing = own.set_index("phrasing")["accuracy"]
        rows.append(
            {
                "model": model,
                "range": by_phrasing.max() - by_phrasing.min(),
                "mean": by_phrasing.mean(),
                "sd": round(float(by_phrasing.std()), 12),  # of equal numbers it is not quite 0
                "lowest": by_phrasing.min(),
                "highest": by_phrasing.max(),
                "lowest_phrasing": by_phrasing.idxmin(),
                "highest_phrasing": by_phrasing.idxmax(),
            }
        )
    return pd.DataFrame(rows)
