"""The attribution table: score ratios of each model next to its accuracy (Tables 2 and 3)."""

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
    statistics: dict[str, pd.Series] = {}
    for column, names in _RATIOS.items():
        for method in dict.fromkeys([*DEFAULT_METHODS, *ratios["method"]]):
            by_model = ratios[ratios["method"] == method].groupby("model")[column]
            for name, values in zip(names, (by_model.mean(), by_model.std()), strict=True):
                statistics[name.format(method=column_name(method))] = values
    accuracy = accuracy_table(answers, prompts, sides)
    table = accuracy[["model"]].join(pd.DataFrame(statistics), on="model")
    return table.join(accuracy.drop(columns="model"))
