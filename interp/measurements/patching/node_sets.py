"""Faithfulness of sets of cells: areas under the faithfulness curve over the size of the set."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.estimates.compute import estimate
from interp.estimates.declared import Mean, Table
from interp.measurements.patching.tables import GROUPS, PAIR, RECOGNIZED, SHARED, about_pairs
from interp.statistics.summaries import grouped
from interp.tables import INTEGER, NUMBER, column

_CURVE = ["model", "direction", "sites", "ranking"]
"""Columns that identify a curve."""

LEAST_GAP = 0.1
"""Smallest difference between two prompts' metrics, in logits, that may be used as a divisor."""

GRID = np.linspace(0, 1, 101)
"""Shares of the cells at which mean curves are evaluated."""


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

_MEANS = Table(
    name="node_set_curves",
    title="Mean curves",
    text="NS over the share of the cells that are patched together, interpolated between sets.",
    by=[*_CURVE, "recognized", "share"],
    measured="node_sets",
    numbers=[
        Mean(
            *("normalized", "mean NS over pairs", "share", "positive: towards the counterpart"),
            ends=("low", "high"),
        )
    ],
    trials="pairs",
    key="pair_id",
    more=[RECOGNIZED, column("share", NUMBER, "patched cells as a share of all", "share")],
)

_NONE = f"no pair whose two metrics differ by {LEAST_GAP:g} logits or more"


def node_set_table(sets: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """One row per model, direction, sites, ranking and group of pairs: `NODE_SETS`, and left_out.

    In unrecognized pairs, the metrics of the two prompts hardly differ, so shares of their
    difference may be very large.

    NS of a set is [m(set) - m(base)] / [m(source) - m(base)]; it is 0 for no cells. cpr: the
    trapezoidal area under NS over the share of the cells in the set; cmd: the area under |1 - NS|
    (Mueller et al. 2025, who patch everything outside a circuit instead).
    """
    parts, left_out = [], []
    for cell, curves, clusters, left in _curves(sets, pairs):
        areas = [
            [np.trapezoid(height, shares) for height in (faithful, np.abs(1 - faithful))]
            for shares, faithful in curves
        ]
        trials = pd.DataFrame(areas, columns=["cpr", "cmd"], dtype=float).assign(cluster=clusters)
        parts.append(pd.DataFrame({**cell, "why": "" if len(trials) else _NONE}, index=[0]))
        parts.append(trials.join(pd.DataFrame({**cell, "why": ""}, index=trials.index)))
        left_out.append(left)
    columns = [*NODE_SETS.by, "cpr", "cmd", "cluster", "why"]
    trials = pd.concat([pd.DataFrame(columns=columns), *parts], ignore_index=True)
    table = estimate(NODE_SETS, trials)
    table.insert(len(table.columns) - 1, "left_out", left_out)
    return table


def node_set_curves(sets: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Mean NS over pairs, with its interval, interpolated between sets at 101 shares of the cells.

    One row per model, direction, sites, ranking, recognized and share: normalized, low, high,
    pairs. There is no row for a group without pairs.
    """
    parts = []
    for cell, curves, clusters, _ in _curves(sets, pairs):
        for curve, own in zip(curves, clusters, strict=True):
            values = {"share": GRID, "normalized": np.interp(GRID, *curve)}
            parts.append(pd.DataFrame({**cell, **values, "cluster": own}))
    columns = [*_MEANS.by, "normalized", "cluster"]
    return estimate(_MEANS, pd.concat(parts) if parts else pd.DataFrame(columns=columns))


Curve = tuple[Float[np.ndarray, " set"], Float[np.ndarray, " set"]]
"""Shares of the cells in each set, and NS of the set, from no cells to all cells."""


def _curves(
    sets: pd.DataFrame, pairs: pd.DataFrame
) -> Iterator[tuple[dict[str, object], list[Curve], pd.Series, int]]:
    """By ranking and group: the pairs' curves, their clusters, and the number of omitted pairs."""
    joined = sets.join(about_pairs(pairs), on=PAIR).sort_values("cells", kind="stable")
    joined["share"] = joined["cells"] / joined["of_cells"]
    joined["defined"] = (joined["gap"].abs() >= LEAST_GAP) & joined["normalized"].notna()
    by_pair = joined.groupby([*_CURVE, "pair_id"])
    joined["defined"] = by_pair["defined"].transform("all")
    for (cell, members), group in product(grouped(joined, _CURVE), (SHARED, "all")):
        chosen = members[members["recognized"].isin(GROUPS[group])]
        whole = [rows for _, rows in chosen[chosen["defined"]].groupby("pair_id", sort=False)]
        clusters = pd.Series([rows["cluster"].iloc[0] for rows in whole], dtype=object)
        left_out = chosen["pair_id"].nunique() - len(whole)
        curves = [(np.r_[0.0, rows["share"]], np.r_[0.0, rows["normalized"]]) for rows in whole]
        yield {**cell, "recognized": group}, curves, clusters, left_out
