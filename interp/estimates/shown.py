"""What readers see of a declared table: terminal, page, first screen, links, comparisons."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from interp.analysis.cautions.caution import NOTHING, Caution
from interp.analysis.cautions.collected import reach_cautions
from interp.estimates.compute import CLUSTER, WHY, estimate, values
from interp.estimates.declared import Largest, Mean, Table
from interp.report.formatting import segment_label
from interp.report.glance import Difference, headline, with_interval
from interp.report.page import TableItem
from interp.report.pairs import Number
from interp.statistics.decisions import SIGNIFICANT, corrected_over, out_of_reach
from interp.statistics.means import clusters_for
from interp.statistics.summaries import grouped
from interp.tables import note as described

ALL = "all"


class Estimated:
    """A declared table with its trials, and everything that is shown of it."""

    def __init__(self, table: Table, trials: pd.DataFrame) -> None:
        self.table, self.trials = table, trials

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The small table."""
        return estimate(self.table, self.trials)

    @cached_property
    def item(self) -> TableItem:
        """The table for terminal, page and files."""
        table, frame = self.table, self.frame
        selected = _with_values(frame, self._where)
        first = list(grouped(selected, table.split))
        if table.most is not None:
            first = [(of, self._first(rows)) for of, rows in first]
        narrow = [(self._title(of), self.narrow(rows, [*of, *self._where])) for of, rows in first]
        cut = bool(table.ranked and table.most and first)
        shown = pd.concat([rows for _, rows in first]) if cut else frame
        return TableItem(table.name, table.title, frame, self.note, narrow, display=shown)

    @property
    def _where(self) -> Mapping[str, object]:
        """What the rows of a terminal have in common."""
        declared = self.table.headline
        if declared is None or not declared.terminal:
            return {}
        return {k: value for k, value in declared.where.items() if k not in self.table.split}

    def _first(self, rows: pd.DataFrame) -> pd.DataFrame:
        sizes = rows[self.table.main.name].abs().sort_values(ascending=False, kind="stable")
        return rows.loc[sizes.index[: self.table.most]]

    @property
    def note(self) -> str:
        """How to read the table: its text, then each number with unit and sign."""
        table, lines = self.table, []
        for number in table.numbers:
            sign = f"; {number.sign}" if number.sign else ""
            lines.append(f"{number.name}: {number.text} ({number.unit}{sign}).")
        lines += [f"{column.name}: {described(column, 'description')}." for column in table.more]
        if any(number.interval for number in table.numbers):
            lines.append("Intervals are 95% intervals over clusters.")
        if table.tested is not None:
            lines.append(
                f"p: two-sided, for {table.tested.name} of {table.tested_value:g}; p_holm: "
                f"corrected over the rows with the same {', '.join(table.family)}: "
                f"{corrected_over(rows for _, rows in grouped(self.frame, table.family))}."
            )
        return " ".join([" ".join(table.text.split()), *lines])

    def headline(self) -> pd.DataFrame | None:
        """The headline numbers; None if the declaration names none."""
        parts = [part for of, rows in self.chosen for part in self._headlines(rows, of)]
        return pd.concat(parts, ignore_index=True) if parts else None

    @cached_property
    def chosen(self) -> Sequence[tuple[dict[str, object], pd.DataFrame]]:
        """The row of each model for each headline, and what these rows share."""
        declared, frame = self.table.headline, self.frame
        if declared is None or frame.empty:
            return ()
        frame = _with_values(frame, declared.where)
        if declared.first and len(frame):
            frame = frame[frame[declared.first] == frame[declared.first].iloc[0]]
        parts = list(grouped(frame, declared.within))
        if declared.by_size:
            means = [rows[declared.by_size].mean() for _, rows in parts]  # NaN comes last
            parts = [parts[place] for place in np.argsort(-np.array(means), kind="stable")]
        chosen = []
        for of, rows in parts:
            sizes = rows[declared.number].abs().groupby(rows["model"])
            alike = sizes.agg(lambda of_model: (of_model == of_model.max()).sum())
            for place in range(declared.places):
                first = largest(rows, declared.number, ["model"], place)
                if declared.places == 1:  # none of several equal rows is the largest
                    first = first.assign(alike=first["model"].map(alike))
                chosen.append(({**of, "place": place + 1}, first))
        return chosen

    def _headlines(self, rows: pd.DataFrame, of: Mapping[str, object]) -> Iterator[pd.DataFrame]:
        declared, labeled = self.table.headline, rows
        assert declared is not None
        if (at := declared.at) is not None:
            places = [
                f"{at(row)}:" if row.get("alike", 1) == 1 else f"{row['alike']} equal rows:"
                for row in map(dict, rows.to_dict("records"))
            ]
            labeled = rows.assign(label=pd.Series(places, rows.index, dtype=str))
        named = {number.name: number for number in self.table.numbers}
        n, unit = self.table.count, self.table.trials
        interval = named[declared.number].interval or ("low", "high")
        title = _named(declared, of)
        yield headline(labeled, title, value=declared.number, interval=interval, n=n, unit=unit)
        for name, title in declared.also.items():
            present, ends = rows.dropna(subset=name).assign(label=""), named[name].interval
            if ends is None:
                ends = ("low", "high")
                present = present.assign(low=float("nan"), high=float("nan"), note=" ")
            if len(present):
                shown = title.format(**of)
                yield headline(present, shown, value=name, interval=ends, n=n, unit=unit)

    def links(self) -> Iterator[Number]:
        """The value of each number in each pair, by row; of large tables, of the rows shown.

        If headlines are about some rows alone, as figures are, these rows lead to pairs, too. The
        trials need a column pair_id.
        """
        table, shown, by = self.table, self.item.on_page, [*self.table.by]
        if self._where:
            selected = _with_values(self.frame, self._where)
            shown = pd.concat([shown, selected]).drop_duplicates(by)
        numbers = [number for number in table.numbers if number.interval]
        # Of a table with more numbers, only the main one leads to pairs.
        if len(shown) * len(numbers) > 2000:
            numbers = [table.main]
        rows = self.trials[self.trials[CLUSTER].notna()].merge(shown[by], on=by)
        for number in numbers:
            each = values(number, rows, [*by, "pair_id"]).dropna(subset=number.name)
            for of, by_pair in grouped(each, by):
                labels = self._labels(of)
                pairs = by_pair["pair_id"].astype(str)
                each_pair = dict(zip(pairs, by_pair[number.name], strict=True))
                named = (number.name, tuple(labels.items()))
                yield Number(number.name, labels, each_pair, self._names.get(named, ""))

    @cached_property
    def _names(self) -> Mapping[tuple[str, tuple[tuple[str, str], ...]], str]:
        """The names of headlines, by their numbers and the rows that they are about."""
        declared = self.table.headline
        if declared is None:
            return {}
        return {
            (declared.number, tuple(self._labels(row).items())): _named(declared, of)
            for of, rows in self.chosen
            for row in rows.to_dict("records")
            if row.get("alike", 1) == 1
        }

    def _labels(self, row: Mapping[Any, Any]) -> dict[str, str]:
        each = {name: text(row[name]) for name in self.table.by}
        return {name: label for name, label in each.items() if label != ALL}

    def compared(self) -> "Estimated | None":
        """The differences of two models, trial by trial; None of other models, or without any.

        Ratios of means and geometric means have none, since trials have no part of their own.
        """
        table, models = self.table, self.trials["model"].unique()
        if len(models) != 2 or table.alone:
            return None
        numbers = [number for number in table.numbers if number.interval and number.additive]
        keys = [*(name for name in table.by if name != "model"), table.key]
        columns = list(dict.fromkeys(number.column for number in numbers))
        clustered = self.trials[self.trials[CLUSTER].notna()]
        one, other = (clustered[clustered["model"] == model] for model in models)
        one = one.drop(columns=WHY, errors="ignore")
        trials = one.merge(other[[*keys, *columns]], on=keys, suffixes=("", " of the other"))
        if trials.empty:
            return None
        for name in columns:
            trials[name] = trials[name].astype(float) - trials[f"{name} of the other"].astype(float)
        main = table.main
        differences = Table(
            name=f"{table.name}_differences",
            title=f"{table.title}: differences between the models",
            text=f"Differences between the two models, over the {table.trials} that both have.",
            by=table.by,
            measured=table.measured,
            numbers=[
                Mean(
                    *(number.name, f"difference of {number.text}", number.unit),
                    sign=f"positive: larger for {models[0]}",
                    of=number.column,
                    some=number.some,
                    tested=0.0 if number == main else None,
                )
                for number in numbers
            ],
            trials=table.trials,
            counted=table.counted,
            clusters=table.clusters,
            family=["model"],
            resamples=table.resamples,
        )
        return Estimated(differences, trials.assign(model=f"{models[0]} minus {models[1]}"))

    def differences(self) -> Iterator[tuple[str, Difference]]:
        """The differences of two models' headline numbers, where both are about the same row."""
        declared, compared = self.table.headline, self.compared()
        if declared is None or compared is None:
            return
        by = [name for name in self.table.by if name != "model"]
        for of, rows in self.chosen:
            about = rows[by].drop_duplicates()
            differences = compared.frame.merge(about, on=by)
            if len(about) == 1 and len(differences) == 1:
                ends = [declared.number, *(compared.table.main.interval or ())]
                value, low, high = differences[ends].iloc[0].astype(float)
                yield _named(declared, of), (value, low, high)

    def cautions(self, rows: pd.DataFrame | None = None) -> Iterator[Caution]:
        """Cautions about models for which no test can be significant, or none is.

        Rows of the frame are those that readers are shown first; by default all.
        """
        shown = self.frame if rows is None else rows
        if self.table.tested is None:
            return
        families = [members for _, members in grouped(shown, self.table.family)]
        yield from reach_cautions(families, clusters_for)
        for family in families:
            yield from self._nothing(family)

    def _nothing(self, family: pd.DataFrame) -> Iterator[Caution]:
        """A caution that none of a family's tests is significant though one could be."""
        tested = family[family["p_holm"].notna() & ~out_of_reach(family)]
        if tested.empty or (tested["p_holm"] <= SIGNIFICANT).any():
            return
        main = self.table.main
        (row,) = largest(tested, main.name, [*self.table.family]).to_dict("records")
        ends = [float(row[name]) for name in (main.name, *(main.interval or ()))]
        shared = ", ".join(text(row[name]) for name in self.table.family if name != "model")
        where = ", ".join(
            f"{name} {text(row[name])}"
            for name in self.table.by
            if name not in self.table.family and text(row[name]) != ALL
        )
        say = (
            f"no {main.name} was shown to differ from {self.table.tested_value:g}"
            f"{_aside(shared)}: the largest is {with_interval(*ends)} {main.unit}{_aside(where)}, "
            f"p_holm {row['p_holm']:.2g}. "
            f"Do not read its place off a table or picture; more {self.table.trials} of other "
            "clusters, or fewer rows chosen in advance, would show smaller ones."
        )
        numbers = {name: row[name] for name in (*self.table.by, main.name, "p_holm")}
        yield Caution(NOTHING, str(row.get("model", "")), say, numbers=numbers)

    def _title(self, of: Mapping[str, object]) -> str:
        parts = [
            f"{name} {text(value)}" if isinstance(value, float) else text(value)
            for name, value in of.items()
        ]
        return ": ".join(filter(None, [self.table.title, ", ".join(parts)]))

    def narrow(self, rows: pd.DataFrame, of: Iterable[str]) -> pd.DataFrame:
        """The columns that a terminal shows: the main number has its interval beside it."""
        table, main = self.table, self.table.main
        by = [name for name in table.by if name not in of and not rows[name].isna().all()]
        shown = rows[by]
        for name, column in shown.select_dtypes(float).items():
            if (column.dropna() % 1 == 0).all():  # whole numbers, perhaps with gaps
                shown = shown.astype({name: "Int64"})
        for number in table.numbers:
            if number.aside or rows[number.name].isna().all():
                continue
            shown[number.name] = rows[number.name]
            if number == main and number.interval and rows[number.interval[0]].notna().any():
                ends = rows[[*number.interval]].itertuples(index=False)
                intervals = (with_interval(0.0, *row, decimals=3) for row in ends)
                shown["95% interval"] = [text.removeprefix("0.000").strip() for text in intervals]
            if number is table.tested and rows["p_holm"].notna().any():
                shown["p_holm"] = rows["p_holm"]
        return shown.join(rows[[table.count]])


def _with_values(frame: pd.DataFrame, where: Mapping[str, object]) -> pd.DataFrame:
    for name, value in where.items():
        frame = frame[frame[name] == value]
    return frame


def _named(declared: Largest, of: Mapping[str, object]) -> str:
    """The name of a headline about rows that share some values."""
    named = {name: segment_label(str(of[name])) for name in of.keys() & {"segment"}}
    return declared.named.format(**{**of, **named})


def largest(frame: pd.DataFrame, number: str, by: list[str], place: int = 0) -> pd.DataFrame:
    """For each group, the row whose number is largest in size, or a following one."""
    present = frame.dropna(subset=number)
    order = present[number].abs().sort_values(ascending=False, kind="stable").index
    chosen = present.loc[order].groupby(by, sort=False).nth(place).index
    return present.loc[chosen].sort_index().reset_index(drop=True)


def text(value: Any) -> str:
    """A value as tables show it; `ALL` for a missing one, such as the layer of a band."""
    if isinstance(value, float):
        return ALL if pd.isna(value) else f"{value:g}"
    return str(value)


def _aside(told: str) -> str:
    """What is told in brackets behind a word; nothing if there is nothing to tell."""
    return f" ({told})" if told else ""
