"""The declaration of a small table: what a row is about, and its numbers with units and signs.

From a declaration follow the data frame (`interp.estimates.compute`), and all that readers see of
it (`interp.estimates.shown`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from interp.statistics.summaries import Summary, weighted_median, weighted_sd
from interp.tables import INTEGER, NUMBER, PROMPTS, TEXT, column, table


@dataclass(frozen=True)
class Number:
    """A number over the trials of a row."""

    name: str
    """The column of the number."""
    text: str
    """What it is, in a few words that stand after its name."""
    unit: str
    sign: str = ""
    """What a positive number means, if numbers may be negative."""
    of: str = field(default="", kw_only=True)
    """The column of the trials' values; by default the number's own name."""
    ends: tuple[str, str] | None = field(default=None, kw_only=True)
    """Columns of the ends of its 95% interval; by default the name with _low and _high."""
    some: bool = field(default=False, kw_only=True)
    """Whether only some rows have it, such as those of pairs, so that no note says why not."""
    aside: bool = field(default=False, kw_only=True)
    """Whether the terminal leaves it to the page and the file."""
    how: Summary | None = field(default=None, kw_only=True)
    """What is computed of the trials' values and weights, if not their weighted mean."""

    @property
    def column(self) -> str:
        """The column of the trials' values."""
        return self.of or self.name

    @property
    def interval(self) -> tuple[str, str] | None:
        """The columns of the ends of its interval; None if it has none."""
        return self.ends or (f"{self.name}_low", f"{self.name}_high")

    def fields(self) -> Iterator[pa.Field]:
        """Its columns: the number and the ends of its interval, if it has one."""
        ends = zip(self.interval or (), ("lower", "upper"), strict=False)
        texts = {name: f"{end} end of the interval of `{self.name}`" for name, end in ends}
        for name, text in {self.name: self.text, **texts}.items():
            yield column(name, NUMBER, text, self.unit, sign=self.sign)

    @property
    def additive(self) -> bool:
        """Whether it is the mean of numbers that each trial has alone.

        A ratio of means, a geometric mean, and a difference of shares are not.
        """
        parts = [getattr(self, name, None) for name in ("how", "over", "logs", "minus")]
        return not any(parts)


@dataclass(frozen=True, kw_only=True)
class Mean(Number):
    """The weighted mean over trials, or, with `over`, the ratio of two means."""

    tested: float | None = None
    """The value against which p is computed; None if nothing is tested."""
    over: str = ""
    """The column of the trials' values whose mean is below the line."""
    logs: bool = False
    """Whether values are positive and their geometric mean is taken (tested values are logs)."""


@dataclass(frozen=True, kw_only=True)
class Share(Number):
    """The weighted share of trials that are true, with Gaffke's interval over clusters."""

    continuous: bool = False
    """Whether a trial's value is a share or probability of its own (`proportions`)."""
    minus: str = ""
    """The column of the trials' values for another share, which is subtracted."""


@dataclass(frozen=True, kw_only=True)
class Median(Number):
    """The weighted median, with Woodruff's interval over clusters."""

    how: Summary = weighted_median


@dataclass(frozen=True, kw_only=True)
class Plain(Number):
    """A number, by default a mean, that describes the trials and has no interval, for a reason."""

    why: str = field(kw_only=True)
    """The number of the same trials that has one."""

    @property
    def interval(self) -> None:
        """There is none."""


deviation = partial(Plain, how=weighted_sd, aside=True)
"""The sample standard deviation of the trials' values, which the terminal leaves out."""


@dataclass(frozen=True)
class Largest:
    """The headline numbers: for each model, the rows whose number is largest in size."""

    number: str
    named: str
    """The headline's name; columns that all its rows share, and {place}, may stand in braces."""
    at: Callable[[Mapping[Any, Any]], str] | None = None
    """What a row is about, as text before the number; None if the headline's name says it."""
    within: Sequence[str] = ()
    """Columns for each of whose values there is a headline."""
    where: Mapping[str, object] = field(default_factory=dict)
    """The values that these rows have in some columns, such as the group of all pairs."""
    terminal: bool = False
    """Whether a terminal shows no other rows, either."""
    first: str = ""
    """A column of whose values only the first has headlines, such as the method."""
    by_size: str = ""
    """The number by whose mean over models headlines are sorted, if they are."""
    places: int = 1
    """How many of the largest rows are named."""
    also: Mapping[str, str] = field(default_factory=dict)
    """Further numbers of the largest row, with their headlines' names."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A small table: one row for each combination of values of `by`."""

    name: str
    """Stem of its files."""
    title: str
    text: str
    """How to read it, before what each number is."""
    by: Sequence[str]
    """The columns that say what a row is about."""
    measured: str
    """The measured table whose columns they are (`interp.tables`), where they are described, but
    for those of the prompts table and of `more`."""
    numbers: Sequence[Number]
    trials: str
    """What a trial is, as a plural, which names the column of their counts."""
    counted: str = ""
    """Another name for this column."""
    clusters: str = "clusters"
    """The column of the number of clusters."""
    order: Sequence[str] = ()
    """Columns that stand first behind those of `by`, in another order than that of `numbers`."""
    key: str = "prompt_id"
    """The column that names a trial, by which two models are compared."""
    family: Sequence[str] = ()
    """Columns of `by` whose values the tests that are corrected together share."""
    split: Sequence[str] = ()
    """Columns of `by` that title the parts of the table on the terminal."""
    most: int | None = None
    """How many of the largest rows of each part the terminal shows and, of ranked tables, the page;
    None for all."""
    ranked: str = ""
    """The number by whose size the rows of each `split` are sorted, with a column `rank`."""
    resamples: int | None = None
    """The number of resamples for intervals; by default that of the statistics."""
    headline: Largest | None = None
    alone: str = ""
    """Why two models cannot be compared row by row, if they cannot."""
    more: Sequence[pa.Field] = ()
    """Columns that are in no measured table: those of `by`, and those that a function adds."""

    @property
    def tested(self) -> Mean | None:
        """The number that is tested; None if none is."""
        numbers = (n for n in self.numbers if isinstance(n, Mean) and n.tested is not None)
        return next(numbers, None)

    @property
    def tested_value(self) -> float:
        """The value against which p is computed; NaN if nothing is tested."""
        tested = self.tested
        return float("nan") if tested is None or tested.tested is None else tested.tested

    @property
    def count(self) -> str:
        """The column of the number of trials."""
        return self.counted or self.trials

    @property
    def main(self) -> Number:
        """The number whose clusters are counted: the one that is tested, or the first."""
        return self.tested or self.numbers[0]

    def schema(self, measured: pa.Schema) -> pa.Schema:
        """The columns with their descriptions, for the data dictionary."""
        *others, last = self.by
        rows = f"One row per {', '.join(others)} and {last}. {' '.join(self.text.split())}"
        by_name = {col.name: col for col in (*PROMPTS, *measured, *self._fields(), *self.more)}
        added = [col.name for col in self.more if col.name not in self.columns]
        *names, note = self.columns
        ordered = (by_name[name] for name in (*names, *added, note))
        described = table(f"{rows} 95% intervals are over clusters.", *ordered)
        return described.with_metadata({**described.metadata, "derived": self.measured})

    @property
    def columns(self) -> list[str]:
        """The columns of its frame (`interp.estimates.compute.estimate`), in order."""
        tested, bounded = self.tested is not None, [n for n in self.numbers if n.interval]
        names = [*self.by, *self.order, *["rank"] * bool(self.ranked)]
        names += [name for n in bounded for name in (n.name, *(n.interval or ()))]
        names += ["p", "p_holm"] * tested
        names += [number.name for number in self.numbers if number not in bounded]
        names += ["p_holm_least", "p_least"] * tested
        return list(dict.fromkeys([*names, self.count, self.clusters, "note"]))

    def _fields(self) -> Iterator[pa.Field]:
        for number in self.numbers:
            yield from number.fields()
        if self.tested is not None:
            p = f"two-sided p for `{self.tested.name}` of {self.tested_value:g}"
            yield column("p", NUMBER, p, "probability")
            text = f"p, corrected within each {', '.join(self.family)}"
            yield column("p_holm", NUMBER, text, "probability")
            for name in ("p_holm", "p"):
                text = f"the smallest `{name}` that so many tests and clusters allow"
                yield column(f"{name}_least", NUMBER, text, "probability")
        yield column(self.count, INTEGER, f"number of {self.trials}", self.trials)
        meaning = f"clusters with a value of `{self.main.name}`"
        meaning += ", or, in rows without it, of others" if self.main.some else ""
        yield column(self.clusters, INTEGER, meaning, self.clusters.replace("_", " "))
        yield column("note", TEXT, "what has no interval, or is undefined, and why; or empty")
