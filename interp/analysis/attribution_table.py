"""The attribution table: score ratios of each model next to its accuracy (Tables 2 and 3)."""

import pandas as pd

from interp.analysis.accuracy import accuracy_table
from interp.choices import METHODS

_RATIOS = {
    "ratio": ("{method}_ratio", "{method}_sd"),
    "ratio_unnormalized": ("{method}_ratio_unnormalized", "{method}_unnormalized_sd"),
}
"""Column of the attributions table to its mean and standard deviation in this one."""


def attribution_table(
    attributions: pd.DataFrame,
    answers: pd.DataFrame,
    prompts: pd.DataFrame,
    sides: tuple[str, ...],
) -> pd.DataFrame:
    """One row a model, in the column order of the published tables.

    Columns are model; gradient_ratio, gradient_sd, attention_ratio, attention_sd: mean and sample
    standard deviation over all prompts of premise 2 over premise 1, normalised by token counts;
    the same four unnormalised; paired_accuracy, the accuracy of each side, prompts. Further
    methods follow these two in both fours. A method that was not run is empty; prompts whose ratio
    is undefined are left out of the means.
    """
    statistics: dict[str, pd.Series] = {}
    for column, names in _RATIOS.items():
        for method in dict.fromkeys([*METHODS, *attributions["method"]]):
            rows = attributions[attributions["method"] == method]
            by_model = rows.groupby("model")[column]
            for name, values in zip(names, (by_model.mean(), by_model.std()), strict=True):
                statistics[name.format(method=method)] = values
    ratios = pd.DataFrame(statistics)
    accuracy = accuracy_table(answers, prompts, sides)
    table = accuracy[["model"]].join(ratios, on="model")
    return table.join(accuracy.drop(columns="model"))
