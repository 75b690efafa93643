"""Faithfulness of sets of cells: areas under the faithfulness curve over the size of the set."""

import numpy as np
import pandas as pd

from interp.estimates.compute import estimate
from interp.estimates.declared import Mean, Table
from interp.measurements.patching.tables import GROUPS, PAIR, RECOGNIZED, SHARED, about_pairs
from interp.statistics.summaries import grouped
from interp.tables import INTEGER, column

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

    NS of a set is [m(set) - m(base)] / [m(source) - m(base)]; it is 0 for no cells. cpr: the
    trapezoidal area under NS over the share of the cells in the set; cmd: the area under |1 - NS|
    (Mueller et al. 2025, who patch everything outside a circuit instead).
    """
    joined = sets.join(about_pairs(pairs), on=PAIR).sort_values("cells", kind="stable")
    areas = [{**of, **_areas(own)} for of, own in grouped(joined, [*_CURVE, "pair_id"])]
    columns = [*_CURVE, "recognized", "cluster", "cpr", "cmd"]
    each = pd.DataFrame(areas, columns=columns).astype({"cpr": float, "cmd": float})
    groups = [SHARED, "all"]
    of_group = [each[each["recognized"].isin(GROUPS[name])] for name in groups]
    parts = [rows.assign(recognized=name) for name, rows in zip(groups, of_group, strict=True)]
    trials = pd.concat(parts, ignore_index=True)
    known = trials.groupby([*NODE_SETS.by])["cpr"].agg(["size", "count"])
    named = pd.DataFrame({"recognized": groups})
    rows = each[_CURVE].drop_duplicates().merge(named, how="cross")
    rows = rows.join(known, on=[*NODE_SETS.by]).fillna({"size": 0, "count": 0})
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
    return {**about, **{name: np.trapezoid(own, shares) for name, own in heights.items()}}
