"""Effects of patches averaged over pairs, with bootstrap intervals; estimates and exact ones."""

import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.analysis.groups import grouped
from interp.analysis.intervals import percentile_interval
from interp.analysis.resampling import bootstrap_sums, random_sign_sums
from interp.analysis.spearman import spearman
from interp.tables import NO_GAP

RESAMPLES = 2000
"""Bootstrap resamples of the pairs, and random signs of the test."""

GROUPS = {"all": (True, False), "yes": (True,), "no": (False,)}
"""Values of the column `recognized`: all pairs, those where the model prefers the correct answer on
both sides, and the others."""

CELL = ["model", "direction", "method", "site", "layer", "head", "role"]
"""What identifies a group of patches whose effects are averaged over pairs."""

_KEY = ["model", "pair_id", "direction"]

Parts = pd.DataFrame | Iterable[pd.DataFrame]
"""A table, whole or in parts of whole pairs that are processed one after the other."""


def effect_table(patches: Parts, pairs: pd.DataFrame) -> pd.DataFrame:
    """One row per model, direction, method, site, layer, head, role and group of pairs.

    Columns are those of `CELL`, then recognized (`GROUPS`); effect, effect_low, effect_high: mean
    over pairs in logits, with its percentile bootstrap interval; recovered, recovered_low,
    recovered_high: mean effect over mean difference between the two prompts, which, unlike a mean
    of shares, no pair with a small difference dominates; p: two-sided, that effects are as often
    positive as negative (random signs); flipped: share of pairs whose preferred answer changes;
    pairs; note: why a statistic is undefined (NaN). Where a role's tokens were patched one by one,
    a pair counts with their mean.

    Only two numbers per cell and pair are kept of each part of `patches`.
    """
    gaps = pairs.set_index(_KEY)[["recognized"]].assign(
        gap=(pairs["source_metric"] - pairs["base_metric"]).to_numpy()
    )
    found = _by_cell(in_parts(patches), gaps.index)
    rows = []
    for cell in _ordered(list(found)):
        members = pd.concat(found.pop(cell), ignore_index=True)
        members = members.join(gaps.reset_index(drop=True), on="pair")
        for group, values in GROUPS.items():
            chosen = members[members["recognized"].isin(values)]
            rows.append({**_named(cell), "recognized": group, **_statistics(chosen)})
    return pd.DataFrame(rows, columns=[*CELL, "recognized", *_NUMBERS, "pairs", "note"])


def in_parts(table: Parts) -> Iterable[pd.DataFrame]:
    """The parts of a table."""
    return [table] if isinstance(table, pd.DataFrame) else table


_Cell = tuple[Hashable, ...]
"""Values of `CELL`; the head is None where the site has none."""


def _by_cell(parts: Iterable[pd.DataFrame], pairs: pd.Index) -> dict[_Cell, list[pd.DataFrame]]:
    """The effect of each cell by pair, and the place of the pair among all, in parts."""
    found: dict[_Cell, list[pd.DataFrame]] = {}
    for part in parts:
        by_pair = part.groupby([*CELL, "pair_id"], sort=False, dropna=False, as_index=False)
        means = by_pair[["effect", "flipped"]].mean().dropna(subset=["effect"])
        means["pair"] = pairs.get_indexer(pd.MultiIndex.from_frame(means[_KEY]))
        for cell, rows in grouped(means, CELL):
            kept = rows[["pair", "effect", "flipped"]].astype(
                {"pair": int, "effect": float, "flipped": float}
            )
            found.setdefault(_values(cell), []).append(kept)
    return found


def _values(cell: dict[str, object]) -> _Cell:
    return tuple(
        None if isinstance(value, float) and math.isnan(value) else value for value in cell.values()
    )


def _named(cell: _Cell) -> dict[str, object]:
    return dict(zip(CELL, (math.nan if v is None else v for v in cell), strict=True))


def _ordered(found: Sequence[_Cell]) -> list[_Cell]:
    """Cells by the values of `CELL` in order of appearance, but roles beside their segment's."""
    roles = list(dict.fromkeys(str(cell[-1]) for cell in found))
    beside = [next(i for i, other in enumerate(roles) if role.startswith(other)) for role in roles]
    places = {role: place for place, role in enumerate(roles)}
    roles.sort(key=lambda role: (beside[places[role]], places[role]))
    orders = [list(dict.fromkeys(column)) for column in zip(*found, strict=True)]
    orders[-1:] = [roles] if roles else []
    ranks = [{value: rank for rank, value in enumerate(order)} for order in orders]
    return sorted(
        found, key=lambda cell: [rank[value] for rank, value in zip(ranks, cell, strict=True)]
    )


def _statistics(rows: pd.DataFrame) -> dict[str, object]:
    """Mean effect, recovered share and their intervals, over one row per pair."""
    n = len(rows)
    if not n:
        return {**dict.fromkeys(_NUMBERS, math.nan), "pairs": 0, "note": "no such pairs"}
    values = rows[["effect", "gap"]].to_numpy(dtype=float)
    means = bootstrap_sums(values, resamples=RESAMPLES) / n
    effects = values[:, 0]
    low, high = percentile_interval(means[:, 0]) if n > 1 else (math.nan, math.nan)
    share, share_low, share_high = _recovered(values, means)
    notes = ["one pair has no interval"] * (n == 1)
    notes += ["the prompts' metrics are alike on average"] * math.isnan(share)
    numbers = (
        float(effects.mean()),
        low,
        high,
        share,
        share_low,
        share_high,
        _sign_test(effects),
        float(rows["flipped"].astype(float).mean()),
    )
    return {**dict(zip(_NUMBERS, numbers, strict=True)), "pairs": n, "note": "; ".join(notes)}


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
    values: Float[np.ndarray, "pairs effect_gap"], means: Float[np.ndarray, "resamples effect_gap"]
) -> tuple[float, float, float]:
    """The mean effect over the mean gap, and its interval, from pairs and resampled means."""
    effect, gap = values.mean(axis=0)
    if abs(gap) < NO_GAP:
        return math.nan, math.nan, math.nan
    share = float(effect / gap) + 0.0
    if len(values) < 2 or (np.abs(means[:, 1]) < NO_GAP).any():
        return share, math.nan, math.nan
    return share, *percentile_interval(means[:, 0] / means[:, 1])


def _sign_test(effects: Float[np.ndarray, " n"]) -> float:
    """The share of random signs under which the mean is at least as far from zero."""
    if len(effects) < 2:
        return math.nan
    means = random_sign_sums(effects, resamples=RESAMPLES) / len(effects)
    as_far = int((np.abs(means) >= abs(effects.mean()) * (1 - 1e-12)).sum())
    return (1 + as_far) / (1 + RESAMPLES)


def verification_table(patches: Parts) -> pd.DataFrame:
    """How far estimates are from the exact effects of the cells that were run as well.

    One row per model, direction, estimate and site: cells; mean_error, largest_error: mean and
    largest absolute difference in logits; mean_effect: mean absolute exact effect, to compare;
    rho with rho_low and rho_high: rank correlation of estimate and exact effect; note.
    """
    by = ["model", "direction", "method", "site"]
    kept = [*by, "effect", "effect_exact"]
    both = pd.concat([_verified(part)[kept] for part in in_parts(patches)], ignore_index=True)
    rows = []
    for cell, members in grouped(both, by):
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


def _verified(patches: pd.DataFrame) -> pd.DataFrame:
    """The estimates of cells that were run as well, with their exact effects."""
    key = ["model", "pair_id", "direction", "site", "layer", "head", "position", "role"]
    exact = patches[patches["method"] == "exact"]
    estimates = patches[patches["method"] != "exact"]
    return estimates.merge(exact[[*key, "effect"]], on=key, suffixes=("", "_exact"))
