"""The measured tables joined at three levels: prompt, entity pair, and model."""

from collections.abc import Sequence

import pandas as pd

from interp.analysis.accuracy import is_correct, pairs_of
from interp.analysis.ratios import column_name


def prompt_level(
    answers: pd.DataFrame,
    prompts: pd.DataFrame,
    ratios: pd.DataFrame,
    familiarity: pd.DataFrame,
    *,
    key: str,
    keep: Sequence[str] = (),
) -> pd.DataFrame:
    """One row per model, prompt and method.

    Columns are model, prompt_id, method, ratio, ratio_unnormalized, correct, `key`, those to keep,
    familiarity.

    Args:
        answers: rows of the answers table.
        prompts: the prompts table.
        ratios: what `interp.analysis.segments.segment_ratios` gives.
        familiarity: model, `key` and familiarity (a probability), one row each.
        key: the prompts' column that names their entity pair. It must be the same on both sides of
            a pair of prompts, so where one entity is swapped it is the other.
        keep: further columns of the prompts, such as the phrasing.
    """
    columns = list(dict.fromkeys(["prompt_id", key, *keep]))
    shown = ratios[["model", "prompt_id", "method", "ratio", "ratio_unnormalized"]]
    answered = answers[["model", "prompt_id"]].assign(correct=is_correct(answers))
    return (
        shown.merge(answered, on=["model", "prompt_id"], validate="many_to_one")
        .merge(prompts[columns], on="prompt_id", validate="many_to_one")
        .merge(
            familiarity[["model", key, "familiarity"]],
            on=["model", key],
            how="left",
            validate="many_to_one",
        )
    )


def entity_level(
    answers: pd.DataFrame,
    prompts: pd.DataFrame,
    ratios: pd.DataFrame,
    familiarity: pd.DataFrame,
    *,
    key: str,
    sides: tuple[str, ...],
) -> pd.DataFrame:
    """One row per model and entity pair.

    Columns are model, `key`, {side}_accuracy for each side, paired_accuracy, pairs (how many),
    {method}_ratio for each method, familiarity. {method}_ratio is the mean score ratio over the
    prompts of both sides, undefined ratios left out; familiarity is a probability, undefined where
    it was not measured.

    Args:
        answers: rows of the answers table.
        prompts: the prompts table.
        ratios: what `interp.analysis.segments.segment_ratios` gives.
        familiarity: model, `key` and familiarity, one row each.
        key: the prompts' column that names their entity pair, as in `prompt_level`.
        sides: names of the sides of a pair.

    Raises:
        UserError: a key that is no column, or that differs between the sides of a pair.
    """
    pairs = pairs_of(answers, prompts, keep=[key], sides=sides)
    pairs["paired"] = pairs[list(sides)].all(axis=1)
    grouped = pairs.groupby(["model", key], sort=False)
    accuracy = grouped[[*sides, "paired"]].mean().add_suffix("_accuracy").astype(float)
    of_entities = ratios[["model", "prompt_id", "method", "ratio"]].merge(
        prompts[["prompt_id", key]], on="prompt_id", validate="many_to_one"
    )
    by_method = of_entities.groupby(["model", key, "method"], sort=False)["ratio"].mean().unstack()
    by_method = by_method.rename(columns=column_name)
    table = accuracy.assign(pairs=grouped.size()).join(by_method.add_suffix("_ratio"))
    return table.join(familiarity.set_index(["model", key])["familiarity"]).reset_index()


def model_level(
    accuracy: pd.DataFrame, ratios: pd.DataFrame, familiarity: pd.DataFrame
) -> pd.DataFrame:
    """One row per model: accuracies, score ratios and mean familiarity.

    Columns are model; {measure}_accuracy, paired_low, paired_high; of each method
    {method}_geometric with _low and _high, {method}_ratio and {method}_sd of the ratio of means,
    {method}_largest_share, and {method}_ratio_unnormalized and {method}_unnormalized_sd of that of
    sums, all as in `interp.analysis.ratios`; familiarity: the mean over cities; pairs.

    Args:
        accuracy: `interp.analysis.accuracy.accuracy_by` without factors.
        ratios: `interp.analysis.ratios.ratio_table`.
        familiarity: model and familiarity, one row per city.
    """
    by_measure = accuracy.pivot(index="model", columns="measure")
    table = by_measure["accuracy"][accuracy["measure"].unique()].add_suffix("_accuracy")
    for end in ("low", "high"):
        table[f"paired_{end}"] = by_measure[end]["paired"]
    for kind, columns in _RATIO_COLUMNS.items():
        rows = ratios[ratios["ratio"] == kind].set_index(["method", "model"])
        for method in ratios["method"].unique():
            names = {name: column.format(method) for name, column in columns.items()}
            table = table.join(rows.loc[method, list(names)].rename(columns=names))
    table = table.join(familiarity.groupby("model")["familiarity"].mean())
    table["pairs"] = by_measure["pairs"]["paired"]
    ordered: pd.DataFrame = table.loc[accuracy["model"].unique()].reset_index()
    return ordered.rename_axis(columns=None)


_RATIO_COLUMNS = {
    "ratio": {
        "geometric": "{}_geometric",
        "geometric_low": "{}_geometric_low",
        "geometric_high": "{}_geometric_high",
        "mean": "{}_ratio",
        "sd": "{}_sd",
        "largest_share": "{}_largest_share",
    },
    "ratio_unnormalized": {"mean": "{}_ratio_unnormalized", "sd": "{}_unnormalized_sd"},
}
"""By kind of ratio, the column of the ratio table to the one of this table."""
