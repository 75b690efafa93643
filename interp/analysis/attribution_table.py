"""The attribution table: score ratios of each model next to its accuracy (Tables 2 and 3)."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.analysis.accuracy import accuracy_table
from interp.analysis.weighted import (
    geometric_mean,
    largest_share,
    weighted_mean,
    weighted_quantile,
    weighted_sd,
)
from interp.attribution.registry import DEFAULT_METHODS
from interp.errors import UserError

Summary = Callable[[Float[np.ndarray, " n"], Float[np.ndarray, " n"]], float]
"""Reduces values and their weights to one number."""

_RATIOS: Mapping[str, Mapping[str, Summary]] = {
    "ratio": {"{method}_ratio": weighted_mean, "{method}_sd": weighted_sd},
    "ratio_unnormalized": {
        "{method}_ratio_unnormalized": weighted_mean,
        "{method}_unnormalized_sd": weighted_sd,
    },
}
"""Column of the ratios to its mean and standard deviation in this table."""

_ROBUST: Mapping[str, Summary] = {
    "{method}_geometric": geometric_mean,
    "{method}_median": partial(weighted_quantile, share=0.5),
    "{method}_largest_share": largest_share,
}
"""Summaries on which no single prompt decides, and whether one decides on the mean."""


def column_name(method: str) -> str:
    """What columns call a method: the published tables say "gradient" for the input gradient."""
    return "gradient" if method == "input_gradient" else method


def attribution_table(
    ratios: pd.DataFrame, answers: pd.DataFrame, prompts: pd.DataFrame
) -> pd.DataFrame:
    """One row per model, in the column order of the published tables.

    Columns are model; gradient_ratio, gradient_sd, attention_ratio, attention_sd: mean and sample
    standard deviation over all prompts of the ratio of the means of two segments (premise 2 over
    premise 1 where there are premises); the same four of the ratio of the sums; paired_accuracy,
    the accuracy of each side, prompts. Further methods follow these two in both fours. A method
    that was not run is empty; prompts whose ratio is undefined are left out of the means.

    Each prompt counts by its weight, so that the numbers are those of the whole data set where a
    sample took more of one stratum than of another. Last come, for each method, {method}_geometric
    and {method}_median of the ratios of means, and {method}_largest_share: the part of their sum
    that the largest one holds. Where that is more than 0.05, the mean hangs on one prompt, and the
    other two do not.

    Args:
        ratios: what `interp.analysis.segments.segment_ratios` gives.
        answers: rows of the answers table.
        prompts: the prompts table.

    Raises:
        UserError: ratios of several targets.
    """
    targets = ratios["target"].unique()
    if len(targets) > 1:
        raise UserError(
            f"the ratios are of the targets {', '.join(targets)}; expected one, choose its rows"
        )
    methods = list(dict.fromkeys([*DEFAULT_METHODS, *ratios["method"]]))
    weighed = ratios.merge(prompts[["prompt_id", "weight"]], on="prompt_id")
    statistics = [
        _by_model(weighed[weighed["method"] == method], column, summaries, column_name(method))
        for column, summaries in _RATIOS.items()
        for method in methods
    ]
    robust = [
        _by_model(weighed[weighed["method"] == method], "ratio", _ROBUST, column_name(method))
        for method in methods
    ]
    accuracy = accuracy_table(answers, prompts)
    table = accuracy[["model"]].join(pd.concat(statistics, axis="columns"), on="model")
    table = table.join(accuracy.drop(columns="model"))
    return table.join(pd.concat(robust, axis="columns"), on="model")


def _by_model(
    ratios: pd.DataFrame, column: str, summaries: Mapping[str, Summary], method: str
) -> pd.DataFrame:
    """One row per model: the summaries of the ratios that are defined."""
    rows = {
        model: {
            name.format(method=method): summary(
                *(members[name].to_numpy(dtype=float) for name in (column, "weight"))
            )
            for name, summary in summaries.items()
        }
        for model, members in ratios.dropna(subset=[column]).groupby("model")
    }
    names = [name.format(method=method) for name in summaries]
    return pd.DataFrame.from_dict(rows, orient="index", columns=names, dtype=float)
