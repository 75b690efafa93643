"""The differences between logs, computed and put into words; this does not import results."""

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from interp.comparing.align import Aligned, aligned, clusters_of, told_settings, values_of
from interp.comparing.items import chosen_metrics, read_sides
from interp.console import counted
from interp.errors import UserError
from interp.estimates.compute import CLUSTER
from interp.estimates.declared import Mean, Plain, Table
from interp.estimates.shown import ALL, Estimated
from interp.report.glance import with_interval
from interp.report.pairs import Number
from interp.statistics.contrasts import beyond_half, mcnemar
from interp.statistics.decisions import SIGNIFICANT
from interp.tables import NUMBER, TEXT, column

UNITS = "items"

ENDS = ("difference_low", "difference_high")


def _count(sign: int) -> Any:
    return lambda values, weights: float(((np.sign(values) == sign) * weights).sum())


def _mcnemar(values: np.ndarray, weights: np.ndarray) -> float:
    """The p of McNemar's exact test; NaN if a difference is not that of two yes-or-no scores."""
    if not np.isin(values, (-1.0, 0.0, 1.0)).all():
        return float("nan")
    return mcnemar((values > 0).tolist(), (values < 0).tolist())


DIFFERENCES = Table(
    name="differences",
    title="Differences between logs, over the items that both have",
    text="a is the log before, and b the one behind \"minus\". The scores of several epochs of an "
    "item are averaged first.",
    by=["model", "metric", "subset"],
    measured="prompts",
    numbers=[
        Mean("score_a", "mean score in a", "score"),
        Mean("score_b", "mean score in b", "score"),
        Mean(
            "difference", "mean score in a minus that in b", "score",
            sign="positive: larger in a", tested=0.0,
        ),
        Plain(
            "only_a", "items with a larger score in a: right there alone, if scores are yes or no",
            UNITS, of="difference", how=_count(1), why="difference",
        ),
        Plain(
            "only_b", "items with a larger score in b", UNITS, of="difference", how=_count(-1),
            why="difference",
        ),
        Plain(
            "p_mcnemar", "p of McNemar's exact test, which treats items as independent; only of "
            "scores that are yes or no", "probability", of="difference", how=_mcnemar,
            why="difference", some=True,
        ),
    ],
    trials=UNITS,
    key="pair_id",
    family=["metric"],
    alone="each row already compares two logs",
    more=[
        column("model", TEXT, "the two logs, a minus b"),
        column("metric", TEXT, "the metric, with lm-eval's filter after a comma"),
        column("subset", TEXT, "the subset of --by; all items first"),
        column("detectable", NUMBER, "the difference that such items show with 80% power", "score"),
    ],
)  # fmt: skip


class Differences(Estimated):
    """The declared differences, with the least one that so many items show."""

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The small table."""
        found = super().frame
        half = (found["difference_high"] - found["difference_low"]) / 2
        power = found["clusters"].map(lambda count: beyond_half(max(2, int(count))))
        return found.assign(detectable=half * (1 + power))

    def narrow(self, rows: pd.DataFrame, of: Iterable[str]) -> pd.DataFrame:
        """The columns that a terminal shows, with the detectable difference."""
        shown = super().narrow(rows, of).join(rows[["detectable"]])
        return shown if rows["subset"].nunique() > 1 else shown.drop(columns="subset")

    def links(self) -> Iterator[Number]:
        """The differences of the pairs that disagree, by row."""
        for number in super().links():
            if number.name == "difference":
                apart = {pair: value for pair, value in number.values.items() if value}
                yield replace(number, values=apart)


@dataclass(frozen=True)
class Compared:
    """Logs whose items are aligned, with the scores of each two."""

    found: Aligned
    metrics: Mapping[str, tuple[str, ...]]
    """What is compared, each with its name in every log."""
    differences: Differences
    factors: pd.DataFrame
    """The subset and the cluster, if there are any, of each item that several logs have."""
    said: Sequence[str]
    """What a reader must know before any number."""

    def sentences(self) -> list[str]:
        """A sentence about each difference over all items, which can be quoted."""
        rows = self.differences.frame
        return [_sentence(row) for row in rows[rows["subset"] == ALL].to_dict("records")]


def _sentence(row: Mapping[Any, Any]) -> str:
    names, value = row["model"].split(" minus "), row["difference"]
    n, metric = f"{counted(row[UNITS], 'item')} that both have", row["metric"]
    if not row[UNITS] or np.isnan(value):
        return f"{names[0]} and {names[1]} share no scores of {metric}."
    if row["only_a"] == row["only_b"] == 0:
        return f"{names[0]} and {names[1]} have equal scores ({metric}) on all {n}."
    if value == 0:
        return f"{names[0]} and {names[1]} have the same mean score ({metric}) on {n}."
    better, sign = (names[0], 1) if value > 0 else (names[1], -1)
    ends = sorted(sign * row[f"difference_{end}"] for end in ("low", "high"))
    shares = max(abs(row["score_a"]), abs(row["score_b"])) <= 1
    told = with_interval(abs(value) * 100, *(100 * end for end in ends), decimals=1)
    told = f"answers {told.replace(' [', ' points [') if '[' in told else told + ' points'} better"
    if not shares:
        told = f"scores {with_interval(abs(value), *ends)} higher"
    p = row["p_holm"]
    shown = "" if p <= SIGNIFICANT else f"; no difference is shown (p {p:.2g})"
    shown = ", too few to test" if np.isnan(p) else shown
    return f"{better} {told} ({metric}) on {n}{shown}."


def compared(
    logs: Sequence[Path],
    *,
    metric: Sequence[str] = (),
    filter: Sequence[str] = (),
    cluster: str = "",
    by: str = "",
    pair: str = "id",
    model: Sequence[str] = (),
) -> Compared:
    """The logs, aligned; see `interp.comparing.result.compare`.

    Raises:
        UserError: a log cannot be read, or items cannot be paired honestly.
    """
    if len(logs) < 2:
        raise UserError("got fewer than two logs; expected at least two")
    if pair not in ("id", "text"):
        raise UserError(f"got pair {pair!r}; expected id or text")
    collecting = gc.isenabled()
    gc.disable()  # hundreds of thousands of objects are made and kept: looking for garbage is vain
    try:
        sides = read_sides(logs, metrics=metric, filters=filter, models=model)
        found = aligned(sides, by_text=pair == "text")
    finally:
        if collecting:
            gc.enable()
    chosen = chosen_metrics(sides, metric)
    clusters = clusters_of(found, cluster)
    subsets = values_of(found, by) if by else {}
    shared = [name for name in found.every if sum(name in items for items in found.items) > 1]
    factors = pd.DataFrame(index=pd.Index(shared, dtype=object))
    if by:
        factors["subset"] = [subsets.get(name) for name in shared]
    if len(set(clusters.values())) < len(clusters):
        factors["cluster"] = [str(clusters[name]) for name in shared]
    trials = _trials(found, chosen, clusters, subsets)
    differences = Differences(DIFFERENCES, trials)
    return Compared(found, chosen, differences, factors, _said(found, chosen, metric))


def _trials(
    found: Aligned,
    metrics: Mapping[str, tuple[str, ...]],
    clusters: Mapping[str, Any],
    subsets: Mapping[str, str],
) -> pd.DataFrame:
    """One row for each two logs, metric, item that both have a score of, and subset."""
    parts = []
    for (i, a), (j, b) in combinations(enumerate(found.items), 2):
        both = [name for name in a if name in b]
        pair = f"{found.sides[i].name} minus {found.sides[j].name}"
        for metric, names in metrics.items():
            frame = pd.DataFrame(
                {
                    **{"model": pair, "metric": metric, "subset": ALL, "pair_id": both},
                    CLUSTER: [clusters[name] for name in both],
                    "score_a": [a[name].mean(names[i]) for name in both],
                    "score_b": [b[name].mean(names[j]) for name in both],
                }
            )
            frame["difference"] = frame["score_a"] - frame["score_b"]
            frame = frame.dropna(subset="difference")
            if frame.empty:
                raise UserError(
                    f"{pair.replace(' minus ', ' and ')} share no item with a score of {metric}"
                )
            parts.append(frame)
            own = frame.assign(subset=frame["pair_id"].map(subsets)).dropna(subset="subset")
            if own["subset"].nunique() > 1:  # of a metric that one task has, all is this task
                parts.append(own.sort_values("subset", kind="stable"))
    return pd.concat(parts, ignore_index=True)


def _said(
    found: Aligned, metrics: Mapping[str, tuple[str, ...]], asked: Sequence[str]
) -> list[str]:
    """What a reader must know before any number: which items are paired, and what differs."""
    said = []
    for (i, a), (j, b) in combinations(enumerate(found.items), 2):
        one, other = (found.sides[place].name for place in (i, j))
        both = len(a.keys() & b.keys())
        said.append(
            f"{one} and {other}: {both:,} items are in both, {len(a) - both:,} only in {one}, "
            f"{len(b) - both:,} only in {other}"
        )
    said += found.said
    said += [f"{side.name}: {text}" for side in found.sides for text in side.said]
    said += told_settings(found.sides)
    for names in metrics.values():
        sides = list(zip(found.sides, names, strict=True))
        filters = [side.metrics[name] or "none" for side, name in sides]
        for what, used in (("metrics", names), ("filters", filters)):
            if len(set(used)) > 1:
                each = zip(used, found.sides, strict=True)
                said.append(f"{what} differ: {', '.join(f'{own} ({s.name})' for own, s in each)}")
    for side in found.sides:
        others = side.metrics.keys() - {name for names in metrics.values() for name in names}
        if others and not asked:
            listed = ", ".join(sorted(others))
            said.append(f"{side.name}: not compared, since not every log has them: {listed}")
    return said
