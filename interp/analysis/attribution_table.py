"""The attribution table: score ratios of each model next to its accuracy (Tables 2 and 3)."""

import numpy as np
import pandas as pd

from interp.analysis.accuracy import accuracy_table
from interp.attribution.registry import DEFAULT_METHODS
from interp.errors import UserError

_RATIOS = {
    "ratio": ("{method}_ratio", "{method}_sd"),
    "ratio_unnormalized": ("{method}_ratio_unnormalized", "{method}_unnormalized_sd"),
}
"""Column of the ratios to its mean and standard deviation in this table."""


def column_name(method: str) -> str:
    """What columns call a method: the published tables say "gradient" for the input gradient."""
    return "gradient" if method == "input_gradient" else method


def attribution_table(
    ratios: pd.DataFrame,
    answers: pd.DataFrame,
    prompts: pd.DataFrame,
    sides: tuple[str, ...],
) -> pd.DataFrame:
    """One row per model, in the column order of the published tables.

    Columns are model; gradient_ratio, gradient_sd, attention_ratio, attention_sd: mean and sample
    standard deviation over all prompts of the ratio of the means of two segments (premise 2 over
    premise 1 where there are premises); the same four of the ratio of the sums; paired_accuracy,
    the accuracy of each side, prompts. Further methods follow these two in both fours. A method
    that was not run is empty; prompts whose ratio is undefined are left out of the means.

    Each prompt that was measured counts once, also where a sample took more of one stratum than of
    another. Last come, for each method, {method}_geometric and {method}_median of the ratios of
    means, and {method}_largest_share: the part of their sum that the largest one holds. Where that
    is more than 0.05, the mean hangs on one prompt, and the other two do not.

    Args:
        ratios: what `interp.analysis.segments.segment_ratios` gives.
        answers: rows of the answers table.
        prompts: the prompts table.
        sides: names of the sides of a pair.

    Raises:
        UserError: ratios of several targets.
    """
    targets = ratios["target"].unique()
    if len(targets) > 1:
        raise UserError(
            f"the ratios are of the targets {', '.join(targets)}; expected one, choose its rows"
        )
    methods = list(dict.fromkeys([*DEFAULT_METHODS, *ratios["method"]]))
    statistics: dict[str, pd.Series] = {}
    for column, names in _RATIOS.items():
        for method in methods:
            by_model = ratios[ratios["method"] == method].groupby("model")[column]
            for name, values in zip(names, (by_model.mean(), by_model.std()), strict=True):
                statistics[name.format(method=column_name(method))] = values
    accuracy = accuracy_table(answers, prompts, sides)
    table = accuracy[["model"]].join(pd.DataFrame(statistics), on="model")
    table = table.join(accuracy.drop(columns="model"))
    return table.join(_robust(ratios, methods), on="model")


def _robust(ratios: pd.DataFrame, methods: list[str]) -> pd.DataFrame:
    """By model: summaries of each method's ratios on which no single prompt decides."""
    columns: dict[str, pd.Series] = {}
    for method in methods:
        defined = ratios[ratios["method"] == method].dropna(subset=["ratio"])
        by_model = defined.groupby("model")["ratio"]
        name = column_name(method)
        columns[f"{name}_geometric"] = by_model.agg(_geometric)
        columns[f"{name}_median"] = by_model.median()
        columns[f"{name}_largest_share"] = by_model.max() / by_model.sum()
    return pd.DataFrame(columns)


def _geometric(ratios: pd.Series) -> float:
    """The geometric mean, which is 0 where a ratio is."""
    with np.errstate(divide="ignore"):
        return float(np.exp(np.log(ratios.to_numpy(dtype=float)).mean()))
