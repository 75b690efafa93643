"""Effects of patches averaged over pairs, with bootstrap intervals; estimates beside exact ones."""

import math
from functools import cache

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.analysis.cells import cells
from interp.analysis.spearman import spearman
from interp.patching.metric import NO_GAP

RESAMPLES = 2000
"""Bootstrap resamples of the pairs, and random signs of the test."""

LEVEL = 0.95
"""Coverage of the intervals."""

GROUPS = {"all": (True, False), "yes": (True,), "no": (False,)}
"""Values of the column `recognized`: all pairs, those where the model prefers the correct answer on
both sides, and the others."""

CELL = ["model", "direction", "method", "site", "layer", "head", "role"]
"""What identifies a group of patches whose effects are averaged over pairs."""

_KEY = ["model", "pair_id", "direction"]


def effect_table(patches: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """One row a model, direction, method, site, layer, head, role and group of pairs.

    Columns are those of `CELL`, then recognized (`GROUPS`); effect, effect_low, effect_high: mean
    over pairs in logits, with its percentile bootstrap interval; recovered, recovered_low,
    recovered_high: mean effect over mean difference between the two prompts, which, unlike a mean
    of shares, no pair with a small difference dominates; p: two-sided, that effects are as often
    positive as negative (random signs); flipped: share of pairs whose preferred answer changes;
    pairs; note: why a statistic is undefined (NaN). Where a role's tokens were patched one by one,
    a pair counts with their mean.
    """
    by_pair = patches.groupby([*CELL, "pair_id"], sort=False, dropna=False, as_index=False)
    means = by_pair[["effect", "flipped"]].mean()
    gaps = pairs[[*_KEY, "recognized"]].assign(gap=pairs["source_metric"] - pairs["base_metric"])
    joined = means.merge(gaps, on=_KEY, validate="many_to_one").dropna(subset=["effect"])
    rows = [
        {**cell, "recognized": group, **_statistics(members[members["recognized"].isin(values)])}
        for cell, members in cells(_ordered(joined), CELL)
        for group, values in GROUPS.items()
    ]
    return pd.DataFrame(rows)


def _ordered(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows by `CELL`, its values in order of appearance, but roles beside their segment's."""
    roles = rows["role"].drop_duplicates().tolist()
    beside = [next(i for i, other in enumerate(roles) if role.startswith(other)) for role in roles]
    ranks = {
        role: (first, index) for index, (role, first) in enumerate(zip(roles, beside, strict=True))
    }
    order = sorted(roles, key=ranks.__getitem__)
    keys = {name: pd.Series(pd.factorize(rows[name])[0], index=rows.index) for name in CELL}
    keys["role"] = rows["role"].map(order.index)
    ranked = pd.DataFrame(keys).sort_values(CELL, kind="stable")
    return rows.loc[ranked.index]


def _statistics(rows: pd.DataFrame) -> dict[str, object]:
    """Mean effect, recovered share and their intervals, over one row a pair."""
    effects, gaps = (rows[name].to_numpy(dtype=float) for name in ("effect", "gap"))
    n = len(rows)
    if not n:
        return {**dict.fromkeys(_NUMBERS, math.nan), "pairs": 0, "note": "no such pairs"}
    weights = _resamples(n)
    low, high = _interval(weights @ effects) if n > 1 else (math.nan, math.nan)
    share, share_low, share_high = _recovered(effects, gaps, weights)
    notes = ["one pair has no interval"] * (n == 1)
    notes += ["the prompts' metrics are alike on average"] * math.isnan(share)
    values = (
        float(effects.mean()),
        low,
        high,
        share,
        share_low,
        share_high,
        _sign_test(effects),
        float(rows["flipped"].astype(float).mean()),
    )
    return {**dict(zip(_NUMBERS, values, strict=True)), "pairs": n, "note": "; ".join(notes)}


_NUMBERS = (
    "effect",
    "effect_low",
    "effect_high",
    "recovered",
    "recovered_low",
    "recovered_high",
    "p",
    "flipped",
)


def _recovered(
    effects: Float[np.ndarray, " n"],
    gaps: Float[np.ndarray, " n"],
    weights: Float[np.ndarray, "resample n"],
) -> tuple[float, float, float]:
    if abs(gaps.mean()) < NO_GAP:
        return math.nan, math.nan, math.nan
    share = float(effects.mean() / gaps.mean()) + 0.0
    resampled_gaps = weights @ gaps
    if len(effects) < 2 or (np.abs(resampled_gaps) < NO_GAP).any():
        return share, math.nan, math.nan
    return share, *_interval((weights @ effects) / resampled_gaps)


def _interval(values: Float[np.ndarray, " resample"]) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _sign_test(effects: Float[np.ndarray, " n"]) -> float:
    """The share of random signs under which the mean is at least as far from zero."""
    if len(effects) < 2:
        return math.nan
    signed = _signs(len(effects)) @ effects / len(effects)
    as_far = int((np.abs(signed) >= abs(effects.mean()) * (1 - 1e-12)).sum())
    return (1 + as_far) / (1 + RESAMPLES)


@cache
def _resamples(n: int) -> Float[np.ndarray, "resample n"]:
    """How often each pair is drawn, over n; the same draws for every cell of n pairs."""
    return np.random.default_rng(0).multinomial(n, [1 / n] * n, size=RESAMPLES) / n


@cache
def _signs(n: int) -> Float[np.ndarray, "resample n"]:
    return np.random.default_rng(0).choice([-1.0, 1.0], size=(RESAMPLES, n))


def verification_table(patches: pd.DataFrame) -> pd.DataFrame:
    """How far estimates are from the exact effects of the cells that were run as well.

    One row a model, direction, estimate and site: cells; mean_error, largest_error: mean and
    largest absolute difference in logits; mean_effect: mean absolute exact effect, to compare;
    rho with rho_low and rho_high: rank correlation of estimate and exact effect; note.
    """
    key = ["model", "pair_id", "direction", "site", "layer", "head", "position", "role"]
    exact = patches[patches["method"] == "exact"]
    estimates = patches[patches["method"] != "exact"]
    both = estimates.merge(exact[[*key, "effect"]], on=key, suffixes=("", "_exact"))
    rows = []
    for cell, members in cells(both, ["model", "direction", "method", "site"]):
        errors = (members["effect"] - members["effect_exact"]).abs()
        rank = spearman(members["effect"], members["effect_exact"])
        rows.append(
            {
                **cell,
                "cells": len(members),
                "mean_error": float(errors.mean()),
                "largest_error": float(errors.max()),
                "mean_effect": float(members["effect_exact"].abs().mean()),
                "rho": rank.rho,
                "rho_low": rank.low,
                "rho_high": rank.high,
                "note": rank.note,
            }
        )
    return pd.DataFrame(rows)
