"""Faithfulness of sets of cells: areas under the faithfulness curve over the size of the set."""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.measurements.patching.tables import GROUPS, RESAMPLES, SHARED, about_pairs
from interp.statistics.clusters import FEWEST, too_few
from interp.statistics.resampling import bootstrap_sums
from interp.statistics.summaries import grouped, percentile_interval

_CURVE = ["model", "direction", "sites", "ranking"]
"""Columns that identify a curve."""

LEAST_GAP = 0.1
"""Smallest difference between two prompts' metrics, in logits, that may be used as a divisor."""

GRID = np.linspace(0, 1, 101)
"""Shares of the cells at which mean curves are evaluated."""

Numbers = Float[np.ndarray, " number"]


def node_set_table(
    sets: pd.DataFrame, pairs: pd.DataFrame, *, cluster: str = "pair_id"
) -> pd.DataFrame:
    """One row per model, direction, sites, ranking and group of pairs.

    recognized: "yes" for the pairs that the model recognizes, or "all". In unrecognized pairs,
        the metrics of the two prompts hardly differ, so shares of their difference may be very
        large.

    NS of a set is [m(set) - m(base)] / [m(source) - m(base)]; it is 0 for no cells. cpr: the
    trapezoidal area under NS over the share of the cells in the set; cmd: the area under |1 - NS|
    (Mueller et al. 2025, who patch everything outside a circuit instead). cpr and cmd are means
    over pairs, with percentile intervals (_low, _high) from a bootstrap over at least `FEWEST`
    clusters. pairs, clusters; left_out: number of pairs in which the metrics of the two prompts
    differ by less than `LEAST_GAP`, or in which a set has no finite metric; note: the reason why a
    number is undefined (NaN).

    Args:
        sets: rows of the node_sets table.
        pairs: rows of the pairs table.
        cluster: the column of `pairs` whose values group dependent pairs.
    """
    rows = []
    for cell, curves, clusters, left_out in _curves(sets, pairs, cluster):
        areas = np.array([_areas(curve) for curve in curves]).reshape(-1, 2)
        cpr, cmd = zip(*_with_intervals(areas, clusters), strict=True)
        count = clusters.nunique()
        numbers = (*cpr, *cmd, len(curves), count, left_out, _note(count))
        rows.append({**cell, **dict(zip(_NUMBERS, numbers, strict=True))})
    return pd.DataFrame(rows, columns=[*_CURVE, "recognized", *_NUMBERS])


_NUMBERS = [
    *("cpr", "cpr_low", "cpr_high", "cmd", "cmd_low", "cmd_high"),
    *("pairs", "clusters", "left_out", "note"),
]


def _note(clusters: int) -> str:
    if not clusters:
        return f"no pair whose two metrics differ by {LEAST_GAP:g} logits or more"
    return too_few(clusters) if clusters < FEWEST else ""


def node_set_curves(
    sets: pd.DataFrame, pairs: pd.DataFrame, *, cluster: str = "pair_id"
) -> pd.DataFrame:
    """Mean NS over pairs, with its interval, interpolated between sets at 101 shares of the cells.

    One row per model, direction, sites, ranking, recognized and share: normalized, low, high,
    pairs. There is no row for a group without pairs.
    """
    tables = []
    for cell, curves, clusters, _ in _curves(sets, pairs, cluster):
        if not curves:
            continue
        values = np.array([np.interp(GRID, *curve) for curve in curves])
        means, low, high = _with_intervals(values, clusters)
        numbers = {"share": GRID, "normalized": means, "low": low, "high": high}
        tables.append(pd.DataFrame({**cell, **numbers, "pairs": len(curves)}))
    columns = [*_CURVE, "recognized", "share", "normalized", "low", "high", "pairs"]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


Curve = tuple[Float[np.ndarray, " set"], Float[np.ndarray, " set"]]
"""Shares of the cells in each set, and NS of the set, from no cells to all cells."""


def _curves(
    sets: pd.DataFrame, pairs: pd.DataFrame, cluster: str
) -> Iterator[tuple[dict[str, object], list[Curve], pd.Series, int]]:
    """By ranking and group: the pairs' curves, their clusters, and the number of omitted pairs."""
    about = about_pairs(pairs, cluster)
    joined = sets.join(about, on=["model", "pair_id", "direction"])
    for (cell, members), group in product(grouped(joined, _CURVE), (SHARED, "all")):
        chosen = members[members["recognized"].isin(GROUPS[group])]
        by_pair = [rows.sort_values("cells") for _, rows in chosen.groupby("pair_id", sort=False)]
        defined = [rows for rows in by_pair if _is_defined(rows)]
        clusters = pd.Series([rows["cluster"].iloc[0] for rows in defined], dtype=object)
        left_out = len(by_pair) - len(defined)
        curves = [_curve(rows) for rows in defined]
        yield {**cell, "recognized": group}, curves, clusters, left_out


def _is_defined(rows: pd.DataFrame) -> bool:
    return bool((rows["gap"].abs() >= LEAST_GAP).all() and rows["normalized"].notna().all())


def _curve(rows: pd.DataFrame) -> Curve:
    shares, faithful = rows["cells"] / rows["of_cells"], rows["normalized"]
    return np.r_[0.0, shares.to_numpy(float)], np.r_[0.0, faithful.to_numpy(float)]


def _areas(curve: Curve) -> tuple[float, float]:
    """CPR and CMD of one pair."""
    shares, faithful = curve
    under, beside = (np.trapezoid(values, shares) for values in (faithful, np.abs(1 - faithful)))
    return float(under), float(beside)


def _with_intervals(
    values: Float[np.ndarray, "pair number"], clusters: pd.Series
) -> tuple[Numbers, Numbers, Numbers]:
    """The means over pairs, and the ends of their intervals; NaN if undefined."""
    missing = np.full(values.shape[1], math.nan)
    if not len(values):
        return missing, missing, missing
    means = values.mean(axis=0)
    sums = pd.DataFrame(values).assign(n=1.0).groupby(clusters.to_numpy(), sort=False).sum()
    if len(sums) < FEWEST:
        return means, missing, missing
    resampled = bootstrap_sums(sums.to_numpy(float), resamples=RESAMPLES)
    ratios = resampled[:, :-1] / resampled[:, -1:]
    ends = np.array([percentile_interval(column) for column in ratios.T])
    return means, ends[:, 0], ends[:, 1]
