"""Mean effects of patching over pairs, and comparisons of estimates with exact effects.

Pairs of one cluster, such as those about one city, are resampled together and change sign together.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from interp.choices import CONTROL, COUNTERPART
from interp.estimates.compute import estimate
from interp.estimates.declared import Largest, Mean, Plain, Table
from interp.report.formatting import segment_label
from interp.statistics.classical import spearman
from interp.statistics.summaries import grouped
from interp.tables import INTEGER, NO_GAP, TEXT, column

GROUPS = {"all": (True, False), "yes": (True,), "no": (False,)}
"""Values of the column `recognized`: all pairs, the pairs in which the model prefers the correct
answer on both sides, and the other pairs.
"""

SHARED = "yes"
"""The group with a recovered share. In other groups, the model hardly distinguishes the two
prompts, so their mean difference may be zero or have the wrong sign.
"""

CELL = ["model", "direction", "method", "source", "site", "layer", "head", "role"]
"""Columns that identify patches whose effects are averaged over pairs."""

PAIR = ["model", "pair_id", "direction"]
"""Columns that identify a pair that was run in one direction."""

Parts = Iterable[pd.DataFrame]
"""A table in parts that are processed one at a time and never split a pair."""

RECOGNIZED = column(
    "recognized", TEXT, "`yes`: pairs whose correct answers the model prefers; `no`, `all`"
)
"""A group of pairs (`GROUPS`)."""


def _place(row: Mapping[Any, Any]) -> str:
    head = "" if pd.isna(row["head"]) else f" head {row['head']:.0f}"
    return f"layer {row['layer']}{head}, {segment_label(str(row['role']))}"


EFFECTS = Table(
    name="effect_table",
    title="Effects by role, in logits",
    text="""Means over pairs of the change in the difference of the logits of the two answers that
    the data contrast. source: where activations come from, the counterpart or, if controls were
    run, a prompt about different entities with the same correct answer, which shows the effect of
    mixing two prompts; beyond control: the counterpart's effect minus that of the control, in pairs
    whose counterpart has other activations in the cell. If the tokens of a role were patched one by
    one, a pair's effect is their mean.""",
    by=[*CELL, "recognized"],
    measured="patches",
    numbers=[
        Mean("effect", "the mean effect", "logits", "depends on the pair", tested=0.0),
        Mean(
            "recovered",
            "mean effect over the mean difference of the two prompts, if recognized",
            "share",
            "positive: towards the counterpart, whose metric is 1",
            of="of_gap",
            over="gap",
            aside=True,
        ),
        Plain("flipped", "pairs whose preferred answer changes", "share", why="effect", aside=True),
    ],
    trials="pairs",
    key="pair_id",
    family=[*CELL[:4], "recognized"],
    split=CELL[:5],
    most=5,
    headline=Largest(
        "effect",
        "largest effect at {site} in logits",
        at=_place,
        within=["site"],
        where={"recognized": "all", "source": COUNTERPART},
        terminal=True,
    ),
    more=[RECOGNIZED],
)


def effect_trials(patches: Parts, pairs: pd.DataFrame) -> pd.DataFrame:
    """One row per cell, group of pairs (`GROUPS`) and pair, in the order in which cells are shown.

    Columns: those of `CELL`, recognized (the group), pair_id, cluster, effect and flipped (means
    over tokens), gap (the difference of the two metrics) and of_gap (the effect, where its share of
    the gap is defined), and why (it is not). A group without pairs has a row without a cluster.
    """
    about = about_pairs(pairs)
    cells, effects = _by_cell(patches, about.index)
    effects = effects.join(about.reset_index(), on="pair")
    shown = _ordered(list(cells))
    place = np.empty(len(cells), dtype=int)
    place[[cells[cell] for cell in shown]] = np.arange(len(cells))
    effects["place"] = place[effects["cell"].to_numpy(dtype=int)]
    every = pd.DataFrame({"place": np.repeat(np.arange(len(cells)), len(GROUPS))})
    parts = [every.assign(recognized=[*GROUPS] * len(cells))]
    for group, values in GROUPS.items():
        rows = effects[effects["recognized"].isin(values)].assign(recognized=group)
        parts.append(rows[["place", "recognized", *_VALUES]])
    trials = pd.concat(parts, ignore_index=True)
    no_share = _no_share(trials)
    trials["of_gap"] = trials["effect"].where(no_share == "")
    names = pd.DataFrame(shown, columns=CELL)
    names["head"] = pd.to_numeric(names["head"])
    for name in CELL:
        column = names[name]
        if column.dtype == object:
            column = column.astype(pd.CategoricalDtype(list(column.unique())))
        trials[name] = column.take(trials["place"].to_numpy()).array
    recognized = pd.Categorical(trials["recognized"], [*GROUPS])
    return trials.assign(recognized=recognized, why=no_share)


_VALUES = ["pair_id", "cluster", "effect", "flipped", "gap"]

_ONLY = "no recovered share: defined only for recognized pairs"
_SMALL = "no recovered share: the mean difference is below one standard deviation"


def _no_share(trials: pd.DataFrame) -> pd.Series:
    """Why the prompts' mean difference cannot be a denominator; empty if it can.

    A mean below the standard deviation says little about any pair.
    """
    gaps = trials["gap"].groupby([trials["place"], trials["recognized"]])
    spread = gaps.transform("std").fillna(0.0).clip(lower=NO_GAP)
    reasons = {
        "no such pairs": gaps.transform("count") == 0,
        _ONLY: trials["recognized"] != SHARED,
        _SMALL: gaps.transform("mean").abs() < spread,
    }
    return pd.Series(np.select([*reasons.values()], [*reasons], ""), trials.index)


def grid_of(effects: pd.DataFrame, value: str) -> pd.DataFrame:
    """A column of the table of effects as a grid of roles by layers."""
    grid = effects.pivot(index="role", columns="layer", values=value)
    return grid.reindex(effects["role"].drop_duplicates())


def about_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """recognized, gap (difference of the two metrics) and cluster of each pair (`PAIR`)."""
    gap = pairs["source_metric"] - pairs["base_metric"]
    return pairs.assign(gap=gap).set_index(PAIR)[["recognized", "gap", "cluster"]]


_Cell = tuple[Hashable, ...]
"""Values of `CELL`; the head is None if the site has no heads."""

_NO_EFFECTS = pd.DataFrame(columns=["cell", "pair", "effect", "flipped"]).astype(
    {"cell": int, "pair": int, "effect": float, "flipped": float}
)
"""An empty table with those columns of the patches that are kept."""


def _by_cell(
    parts: Iterable[pd.DataFrame], pairs: pd.Index
) -> tuple[dict[_Cell, int], pd.DataFrame]:
    """The cells, numbered, and each effect with the indices of its cell and pair."""
    cells: dict[_Cell, int] = {}
    kept = [_NO_EFFECTS]
    for part in parts:
        by_pair = part.groupby([*CELL, "pair_id"], sort=False, dropna=False, as_index=False)
        means = by_pair[["effect", "flipped"]].mean().dropna(subset=["effect"])
        means = pd.concat([means, _beyond_control(means)], ignore_index=True)
        means["pair"] = pairs.get_indexer(pd.MultiIndex.from_frame(means[PAIR]))
        named = means[CELL].astype(object).drop_duplicates()
        each = named.where(named.notna(), None).itertuples(index=False, name=None)
        numbers = [cells.setdefault(cell, len(cells)) for cell in each]
        in_part = means.groupby(CELL, sort=False, dropna=False).ngroup()
        means["cell"] = np.array(numbers, dtype=int)[in_part]
        kept.append(means[list(_NO_EFFECTS)].astype(_NO_EFFECTS.dtypes))
    return cells, pd.concat(kept, ignore_index=True)


def _beyond_control(means: pd.DataFrame) -> pd.DataFrame:
    """Rows of the source `beyond control`: counterpart minus control, if the first was patched.

    If the counterpart's activations equal those of the base prompt, its effect is exactly zero.
    """
    of_source = {source: means[means["source"] == source] for source in (COUNTERPART, CONTROL)}
    keys = [name for name in [*CELL, "pair_id"] if name != "source"]
    joined = of_source[COUNTERPART].merge(of_source[CONTROL], on=keys, suffixes=("", "_control"))
    joined = joined[joined["effect"] != 0]
    effect = joined["effect"] - joined["effect_control"]
    joined = joined.assign(effect=effect, flipped=math.nan, source="beyond control")
    return joined[list(means.columns)]


def _ordered(cells: Sequence[_Cell]) -> list[_Cell]:
    """Cells sorted by the order in which values of `CELL` appear, each segment's roles together."""
    roles = list(dict.fromkeys(str(cell[-1]) for cell in cells))
    beside = {role: [role.startswith(other) for other in roles].index(True) for role in roles}
    roles.sort(key=beside.__getitem__)
    orders = [list(dict.fromkeys(column)) for column in zip(*cells, strict=True)]
    orders[-1:] = [roles] if roles else []
    ranks = [{value: rank for rank, value in enumerate(order)} for order in orders]
    return sorted(
        cells, key=lambda cell: [rank[value] for rank, value in zip(ranks, cell, strict=True)]
    )


def verification_table(patches: Parts) -> pd.DataFrame:
    """Errors of estimates, for the cells whose exact effects were measured.

    One row per model, direction, estimate, source and site: cells; mean_error, largest_error: mean
    and largest absolute difference in logits; mean_effect: mean absolute exact effect; rho,
    rho_low, rho_high: rank correlation of estimate and exact effect; and note.
    """
    by, kept = CELL[:5], [*CELL[:5], "effect", "effect_exact"]
    cells = pd.concat([with_exact(part, "inner")[kept] for part in patches], ignore_index=True)
    rows = []
    for cell, members in grouped(cells, by):
        errors = (members["effect"] - members["effect_exact"]).abs()
        rank = spearman(members["effect"], members["effect_exact"], tested=False)
        sizes = {"mean_error": float(errors.mean()), "largest_error": float(errors.max())}
        sizes["mean_effect"] = float(members["effect_exact"].abs().mean())
        ranks = {"rho": rank.rho, "rho_low": rank.low, "rho_high": rank.high, "note": rank.note}
        rows.append({**cell, "cells": len(members), **sizes, **ranks})
    return pd.DataFrame(rows)


def with_exact(patches: pd.DataFrame, how: Literal["left", "inner"]) -> pd.DataFrame:
    """The estimates (inner: of cells that were run too), with the exact effect, effect_exact."""
    key = [*PAIR, "source", "site", "layer", "head", "position", "role"]
    exact = patches["method"] == "exact"
    measured = patches.loc[exact, [*key, "effect"]]
    return patches[~exact].merge(measured, how=how, on=key, suffixes=("", "_exact"))


_CURVE = ["model", "direction", "sites", "ranking"]
"""Columns that identify a curve."""

LEAST_GAP = 0.1
"""Smallest difference between two prompts' metrics, in logits, that may be used as a divisor."""

NODE_SETS = Table(
    name="node_set_table",
    title="Sets of cells patched at once",
    text="""Cells are ranked by absolute effect, or at random, and the first cells are patched
    together from the counterpart; all other cells are computed from them. NS is the recovered share
    of the difference between the metrics of the base prompt and its counterpart.""",
    by=[*_CURVE, "recognized"],
    measured="node_sets",
    numbers=[
        Mean(
            "cpr",
            "area under NS over the share of the cells (higher is better)",
            "share",
            "positive: towards the counterpart",
        ),
        Mean("cmd", "area under |1 - NS| (lower is better)", "share"),
    ],
    trials="pairs",
    key="pair_id",
    more=[
        RECOGNIZED,
        column(
            "left_out",
            INTEGER,
            "pairs whose two metrics differ by less than 0.1 logits, or a set's is not finite",
            "pairs",
        ),
    ],
)

_NONE = f"no pair whose two metrics differ by {LEAST_GAP:g} logits or more"


def node_set_table(sets: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """One row per model, direction, sites, ranking and group of pairs: `NODE_SETS`, and left_out.

    In unrecognized pairs, the metrics of the two prompts hardly differ, so shares of their
    difference may be very large.

    NS of a set is [m(set) - m(base)] / [m(source) - m(base)]; it is 0 for no cells. Areas are
    trapezoidal (Mueller et al. 2025, who patch everything outside a circuit instead).
    """
    joined = sets.join(about_pairs(pairs), on=PAIR).sort_values("cells", kind="stable")
    areas = [{**of, **_areas(curve)} for of, curve in grouped(joined, [*_CURVE, "pair_id"])]
    columns = [*_CURVE, "recognized", "cluster", "cpr", "cmd"]
    each = pd.DataFrame(areas, columns=columns).astype({"cpr": float, "cmd": float})
    groups = pd.DataFrame({"recognized": [SHARED, "all"]})
    parts = [
        each[each["recognized"].isin(GROUPS[name])].assign(recognized=name)
        for name in groups["recognized"]
    ]
    trials = pd.concat(parts, ignore_index=True)
    counts = trials.groupby([*NODE_SETS.by])["cpr"].agg(["size", "count"])
    rows = each[_CURVE].drop_duplicates().merge(groups, how="cross")
    rows = rows.join(counts, on=[*NODE_SETS.by]).fillna({"size": 0, "count": 0})
    rows["why"] = np.where(rows["count"] == 0, _NONE, "")
    table = estimate(NODE_SETS, pd.concat([rows, trials.dropna(subset="cpr")], ignore_index=True))
    table.insert(len(table.columns) - 1, "left_out", (rows["size"] - rows["count"]).astype(int))
    return table


def _areas(rows: pd.DataFrame) -> dict[str, object]:
    """The areas of one pair's curve, NaN where it is undefined, and what is known of the pair."""
    about = {name: rows[name].iloc[0] for name in ("recognized", "cluster")}
    if not (abs(rows["gap"].iloc[0]) >= LEAST_GAP and rows["normalized"].notna().all()):
        return {**about, "cpr": np.nan, "cmd": np.nan}
    shares = np.r_[0.0, rows["cells"] / rows["of_cells"]]
    faithful = np.r_[0.0, rows["normalized"]]
    heights = {"cpr": faithful, "cmd": np.abs(1 - faithful)}
    return {**about, **{name: np.trapezoid(height, shares) for name, height in heights.items()}}
