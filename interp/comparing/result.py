"""What a comparison of logs shows: differences, their figure, a page and the pairs behind them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from interp.analysis.cautions.caution import LEFT_OUT, Caution
from interp.comparing.align import Aligned, aligned, clusters_of, told_settings, values_of
from interp.comparing.items import chosen_metrics, read_sides
from interp.console import counted
from interp.errors import UserError
from interp.estimates.compute import CLUSTER
from interp.estimates.declared import Mean, Plain, Table
from interp.estimates.shown import ALL, Estimated
from interp.measuring.facts import ModelFacts
from interp.report.glance import Opening, headline, with_interval
from interp.report.page import FigureItem, TableItem
from interp.report.pairs import Number
from interp.results.measured import About, ResultTables
from interp.results.result import Result
from interp.runs.shards import Filters
from interp.statistics.contrasts import beyond_half
from interp.statistics.decisions import SIGNIFICANT
from interp.stored.inspect_log import outputs_of_archive
from interp.tables import NUMBER, TEXT, column

UNITS = "items"

_ENDS = ("difference_low", "difference_high")


def _count(sign: int) -> Any:
    return lambda values, weights: float(((np.sign(values) == sign) * weights).sum())


def _mcnemar(values: np.ndarray, weights: np.ndarray) -> float:
    """The p of McNemar's exact test; NaN if a difference is not that of two yes-or-no scores."""
    from interp.statistics.contrasts import mcnemar

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
        """The pairs that disagree, by row."""
        for number in super().links():
            apart = {pair: value for pair, value in number.values.items() if value}
            yield replace(number, values=apart)


class Logs(ResultTables):
    """The items that at least two logs have, as pairs whose sides are the logs."""

    def __init__(
        self, found: Aligned, metrics: Mapping[str, tuple[str, ...]], factors: pd.DataFrame
    ) -> None:
        self.found, self.metrics, self.factors = found, metrics, factors

    @property
    def about(self) -> About:
        """The names of the logs."""
        return About("compare", {}, " and ".join(side.name for side in self.found.sides))

    def names(self) -> list[str]:
        """The scores of each item are its answers."""
        return ["answers"]

    def models(self) -> list[str]:
        """The metrics, which stand where other results have models."""
        return list(self.metrics)

    def facts(self) -> Mapping[str, ModelFacts]:
        """None."""
        return {}

    def rows(self, name: str) -> pd.DataFrame:
        """The table itself."""
        return self._answers if name == "answers" else self._prompts

    def _parts(
        self, name: str, columns: Sequence[str] | None, filters: Filters | None
    ) -> Iterator[pd.DataFrame]:
        rows = self.rows(name)
        yield rows if columns is None else rows[list(columns)]

    def _places(self) -> Iterator[tuple[str, int]]:
        """Each item, and each log that has it, of the items that several have."""
        for name in self.factors.index:
            yield from ((name, n) for n, items in enumerate(self.found.items) if name in items)

    @cached_property
    def _prompts(self) -> pd.DataFrame:
        sides, items = self.found.sides, self.found.items
        written = [
            {
                (own.prompt_id, str(own.draw + 1)): own.text
                for own in outputs_of_archive(side.archive)
            }
            if side.archive
            else {}
            for side in sides
        ]
        rows = []
        for name, n in self._places():
            first = items[n][name].first
            answer = written[n].get((first.item, first.epoch)) or first.answer
            text = "\n\n".join(filter(None, [first.text, answer]))
            id_ = {"prompt_id": f"{name} ({sides[n].name})", "pair_id": name}
            rows.append({**id_, "side": sides[n].name, "text": text, "gold": first.target})
        frame = pd.DataFrame(rows)
        return frame.assign(weight=1.0).join(self.factors, on="pair_id")

    @cached_property
    def _answers(self) -> pd.DataFrame:
        rows = []
        for metric, names in self.metrics.items():
            for name, n in self._places():
                score = self.found.items[n][name].mean(names[n])
                side = self.found.sides[n].name
                rows.append(
                    (
                        metric,
                        f"{name} ({side})",
                        f"{score:g}",
                        score if score in (0, 1) else None,
                        "",
                    )
                )
        frame = pd.DataFrame(rows, columns=["model", "prompt_id", "answer", "correct", "error"])
        return frame.astype({"correct": "boolean"})


class Comparison(Result):
    """Logs of the same items, compared: what was aligned, and the differences of all scores."""

    def __init__(self, measured: Logs, trials: pd.DataFrame, said: Sequence[str]) -> None:
        """Create it from the aligned logs, the scores of each two, and what must be said first."""
        super().__init__(measured)
        self.differences, self._said = Differences(DIFFERENCES, trials), said

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """The differences."""
        return (self.differences,)

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """How the items were paired, and what cannot be."""
        return tuple(Caution(LEFT_OUT, "", text) for text in self._said)

    def to_frame(self) -> pd.DataFrame:
        """The differences: a row for each two logs, metric and subset."""
        return self.differences.frame

    def items(self) -> Iterator[TableItem | FigureItem]:
        """The differences as a table and a figure."""
        yield from super().items()  # type: ignore[misc]
        yield self._figure

    @cached_property
    def _figure(self) -> FigureItem:
        def draw() -> Any:
            from interp.report.figures.points import interval_points

            rows = self.to_frame()
            each = rows["metric"] + ": " + rows["subset"]
            hue = rows["metric"].where(rows["subset"] == ALL, each)
            rows = rows.assign(
                score=hue, model=rows["model"].str.replace(" minus ", " minus\n", n=1)
            )
            ends = ("difference_low", "difference_high")
            ax = interval_points(
                rows, x="difference", y="model", hue="score", n=UNITS, interval=ends
            )
            ax.axvline(0.0, color="0.6", linewidth=0.8, zorder=0)
            return ax

        note = (
            'Dots with 95% intervals over clusters; right of 0, the log before "minus" is better.'
        )
        return FigureItem("differences", "All differences", draw, note)

    def opening(self) -> Opening:
        """The sentence about the first two logs, and the differences over all items."""
        rows = self.to_frame()
        whole = rows[rows["subset"] == ALL]
        numbers = [
            headline(own, f"difference in {metric}", value="difference", n=UNITS, unit=UNITS,
                     interval=("difference_low", "difference_high"))
            for metric, own in whole.groupby("metric", sort=False)
        ]  # fmt: skip
        first, *others = self.sentences()
        return Opening(pd.concat(numbers), others, extent=first, figure=self._figure)

    def sentences(self) -> list[str]:
        """A sentence about each difference over all items, which can be quoted."""
        return [
            _sentence(row) for row in self.to_frame().to_dict("records") if row["subset"] == ALL
        ]


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


def compare(
    *logs: str | Path,
    metric: Sequence[str] = (),
    filter: Sequence[str] = (),
    cluster: str = "",
    by: str = "",
    pair: str = "id",
    model: Sequence[str] = (),
) -> Comparison:
    """Compare logs of the same items, item by item: are the results different?

    Args:
        logs: at least two, in any mixture: folders of interp; lm-eval's samples_*.jsonl or a folder
            of its results; logs of Inspect (.eval, .json); tables with an item and a score.
        metric: the metrics to compare (default: those that all logs have); one of each log if they
            have different names. Columns of tables that are scores.
        filter: the filters of lm-eval to compare (default: all that all logs have).
        cluster: a field of the document, metadata or a column that names dependent items; `item`
            if none depend on each other (default: equal texts and stems are looked for).
        by: a field by whose values subsets are compared as well; `task` names lm-eval's tasks.
        pair: `id`, where texts are checked, or `text`.
        model: the model of a folder of interp that has several.

    Returns:
        The result, with to_frame, plot, browse and report.

    Raises:
        UserError: a log cannot be read, or items cannot be paired honestly.
    """
    if len(logs) < 2:
        raise UserError("got fewer than two logs; expected at least two")
    if pair not in ("id", "text"):
        raise UserError(f"got pair {pair!r}; expected id or text")
    one = [[own] if isinstance(own, str) else own for own in (metric, filter, model)]
    metrics, filters, models = one
    sides = read_sides([Path(log) for log in logs], metrics=metrics, filters=filters, models=models)
    found = aligned(sides, by_text=pair == "text")
    chosen = chosen_metrics(sides, metrics)
    clusters = clusters_of(found, cluster)
    subsets = values_of(found, by) if by else {}
    factors = pd.DataFrame(index=pd.Index([
        name for name in found.every if sum(name in items for items in found.items) > 1
    ], dtype=object))  # fmt: skip
    if by:
        factors["subset"] = [subsets.get(name) for name in factors.index]
    if len(set(clusters.values())) < len(clusters):
        factors["cluster"] = [str(clusters[name]) for name in factors.index]
    trials = _trials(found, chosen, clusters, subsets)
    return Comparison(Logs(found, chosen, factors), trials, _said(found, chosen, metrics))


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
            if subsets:
                own = frame.assign(subset=frame["pair_id"].map(subsets)).dropna(subset="subset")
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
