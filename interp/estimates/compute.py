"""A declared table as a data frame, from one row per trial."""

from collections.abc import Iterator, Sequence
from dataclasses import fields

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from interp.estimates.declared import Mean, Number, Share, Table
from interp.statistics.clusters import median_interval, too_few
from interp.statistics.decisions import LEAST, holm
from interp.statistics.means import NO_DIVISOR, NO_TRIALS, ZERO, Estimates, estimates, reasons
from interp.statistics.proportions import difference_drawn, proportions
from interp.statistics.summaries import grouped

CLUSTER, WEIGHT, WHY = "cluster", "weight", "why"
"""Columns of trials: the cluster; the weight, 1 where it is missing; and a reason why numbers of
the row are undefined, which its note repeats."""

_AT_ONCE = 4_000_000
"""Number of sums by row and cluster that are held in memory at a time."""


def estimate(table: Table, trials: pd.DataFrame) -> pd.DataFrame:
    """One row per combination of `table.by`, in order of appearance.

    Columns are those of `by`; numbers with intervals, each with its ends; p and p_holm (corrected
    within a family); numbers without intervals; p_holm_least and p_least (the smallest that so many
    tests and clusters allow); the number of trials, clusters, and note, which says what has no
    interval, or is undefined, and why. A number that no row has was not measured, and is not noted.

    Args:
        table: the declaration.
        trials: one row per trial, such as a prompt: the columns of `by`, `CLUSTER`, the values of
            each number (NaN if a trial has none) and, if they differ, `WEIGHT`. A row that lacks a
            cluster is no trial: it only makes sure that its combination has a row.
    """
    by = list(table.by)
    groups = trials.groupby(by, sort=True, dropna=False, observed=True)
    row = groups.ngroup().to_numpy(dtype=int)
    first = pd.Series(np.arange(len(row))).groupby(row).first().to_numpy(dtype=int)
    clustered = trials[CLUSTER].notna().to_numpy()
    sample = _Sample(trials[clustered], row[clustered], len(first))
    columns: dict[str, object] = {name: trials[name].iloc[first].to_numpy() for name in by}
    notes: dict[str, np.ndarray] = {}
    for number in table.numbers:
        added = _columns(table, number, sample)
        notes[number.name] = added.pop("note")
        columns |= added
    clusters = sample.clusters(table.main)
    if table.main.some:
        most = np.max([sample.clusters(number) for number in table.numbers], axis=0)
        clusters = np.where(clusters == 0, most, clusters)
    columns[table.count] = np.bincount(sample.row, minlength=len(first))
    columns[table.clusters] = clusters
    columns["note"] = _notes(table, notes, trials.get(WHY), first)
    frame = pd.DataFrame(columns)
    frame = frame.iloc[np.argsort(first, kind="stable")].reset_index(drop=True)
    if table.tested is not None:
        families = [rows for _, rows in grouped(frame, table.family)] or [frame]
        frame = pd.concat([holm(rows, family="rows") for rows in families]).sort_index()
    if table.ranked:
        parts = [_ranked(rows, table.ranked) for _, rows in grouped(frame, table.split)]
        frame = pd.concat(parts or [frame.assign(rank=0)], ignore_index=True)
    return frame[table.columns]


def values(number: Number, trials: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The columns `by`, and a number as in `estimate`, without its interval.

    One row per combination, as they appear.
    """
    groups = trials.groupby(list(by), sort=False, dropna=False, observed=True).ngroup()
    first = trials.loc[~groups.duplicated(), list(by)].reset_index(drop=True)
    sample = _Sample(trials, groups.to_numpy(dtype=int), len(first))
    return first.assign(**{number.name: sample.ratios(number)})


class _Sample:
    """Trials with the numbers of their rows and clusters."""

    def __init__(self, trials: pd.DataFrame, row: Int[np.ndarray, " trials"], rows: int) -> None:
        self.trials, self.row, self.rows = trials, row, rows
        codes, self.names = pd.factorize(trials[CLUSTER], sort=True)
        self.cluster = np.asarray(codes, dtype=int)
        self.place = row * max(1, len(self.names)) + self.cluster
        weights = trials[WEIGHT] if WEIGHT in trials else pd.Series(1.0, trials.index)
        self.weight = weights.fillna(1.0).to_numpy(dtype=float)

    def values(self, column: str) -> Float[np.ndarray, " trials"]:
        return self.trials[column].to_numpy(dtype=float, na_value=np.nan)

    def above_and_below(
        self, number: Number
    ) -> tuple[Float[np.ndarray, " trials"], Float[np.ndarray, " trials"]]:
        """What a number divides by what; of a trial without a value, both are NaN."""
        above, over = self.values(number.column), number.over if isinstance(number, Mean) else ""
        if isinstance(number, Mean) and number.logs:
            assert not (above < 0).any(), f"{number.name}: a geometric mean of negative values"
            with np.errstate(divide="ignore"):
                above = np.log(above)
        if isinstance(number, Share) and number.minus:
            above = above - self.values(number.minus)
        below = self.values(over) if over else np.ones(len(above))
        defined = ~np.isnan(above) & ~np.isnan(below)
        return np.where(defined, above, np.nan), np.where(defined, below, np.nan)

    def ratios(self, number: Number) -> Float[np.ndarray, " rows"]:
        """The number of each row; NaN without trials, or divided by 0."""
        if number.how is not None:
            computed = np.full(self.rows, np.nan)
            for row, values, weights, _ in self.by_row(number):
                computed[row] = number.how(values, weights)
            return computed
        above, below = self.above_and_below(number)
        order = np.lexsort((below, above, self.row))
        order = order[~np.isnan(above[order])]
        total, divisor = (
            np.bincount(self.row[order], (part * self.weight)[order], self.rows)
            for part in (above, below)
        )
        value = np.full(self.rows, np.nan)
        np.divide(total, divisor, out=value, where=divisor != 0)
        logs = isinstance(number, Mean) and number.logs
        return np.asarray(np.exp(value)) if logs else value

    def by_row(self, number: Number) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Each row with trials: its place, their sorted values, their weights and clusters."""
        values = self.values(number.column)
        order = np.lexsort((self.weight, values, self.row))
        order = order[~np.isnan(values[order])]
        for at in np.split(order, np.flatnonzero(np.diff(self.row[order])) + 1):
            if self.weight[at].sum() > 0:
                yield int(self.row[at[0]]), values[at], self.weight[at], self.cluster[at]

    def clusters(self, number: Number) -> Int[np.ndarray, " rows"]:
        """The number of clusters with a value, by row."""
        defined = ~np.isnan(self.above_and_below(number)[0])
        pairs = pd.unique(self.place[defined])
        return np.bincount(pairs // max(1, len(self.names)), minlength=self.rows)

    def sums(
        self, above: Float[np.ndarray, " trials"], below: Float[np.ndarray, " trials"]
    ) -> Iterator[
        tuple[
            slice,
            Float[np.ndarray, "rows clusters"],
            Float[np.ndarray, "rows clusters"],
            Bool[np.ndarray, "rows clusters"],
        ]
    ]:
        """Rows, the weighted sums of two values by row and cluster, and which there are."""
        # Sums of numbers in another order round differently.
        order = np.lexsort((below * self.weight, above * self.weight, self.place))
        order = order[~np.isnan(above[order])]
        parts = {"above": above * self.weight, "below": below * self.weight}
        each = pd.DataFrame({name: part[order] for name, part in parts.items()})
        each = each.groupby(self.place[order], sort=False).sum()
        row, cluster = np.divmod(each.index.to_numpy(), max(1, len(self.names)))
        size = max(1, _AT_ONCE // max(1, len(self.names)))
        for start in range(0, max(self.rows, 1), size):
            stop = min(start + size, self.rows)
            span = slice(*np.searchsorted(row, [start, stop]))
            shape, place = (stop - start, len(self.names)), (row[span] - start, cluster[span])
            dense = [np.zeros(shape) for _ in range(2)]
            for target, name in zip(dense, ("above", "below"), strict=True):
                target[place] = each[name].to_numpy()[span]
            present = np.zeros(shape, dtype=bool)
            present[place] = True
            yield slice(start, stop), dense[0], dense[1], present


def _columns(table: Table, number: Number, sample: _Sample) -> dict[str, np.ndarray]:
    if isinstance(number, Share):
        return _share_columns(number, sample)
    if not isinstance(number, Mean):
        value = sample.ratios(number)
        reason = NO_DIVISOR if number.how is None else "undefined for such values"
        without = np.where(sample.clusters(number) == 0, NO_TRIALS, reason)
        bare = {number.name: value, "note": np.where(np.isnan(value), without, "")}
        return {**bare, **_median_columns(number, sample)} if number.interval else bare
    tested = number.tested if number is table.tested else None
    parts = [
        estimates(*sums, against=tested, resamples=table.resamples)
        for _, *sums in sample.sums(*sample.above_and_below(number))
    ]
    names = [field.name for field in fields(Estimates)]
    means = Estimates(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
    note = reasons(means, sample.clusters(number))
    ends = (means.value, means.low, means.high)
    of_mean = dict(zip((number.name, *(number.interval or ())), ends, strict=True))
    if number.logs:
        note = np.where(np.isneginf(means.value), ZERO, note)
        of_mean = {name: np.exp(logs) for name, logs in of_mean.items()}
    if tested is not None:
        of_mean |= {"p": means.p, LEAST: means.least}
    return {**of_mean, "note": note}


def _median_columns(number: Number, sample: _Sample) -> dict[str, np.ndarray]:
    ends = np.full((2, sample.rows), np.nan)
    for row, *trials in sample.by_row(number):
        ends[:, row] = median_interval(*trials)
    clusters = sample.clusters(number)
    few = [too_few(int(count)) if count else NO_TRIALS for count in clusters]
    note = np.where(np.isnan(ends[0]), np.array(few, dtype=object), "")
    return {**dict(zip(number.interval or (), ends, strict=True)), "note": note}


def _share_columns(number: Share, sample: _Sample) -> dict[str, np.ndarray]:
    about = {"row": sample.row, CLUSTER: sample.cluster, WEIGHT: sample.weight}
    trials = pd.DataFrame(about).assign(share=sample.values(number.column))
    if number.minus:
        trials["minus"] = sample.values(number.minus)
        trials = trials.dropna()
    trials = trials.sort_values(["row", CLUSTER, WEIGHT, "share"])
    shares = proportions(
        trials,
        values=["share"],
        by=["row"],
        cluster=CLUSTER,
        weight=WEIGHT,
        continuous=number.continuous,
    )
    shares = shares.set_index("row").reindex(range(sample.rows))
    if number.minus and len(trials):
        rows, members = zip(*trials.groupby("row"), strict=True)
        shares.loc[[*rows], ["share", "low", "high"]] = np.array([*map(_difference, members)])
    low, high = number.interval or ("", "")
    names = {number.name: "share", low: "low", high: "high"}
    columns = {name: shares[of].to_numpy(dtype=float) for name, of in names.items()}
    return {**columns, "note": shares["note"].fillna(NO_TRIALS).to_numpy()}


def _difference(trials: pd.DataFrame) -> tuple[float, float, float]:
    """The first share minus the second, of the same trials, and its interval."""
    one, other = (
        trials.assign(hits=trials[name] * trials[WEIGHT], trials=trials[WEIGHT])
        .groupby(CLUSTER)[["hits", "trials"]]
        .sum()
        for name in ("share", "minus")
    )
    value = (one["hits"].sum() - other["hits"].sum()) / one["trials"].sum()
    if len(one) < 2:
        return value, np.nan, np.nan
    return value, *difference_drawn(one, other, paired=True).ends()


def _notes(
    table: Table, notes: dict[str, np.ndarray], why: pd.Series | None, first: np.ndarray
) -> np.ndarray:
    """What has no interval and why; of numbers other than the main one, only what differs."""
    causes = np.full(len(first), "") if why is None else why.iloc[first].to_numpy()
    for number in table.numbers:
        if number.some:
            notes[number.name] = np.where(notes[number.name] == NO_TRIALS, "", notes[number.name])
    main = notes[table.main.name]
    others = {name: note for name, note in notes.items() if (note != NO_TRIALS).any()}
    joined = []
    for row, (of_main, reason) in enumerate(zip(main, causes, strict=True)):
        said = {"", of_main, NO_TRIALS if reason else ""}
        parts = [] if reason and of_main == NO_TRIALS else [of_main]
        parts += [f"{name}: {note[row]}" for name, note in others.items() if note[row] not in said]
        joined.append("; ".join(filter(None, [*parts, reason])))
    return np.array(joined, dtype=object)


def _ranked(rows: pd.DataFrame, number: str) -> pd.DataFrame:
    """The rows, sorted by the size of a number, with their places from 1."""
    order = np.argsort(-rows[number].abs().to_numpy(), kind="stable")
    return rows.iloc[order].assign(rank=np.arange(1, len(rows) + 1))
