"""Shares of groups of different size, shrunken towards their mean, so that they can be ranked.

The raw shares of small groups are the most extreme ones: a ranking of them is one of sizes.

1. Estimate how strongly the trials of one cell, a group's trials by one model, hang together, and
   count each cell as so many independent trials as it is worth.
2. Take each group's mean deviation from the models' own means, so that it does not matter which
   models find everything hard, with its sampling variance.
3. Estimate how much groups differ beyond that variance (DerSimonian and Laird, 1986).
4. Shrink each group's deviation by the share of its variance that is sampling: the empirical Bayes
   estimate of normal means (Morris, 1983, JASA 78).
"""

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.analysis.intervals import Z


def shrunken_shares(
    cells: pd.DataFrame, *, group: str, by: str, share: str, n: str
) -> pd.DataFrame:
    """One row per group: `group`, estimate, low, high, share, trials, effective_trials, cells.

    `share` is the plain mean over the group's cells; `estimate` the shrunken one, with its 95%
    interval of the posterior distribution, which counts the variance between groups as known;
    `trials` the sum of n. Where groups differ no more than by chance, all estimates are the same.

    Args:
        cells: one row per group and model.
        group: the column that names the group.
        by: the column that names the model.
        share: the column of the share of hits.
        n: the column of the number of trials.
    """
    own = cells[share] * cells[n]
    of_model = cells.assign(hits=own).groupby(by)[["hits", n]].transform("sum")
    mean = of_model["hits"] / of_model[n]
    correlation = within_cells(
        *(column.to_numpy(float) for column in (cells[share], cells[n], mean))
    )
    effective = cells[n] / (1 + (cells[n] - 1) * correlation)
    table = (
        cells.assign(
            deviation=cells[share] - mean,
            variance=mean * (1 - mean) / effective,
            mean=mean,
            effective=effective,
        )
        .groupby(group)
        .agg(
            share=(share, "mean"),
            deviation=("deviation", "mean"),
            variance=("variance", "sum"),
            mean=("mean", "mean"),
            trials=(n, "sum"),
            effective_trials=("effective", "sum"),
            cells=(n, "size"),
        )
    )
    sampling = (table["variance"] / table["cells"] ** 2).to_numpy(float)
    between = between_groups(table["deviation"].to_numpy(float), sampling)
    kept = between / (between + sampling) if between > 0 else np.zeros(len(table))
    table["estimate"] = table["mean"] + kept * table["deviation"]
    half = Z * np.sqrt(kept * sampling)
    table["low"] = (table["estimate"] - half).clip(0.0, 1.0)
    table["high"] = (table["estimate"] + half).clip(0.0, 1.0)
    columns = ["estimate", "low", "high", "share", "trials", "effective_trials", "cells"]
    return table[columns].reset_index()


def within_cells(
    share: Float[np.ndarray, " cells"],
    n: Float[np.ndarray, " cells"],
    mean: Float[np.ndarray, " cells"],
) -> float:
    """The correlation of two trials of one cell, from 0 to 1; 0 where no cell has two trials.

    One minus the unbiased variance within cells over that of all trials (Donner, 1986,
    International Statistical Review 54).

    Args:
        share: the share of hits.
        n: the number of trials.
        mean: the share of hits of the cell's model.
    """
    several = n > 1
    variance = (
        np.average(mean[several] * (1 - mean[several]), weights=n[several])
        if several.any()
        else 0.0
    )
    if variance == 0:
        return 0.0
    within = share[several] * (1 - share[several]) * n[several] / (n[several] - 1)
    return float(np.clip(1 - np.average(within, weights=n[several]) / variance, 0.0, 1.0))


def between_groups(
    deviations: Float[np.ndarray, " groups"], sampling: Float[np.ndarray, " groups"]
) -> float:
    """The variance between groups beyond their sampling variances; 0 where it is no larger."""
    known = sampling > 0
    if known.sum() < 2:
        return 0.0
    weights = 1 / sampling[known]
    excess = deviations[known] - np.average(deviations[known], weights=weights)
    scale = weights.sum() - (weights**2).sum() / weights.sum()
    return float(max(0.0, ((weights * excess**2).sum() - (known.sum() - 1)) / scale))
