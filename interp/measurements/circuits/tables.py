"""How much of a model's answer its circuits preserve, and whether they do so in every phrasing.

f(C) = [mean m(C) - mean m(empty)] / [mean m(full) - mean m(empty)], a ratio of means over pairs
(MIB, Mueller et al. 2025): 1 corresponds to the whole model on the clean prompt, and 0 to the whole
model on the corrupt prompt or, for whole answers, to the measured empty circuit. cmd is the area
under |1 - f| over the share of edges, by the trapezoidal rule, starting at the smallest share; 0 is
best. cpr is the area under f, which is capped at 1 at each share, since a circuit that exaggerates
the answer would otherwise score best.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.estimates.compute import estimate
from interp.estimates.declared import Mean, Table
from interp.statistics.clusters import FEWEST, LEAST_ERROR, RESAMPLES
from interp.statistics.means import studentized_ends
from interp.statistics.resampling import bootstrap_counts
from interp.statistics.summaries import grouped
from interp.tables import BOOLEAN, NO_GAP, TEXT, column

BOUNDS = (0.05, 0.1, 0.2)
"""Bounds on the distance from the whole model; the smallest circuit within each bound is found."""


_Height = tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]
"""A height above the share of edges, and its slope, as functions of f."""

_HEIGHTS: Mapping[str, _Height] = {
    "cmd": (lambda f: np.abs(1 - f), lambda f: np.sign(f - 1)),
    "cpr": (lambda f: np.minimum(f, 1), lambda f: (f < 1).astype(float)),
}
"""The heights whose areas are computed."""

_RANKING = ["method", "choice"]

_ROUNDING = 1e-5
"""An f closer to 0 than this differs from the empty circuit's f only by rounding in float32."""


_SMALL = f"undefined: the two prompts differ by less than {NO_GAP:g} logits on average"
_OTHERS = "the circuits of two models have different edges"

CIRCUITS = Table(
    name="circuit_table",
    title="Circuits by size",
    text="f by the share of edges chosen. edges: number of chosen edges on a path from the input "
    "to the logits (mean over draws).",
    by=["model", *_RANKING, "share", "edges"],
    measured="circuits",
    numbers=[
        Mean(
            "f",
            "share of the difference between the two prompts that the circuit keeps",
            "share",
            "positive: towards the whole model",
            of="kept",
            over="gap",
        )
    ],
    trials="pairs",
    key="pair_id",
    split=["model", *_RANKING],
    alone=_OTHERS,
)


def circuit_trials(circuits: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """One row per model, method, choice, share and pair, for `CIRCUITS`.

    Columns: edges; kept: the metric above that of the empty circuit (mean over draws); gap: that of
    the whole model above it; why: kept is NaN, where gaps are below `NO_GAP` on average.
    """
    by = ["model", *_RANKING, "share"]
    edges = circuits.drop_duplicates([*by, "draw"]).groupby(by, sort=False)["edges"].mean()
    means = circuits.groupby([*by, "pair_id"], sort=False)["metric"].mean().reset_index()
    trials = means.merge(_ends(pairs), on=["model", "pair_id"]).merge(edges.reset_index(), on=by)
    trials["gap"] = trials["base_metric"] - trials["empty"]
    few = trials["gap"].groupby([trials[name] for name in by]).transform("mean").abs() < NO_GAP
    trials["kept"] = trials["metric"] - trials["empty"]
    small = trials["kept"].abs() < _ROUNDING * trials["gap"].abs()
    trials["kept"] = trials["kept"].mask(small, 0.0).mask(few)
    trials["why"] = few.map({True: _SMALL, False: ""})
    place = trials.groupby([*by[:-1]], sort=False).ngroup()
    order = np.lexsort((trials["share"], place))
    return trials.iloc[order].reset_index(drop=True)


def _ends(pairs: pd.DataFrame) -> pd.DataFrame:
    """The metrics of the whole model and of the empty circuit, by model and pair."""
    # Behind prompts of different lengths, whole answers attend to less than the source prompt.
    measured = pairs.get("empty_metric", pairs["source_metric"]).fillna(pairs["source_metric"])
    return pairs.assign(empty=measured)[["model", "pair_id", "base_metric", "empty"]]


def circuit_area_table(
    circuits: pd.DataFrame, pairs: pd.DataFrame, clusters: Mapping[str, object]
) -> pd.DataFrame:
    """One row per model, method and choice, in ascending order of cmd within each model.

    Areas (cmd, cpr, with _low and _high) are averaged over draws. Intervals come from a studentized
    bootstrap over clusters, with errors linearized in the sums of f; they are NaN for fewer than
    `FEWEST` clusters. Further columns are pairs and clusters.
    """
    rows = []
    for curve in _curves(circuits, pairs, clusters):
        row: dict[str, object] = {**curve.key}
        for name, height in _HEIGHTS.items():
            area, low, high = curve.area(height)
            row |= {name: area, f"{name}_low": low, f"{name}_high": high}
        rows.append({**row, "pairs": curve.pairs, "clusters": len(curve.gaps)})
    numbers = [f"{name}{end}" for name in _HEIGHTS for end in ("", "_low", "_high")]
    table = pd.DataFrame(rows, columns=["model", *_RANKING, *numbers, "pairs", "clusters"])
    order = table.groupby("model", sort=False)["cmd"].rank(method="first")
    return table.assign(order=order, place=pd.factorize(table["model"])[0]).sort_values(
        ["place", "order"], ignore_index=True
    )[table.columns]


@dataclass(frozen=True)
class _Curve:
    """The sums of f by cluster, for one ranking."""

    key: Mapping[str, object]
    shares: Float[np.ndarray, " share"]
    kept: Float[np.ndarray, "cluster draw share"]
    """Each circuit's metric above that of the empty circuit."""
    gaps: Float[np.ndarray, " cluster"]
    """The whole model's metric above it; NaN if it hardly differs on average."""
    pairs: int

    def area(self, height: _Height) -> tuple[float, float, float]:
        """The mean area over draws, and the ends of its interval."""
        counts = np.ones((1, len(self.gaps)))
        area, error = self._area_and_error(height, counts)
        if len(self.gaps) < FEWEST or not np.isfinite(error).all():
            return float(area[0]), np.nan, np.nan
        counts = bootstrap_counts(len(self.gaps), RESAMPLES).astype(float)
        drawn, errors = self._area_and_error(height, counts)
        distances = (drawn - area) / np.maximum(errors, LEAST_ERROR * error)
        low, high = studentized_ends(area, error, distances[None])
        return float(area[0]), float(low[0]), float(high[0])

    def _area_and_error(
        self, height: _Height, counts: Float[np.ndarray, "resample cluster"]
    ) -> tuple[Float[np.ndarray, " resample"], Float[np.ndarray, " resample"]]:
        """The area in each resample, and its linearized standard error (see `means`)."""
        clusters, draws, shares = self.kept.shape
        gap = counts @ self.gaps
        f = (counts @ self.kept.reshape(clusters, -1) / gap[:, None]).reshape(-1, draws, shares)
        f = np.where(np.abs(f) < _ROUNDING, 0.0, f)
        above, slope_of = height
        area = np.trapezoid(above(f), self.shares, axis=-1).mean(-1)
        between = np.diff(self.shares) / 2
        # The weights of the heights in the area.
        widths = np.append(between, 0.0) + np.insert(between, 0, 0.0)
        slope = slope_of(f) * widths / draws
        away = np.tensordot(slope, self.kept, axes=([1, 2], [1, 2]))
        away -= (slope * f).sum(axis=(1, 2))[:, None] * self.gaps
        squares = (counts * away**2).sum(axis=1)
        return area, np.sqrt(clusters / max(clusters - 1, 1) * squares) / np.abs(gap)


def _curves(
    circuits: pd.DataFrame, pairs: pd.DataFrame, clusters: Mapping[str, object]
) -> Iterator[_Curve]:
    ends = _ends(pairs).set_index(["model", "pair_id"])
    for key, rows in grouped(circuits, ["model", *_RANKING]):
        wide = rows.pivot(index="pair_id", columns=["draw", "share"], values="metric")
        wide = wide.sort_index(axis="columns")
        draws = wide.columns.get_level_values("draw").nunique()
        full, empty = ends.loc[[(key["model"], pair) for pair in wide.index]].to_numpy(float).T
        columns = np.column_stack([wide.to_numpy(float) - empty[:, None], full - empty])
        sums = pd.DataFrame(columns).groupby(wide.index.map(clusters)).sum().to_numpy()
        gaps = sums[:, -1] if abs(float((full - empty).mean())) >= NO_GAP else sums[:, -1] * np.nan
        shares = wide.columns.get_level_values("share").unique().to_numpy(float)
        yield _Curve(key, shares, sums[:, :-1].reshape(len(sums), draws, -1), gaps, len(wide))


SPLIT = Table(
    name="split_table",
    title="Circuits by value",
    text="How far a circuit is from the whole model, for each value of the split factor: in the "
    "mean metric over the value's pairs, in units of the mean difference between the two prompts "
    "over all pairs.",
    by=["model", *_RANKING, "share", "value", "chosen", "edges"],
    measured="circuits",
    numbers=[Mean("distance", "how far the circuit is from the whole model", "share", of="away")],
    trials="pairs",
    key="pair_id",
    alone=_OTHERS,
    more=[
        column("value", TEXT, "the value of the split factor"),
        column("chosen", BOOLEAN, "whether circuits were chosen by the effects for this value"),
    ],
)


def split_table(
    circuits: pd.DataFrame,
    pairs: pd.DataFrame,
    clusters: Mapping[str, object],
    values: Mapping[str, str],
    chosen: Collection[str],
) -> pd.DataFrame:
    """Each circuit's distance from the whole model, for each value of the split factor.

    As `SPLIT`, with distance: |mean m(C) - mean m(full)| over the value's pairs, as a share of
    |mean m(full) - mean m(empty)| over all pairs, so that it is defined even for a value whose
    pairs do not change the metric m. Random circuits are omitted. Circuits were chosen by the
    effects for the values in `chosen`.
    """
    rows = circuits[circuits["method"] != "random"]
    trials = rows.merge(pairs[["model", "pair_id", "base_metric", "source_metric"]])
    gaps = trials["base_metric"] - trials["source_metric"]
    each = gaps[~trials.duplicated(["model", "pair_id"])].groupby(trials["model"]).mean().abs()
    value = trials["pair_id"].map(values)
    trials = trials.assign(
        away=(trials["metric"] - trials["base_metric"]) / trials["model"].map(each),
        value=value,
        chosen=value.isin(chosen),
        cluster=trials["pair_id"].map(clusters),
    ).sort_values("value", kind="stable")
    models = pd.factorize(rows["model"], sort=False)[1]
    place = trials["model"].map(models.get_loc)
    return _folded(estimate(SPLIT, trials.loc[place.sort_values(kind="stable").index]))


def _folded(table: pd.DataFrame) -> pd.DataFrame:
    """The table of absolute values of signed ones."""
    low, high = table["distance_low"], table["distance_high"]
    nearest, farthest = (np.abs([low, high]).min(0), np.abs([low, high]).max(0))
    inside = (low <= 0) & (high >= 0)
    return table.assign(
        distance=table["distance"].abs(),
        distance_low=np.where(inside, 0.0, nearest),
        distance_high=farthest,
    )


def survival_table(distances: pd.DataFrame) -> pd.DataFrame:
    """The smallest circuit close enough to the model for every chosen value, tested on the others.

    One row per model, method, choice and bound. share, edges: size of the smallest circuit whose
    distance is at most `bound` for every chosen value (NaN if there is none); largest_chosen,
    largest_tested: the circuit's largest distance among chosen and among tested values; worst: the
    tested value with the largest distance; held: number of tested values within the bound; tested:
    number of tested values.
    """
    rows = []
    for key, members in grouped(distances, ["model", *_RANKING]):
        largest = members.groupby(["chosen", "share"])["distance"].max()
        for bound in BOUNDS:
            fits = largest[True][largest[True] <= bound].index if True in largest else []
            row: dict[str, object] = {**key, "bound": bound}
            if len(fits):
                fitting = members[members["share"] == min(fits)]
                tested = fitting[~fitting["chosen"].astype(bool)]
                worst = tested.nlargest(1, "distance")
                row |= {
                    "share": min(fits),
                    "edges": int(fitting["edges"].iloc[0]),
                    "largest_chosen": largest[True][min(fits)],
                    "largest_tested": tested["distance"].max(),
                    "worst": "".join(worst["value"].astype(str)),
                    "held": int((tested["distance"] <= bound).sum()),
                    "tested": len(tested),
                }
            rows.append(row)
    numbers = ["share", "edges", "largest_chosen", "largest_tested", "worst", "held", "tested"]
    return pd.DataFrame(rows, columns=["model", *_RANKING, "bound", *numbers])
