"""Score ratios by model: Tables 2 and 3 of Chan et al. 2024, and robust summaries.

A ratio has no upper bound. One prompt whose denominator is close to zero can dominate the mean of
thousands, so the mean may exceed one although nearly all ratios are below one.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from interp.attribution.registry import DEFAULT_METHODS
from interp.errors import UserError
from interp.estimates.compute import estimate
from interp.estimates.declared import Mean, Median, Plain, Table, deviation
from interp.statistics.summaries import largest_share
from interp.tables import TEXT, column

LARGE_SHARE = 0.05
"""A prompt with a larger share of the sum of all ratios dominates their mean."""

_KINDS = ("ratio", "ratio_unnormalized")
"""Columns of the ratios: of means over tokens (Table 2), and of sums (Table 3)."""

_SIGN = "above 1: the segment in the numerator has the larger score"

RATIOS = Table(
    name="ratio_table",
    title="Score ratios",
    text="Ratios of two segments' scores, over prompts weighted to represent the data set; "
    "`gradient` is the input gradient. Undefined ratios are left out.",
    by=["model", "method", "ratio"],
    measured="segment_scores",
    numbers=[
        Mean("geometric", "geometric mean, 0 if any is 0", "ratio", _SIGN, of="value", logs=True),
        Median("median", "median", "ratio", _SIGN, of="value", aside=True),
        Mean("mean", "mean, which one prompt may dominate", "ratio", _SIGN, of="value", aside=True),
        Plain(
            "largest_share",
            f"the largest one's share in their sum; above {LARGE_SHARE}, the mean depends on it",
            "share",
            of="value",
            how=largest_share,
            why="geometric",
            aside=True,
        ),
        deviation("sd", "sample standard deviation", "ratio", of="value", why="mean"),
    ],
    order=["largest_share"],
    split=["ratio"],
    trials="prompts",
    alone="a geometric mean or median is no mean of what each prompt contributes",
    more=[column("ratio", TEXT, "`ratio` of means over tokens, or `ratio_unnormalized` of sums")],
)
"""Its numbers over `ratio` are columns of `attribution_table`, named after their methods."""

_PUBLISHED: Mapping[str, Mapping[str, str]] = {
    "ratio": {"mean": "{}_mean_ratio", "sd": "{}_sd"},
    "ratio_unnormalized": {"mean": "{}_mean_ratio_unnormalized", "sd": "{}_unnormalized_sd"},
}
"""Names of numbers in the published tables, by the kind of ratio."""


def column_name(method: str) -> str:
    """The name of a method in columns; the published tables call the input gradient "gradient"."""
    return "gradient" if method == "input_gradient" else method


def attribution_table(ratios: pd.DataFrame, accuracy: pd.DataFrame) -> pd.DataFrame:
    """One row per model, in the column order of the published tables.

    Columns are model; gradient_mean_ratio, gradient_sd, attention_mean_ratio, attention_sd: mean
    and sample standard deviation, over all prompts, of the ratio of two segments' mean scores
    (premise 2 over premise 1 if there are premises); four such columns for the ratio of the
    segments' sums; paired_accuracy, the accuracy of each side, and prompts; and, of each method,
    the other numbers of `RATIOS`, of which the main one has its interval. In each group, columns of
    other methods follow; those of a method that was not run are empty. `ratios` is the table
    `RATIOS`, and `accuracy` that of `accuracy_table`.
    """
    methods = dict.fromkeys([*map(column_name, DEFAULT_METHODS), *ratios["method"]])
    cells = ratios.set_index(["ratio", "method", "model"])

    def by_model(kind: str, method: str, number: str) -> np.ndarray:
        index = pd.MultiIndex.from_product([[kind], [method], accuracy["model"]])
        return cells[number].reindex(index).to_numpy(dtype=float)

    first = {
        name.format(method): by_model(kind, method, number)
        for kind, names in _PUBLISHED.items()
        for method in methods
        for number, name in names.items()
    }
    names = [number.name for number in RATIOS.numbers if number.name not in _PUBLISHED["ratio"]]
    names[1:1] = RATIOS.main.interval or ()
    robust = {f"{method}_{n}": by_model("ratio", method, n) for method in methods for n in names}
    published, others = pd.DataFrame(first), pd.DataFrame(robust)
    parts = [accuracy[["model"]], published, accuracy.drop(columns="model"), others]
    return pd.concat(parts, axis="columns")


def ratio_trials(ratios: pd.DataFrame, prompts: pd.DataFrame, *, cluster: str) -> pd.DataFrame:
    """The trials of `RATIOS`: one row per kind of ratio, and ratio that is defined.

    Raises:
        UserError: the ratios belong to several targets.
    """
    targets = ratios.reindex(columns=["target"])["target"].unique()
    if len(targets) > 1:
        raise UserError(
            f"the ratios belong to the targets {', '.join(targets)}; expected a single target: "
            "select the rows of one"
        )
    named = ratios.assign(method=ratios["method"].map(column_name))
    rows = named.merge(prompts[[*{"prompt_id", "pair_id", "weight", cluster}]], on="prompt_id")
    rows["cluster"] = pd.factorize(rows[cluster])[0]
    kinds = [rows.assign(value=rows[kind], ratio=kind) for kind in _KINDS]
    return pd.concat(kinds, ignore_index=True).dropna(subset="value")


def ratio_table(ratios: pd.DataFrame, prompts: pd.DataFrame, *, cluster: str) -> pd.DataFrame:
    """The table `RATIOS`; arguments as `ratio_trials`."""
    return estimate(RATIOS, ratio_trials(ratios, prompts, cluster=cluster))
