"""The differences between logs, computed and put into words; this does not import results."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from interp.comparing.align import aligned, clusters_of, values_of
from interp.comparing.items import Side, chosen_metrics, read_sides
from interp.comparing.options import Comparing
from interp.console import counted
from interp.errors import UserError, one_line
from interp.estimates.declared import Largest, Mean, Plain, Table
from interp.estimates.shown import ALL, Estimated
from interp.report.glance import with_interval
from interp.report.pairs import Number
from interp.statistics.contrasts import beyond_half, mcnemar
from interp.statistics.decisions import SIGNIFICANT
from interp.tables import NUMBER, TEXT, column

UNITS = "items"

ENDS = ("difference_low", "difference_high")


DIFFERENCES = Table(
    name="differences",
    title="Differences between logs, over the items that both have",
    text="a is the log before, and b the one behind \"minus\". The scores of several epochs of an "
    "item are averaged first.",
    by=["model", "metric", "subset"],
    measured="prompts",
    numbers=[
        Plain("score_a", "mean score in a", "score", "as the metric's", why="difference"),
        Plain("score_b", "mean score in b", "score", "as the metric's", why="difference"),
        Mean(
            "difference", "mean score in a minus that in b", "score",
            sign="positive: larger in a", tested=0.0,
        ),
        Plain(
            "only_a", "items with a larger score in a: right there alone, if scores are yes or no",
            UNITS, of="difference", how=lambda values, _: float((values > 0).sum()),
            why="difference",
        ),
        Plain(
            "only_b", "items with a larger score in b", UNITS, of="difference",
            how=lambda values, _: float((values < 0).sum()), why="difference",
        ),
        Plain(
            "p_mcnemar", "p of McNemar's exact test, which treats items as independent; only of "
            "scores that are yes or no", "probability", of="yes_or_no", why="difference", some=True,
            how=lambda values, _: mcnemar((values > 0).tolist(), (values < 0).tolist()),
        ),
    ],
    trials=UNITS,
    order=["score_a", "score_b"],
    key="pair_id",
    family=["metric"],
    headline=Largest(
        "difference", "difference in {metric}", within=["metric"], where={"subset": ALL}
    ),
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
        differences = super().frame.astype({"only_a": int, "only_b": int})
        half = (differences["difference_high"] - differences["difference_low"]) / 2
        power = differences["clusters"].map(lambda count: beyond_half(max(2, int(count))))
        differences["detectable"] = half * (1 + power)
        shares, ends = differences["p_mcnemar"].notna(), [*ENDS]
        differences.loc[shares, ends] = differences.loc[shares, ends].clip(-1, 1)
        return differences

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

    sides: Sequence[Side]
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
        names = {_minus(*two): [side.name for side in two] for two in combinations(self.sides, 2)}
        overall: list[Any] = rows[rows["subset"] == ALL].to_dict("records")
        return [_sentence(row, *names[row["model"]]) for row in overall]


def _minus(a: Side, b: Side) -> str:
    return f"{a.name} minus {b.name}"


def _sentence(row: Mapping[Any, Any], a: str, b: str) -> str:
    value, metric, p = row["difference"], row["metric"], row["p_holm"]
    n = f"{counted(row[UNITS], 'item')} that both have"
    if row["only_a"] == row["only_b"] == 0:
        return f"{a} and {b} have equal scores ({metric}) on all {n}."
    if value == 0:
        return f"{a} and {b} have the same mean score ({metric}) on {n}."
    ends = sorted(np.sign(value) * row[end] for end in ENDS)
    margin = with_interval(abs(value), *ends)
    lower, larger = sorted([abs(row["score_a"]), abs(row["score_b"])])
    if larger <= 1:
        margin = with_interval(100 * abs(value), *(100 * end for end in ends), decimals=1)
        margin = " points ".join(margin.split(" ", 1)) if " " in margin else f"{margin} points"
    shown = "" if p <= SIGNIFICANT else f"; no difference is shown (p {p:.2g})"
    shown = ", too few to test" if np.isnan(p) else shown
    if lower <= 1 < larger:
        shown += f"; means of {row['score_a']:.3g} and {row['score_b']:.3g} may have other units"
    return f"{a if value > 0 else b} scores {margin} higher ({metric}) on {n}{shown}."


def compared(logs: Sequence[Path], options: Comparing) -> Compared:
    """The logs in these places, aligned."""
    sides = read_sides(logs, options)
    if len(sides) < 2:
        raise UserError("got fewer than two logs; expected at least two")
    return compared_sides(sides, options)


def compared_sides(sides: Sequence[Side], options: Comparing) -> Compared:
    """The logs, aligned (UserError: items cannot be paired honestly)."""
    said: list[str] = []
    sides = aligned(sides, said, by_text=options.pair == "text")
    metrics = chosen_metrics(sides, options.metric)
    clusters = clusters_of(sides, options.cluster, said)
    factors = pd.DataFrame({"cluster": clusters}, [*clusters], dtype=object)
    if weight := next((side.log.weight for side in sides if side.log.weight), ""):
        factors["weight"] = pd.Series(values_of(sides, weight, "", []), dtype=float)
    if by := options.by or ("side" if all(side.log.weight for side in sides) else None):
        subsets = pd.Series(values_of(sides, by, "they are in no subset", said), dtype=object)
        factors["subset"] = subsets.replace(ALL, f"{by} {ALL}")  # all items have this name
    trials = pd.concat(_trials(sides, metrics, factors), ignore_index=True)
    several = Counter(name for side in sides for name in side.items)
    shown = factors[factors.index.map(several) > 1].drop(columns="weight", errors="ignore")
    if not factors["cluster"].duplicated().any():
        shown = shown.drop(columns="cluster")
    notes = [*_said(sides, metrics, said)]
    return Compared(sides, metrics, Differences(DIFFERENCES, trials), shown, notes)


def _trials(
    sides: Sequence[Side], metrics: Mapping[str, tuple[str, ...]], factors: pd.DataFrame
) -> Iterator[pd.DataFrame]:
    """One row for each two logs, metric, item that both have a score of, and subset."""
    for metric, names in metrics.items():
        for (a, one), (b, other) in combinations(zip(sides, names, strict=True), 2):
            scores = {"score_a": a.scores[one], "score_b": b.scores[other]}
            frame = pd.concat(scores, axis=1, join="inner").dropna().join(factors)
            frame = frame.rename_axis("pair_id").reset_index()
            if frame.empty:
                raise UserError(f"{a.name} and {b.name} share no item with a score of {metric}")
            frame["difference"] = frame["score_a"] - frame["score_b"]
            yes_or_no = frame[[*scores]].isin([0.0, 1.0]).all(axis=None)
            frame["yes_or_no"] = frame["difference"] if yes_or_no else np.nan
            frame = frame.assign(model=_minus(a, b), metric=metric)
            yield frame.assign(subset=ALL)
            # Of a metric that one task has, all is this task.
            if "subset" in frame and frame["subset"].nunique() > 1:
                yield frame.dropna(subset="subset").sort_values("subset", kind="stable")


def _said(
    sides: Sequence[Side], metrics: Mapping[str, tuple[str, ...]], said: Iterable[str]
) -> Iterator[str]:
    """What two logs share, how they were aligned, what each says of itself, and what differs."""
    for a, b in combinations(sides, 2):
        both = len(a.items.keys() & b.items.keys())
        yield (
            f"{a.name} and {b.name}: {both:,} items are in both, {len(a.items) - both:,} only in "
            f"{a.name}, {len(b.items) - both:,} only in {b.name}"
        )
    yield from said
    yield from (f"{side.name}: {note}" for side in sides for note in side.log.said)
    keys = dict.fromkeys(key for side in sides for key in side.log.settings)
    facts = [(key, [side.log.settings.get(key, "") for side in sides]) for key in keys]
    for names in metrics.values():
        used = [side.filters[name] or "none" for side, name in zip(sides, names, strict=True)]
        facts += [("metric", [*names]), ("filter", used)]
    for what, values in facts:
        if len({*values} - {""}) > 1:
            noted = [(value, side.name) for value, side in zip(values, sides, strict=True) if value]
            each = ", ".join(f"{one_line(value, 60)} ({name})" for value, name in noted)
            yield f"{what} differs: {each}"
