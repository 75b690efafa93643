"""A result: the tables of a measurement, with the only definition of how they are displayed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, TypeVar

import pandas as pd

from interp.analysis.accuracy import notes_without_answer, without_answer
from interp.analysis.cautions.caution import Caution, as_json, said_outside
from interp.console import counted, echo
from interp.errors import UserError, unknown
from interp.estimates.compute import CLUSTER
from interp.estimates.shown import Estimated
from interp.measuring.spec import Spec
from interp.plugins import named
from interp.report.glance import COLUMNS, Opening, extremes, glance, named_numbers, quotable
from interp.report.page import (
    MOST_SENTENCES,
    FigureItem,
    FileItem,
    Glance,
    Item,
    OnPage,
    Report,
    Section,
    TableItem,
)
from interp.report.pairs import Browser, Number, Panels
from interp.results.given import cautions_about, given_by, judged_answers
from interp.results.measured import InFolder, ResultTables
from interp.runs.folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from interp.report.html import Display


ERRORS_SHOWN = 3
"""Number of different errors shown for a model, starting with the most frequent."""

_R = TypeVar("_R", bound="Result")


class Result:
    """The result of a measurement: the tables for all its models and prompts.

    A spec's `result` is a subclass, which fills some of these: `estimated`, `items`, `opening`,
    `browser`, `cautions` and `noted`.
    """

    question: ClassVar[str] = ""
    """The question that the measurement answers, for the first screen."""
    framed: ClassVar[str] = ""
    """The table of `to_frame`; by default, the first of the measured tables."""

    def __init__(self, measured: ResultTables) -> None:
        self.measured = measured

    @classmethod
    def of(cls: type[_R], run: RunFolder) -> _R:
        """The result in a run folder, finished or not; its tables are read when needed."""
        return cls(InFolder(run))

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """The declared tables; their headlines, differences and links to pairs follow."""
        return ()

    def items(self) -> Iterator[TableItem | FigureItem | FileItem | OnPage]:
        """What is derived from the measured tables, in order."""
        yield from self.declared_items()

    def declared_items(self) -> Iterator[TableItem]:
        """The declared tables and, of two models, their differences."""
        for table in self.estimated:
            yield table.item
            if compared := table.compared():
                yield replace(compared.item, narrow=(), folded=True)

    def clustered(self, trials: pd.DataFrame) -> pd.DataFrame:
        """Trials of pairs, with their clusters."""
        return trials.assign(**{CLUSTER: trials["pair_id"].map(self.clusters)})

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """What a careful reader would object to, the most severe first; shown before any number."""
        return cautions_about(self.measured)

    def noted(self) -> Mapping[str, object]:
        """Facts about each model that the items do not show; prints a line about each problem.

        By default, its share of prompts without an answer, if it replies freely, and its errors.
        """
        answers = given_by(self.measured).answers()
        if answers is None:
            return {}
        if "predicted_token" in answers:
            return summarize(answers, cautions=self.cautions)
        return errors_by_model(answers)

    def summarized(self) -> dict[str, object]:
        """The facts of `noted`, with the cautions about each model, for the run's record."""
        noted = dict(self.noted())
        for model in self.measured.models():
            if cautions := as_json(self.cautions, model):
                about = noted.get(model, {})
                assert isinstance(about, dict)
                noted[model] = {**about, "cautions": cautions}
        return noted

    @property
    def prompts(self) -> pd.DataFrame:
        """The prompts table: one row per prompt, with pair_id, side and one column per factor."""
        return self.table("prompts")

    @property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """The measured tables, by name."""
        return {name: self.table(name) for name in self.measured.names()}

    @property
    def cluster(self) -> str | None:
        """The factor whose values group dependent prompts, such as their entity, if any."""
        return self.measured.about.cluster

    @cached_property
    def clusters(self) -> Mapping[str, object]:
        """The cluster of each pair, by pair_id: the system's factor, or otherwise the pair."""
        factor = self.cluster
        columns = ["pair_id"] if factor is None else ["pair_id", factor]
        pairs = self.table("prompts", columns).drop_duplicates("pair_id")
        return dict(zip(pairs["pair_id"], pairs[columns[-1]], strict=True))

    def table(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """A measured table by name; "prompts" is the prompts table.

        Raises:
            UserError: there is no such table.
        """
        names = self.measured.names()
        if names and name not in (*names, "prompts"):
            raise UserError(unknown("table", name, [*names, "prompts"]))
        return self.measured.table(name, columns)

    def to_frame(self) -> pd.DataFrame:
        """The measured table with the numbers behind all others (`framed`)."""
        return self.table(self.framed or self.measured.names()[0])

    def summary(self) -> pd.DataFrame:
        """The table that the command line prints first.

        Raises:
            UserError: the command line prints no table.
        """
        if not self._titled:
            raise UserError(f"{self.measured.about.measurement} has no summary; see tables")
        return self._titled[0][1]

    def derived(self) -> Mapping[str, pd.DataFrame]:
        """The small tables that the command line writes as CSV, by name."""
        return {item.name: item.frame for item in self.shown if isinstance(item, TableItem)}

    def plot(self) -> "Figure":
        """The first of the figures that the command line draws, or that of the page's first screen.

        Raises:
            UserError: there is nothing to draw.
        """
        for item in chain(self.figures, self.glance().items):
            if isinstance(item, FigureItem):
                return figure_of(item.draw())
        raise UserError(
            f"{self.measured.about.measurement} has no figure; see summary() and derived()"
        )

    def report(self) -> Report:
        """The page about the result, finished or not.

        Raises:
            UserError: nothing has been measured yet, or the measurement has no items.
        """
        about = self.measured.about
        first = self.glance()
        taken = set(map(id, first.items))
        every = tuple(item for item in self._on_page() if id(item) not in taken)
        if not self._items:
            raise UserError(
                f"{about.measurement} has neither a summary table nor a figure; its tables are "
                "the Parquet files of the run"
            )
        return Report(
            title=about.title,
            text="",
            sections=(Section("Results", items=every),),
            record=self.measured.record(),
            problems=self.measured.problems(),
            glance=first,
            browser=self.browser(),
        )

    def _on_page(self) -> Iterator[Item]:
        for item in self._items:
            if isinstance(item, OnPage):
                yield from item.make()
            elif not isinstance(item, FileItem):
                yield item

    def glance(self) -> Glance:
        """The first screen of the page."""
        opening = self.opening()
        numbers = quotable(opening.numbers, self.cautions)
        more = opening.sentences[:MOST_SENTENCES]
        names = named_numbers(opening.numbers, numbers)[: MOST_SENTENCES - len(more)]
        return glance(
            " ".join(f"{self.question} {opening.extent}".split()),
            numbers,
            [*more, *(extremes(numbers, name, opening.differences) for name in names)],
            picture=opening.picture,
            figure=opening.figure,
            cautions=self.cautions,
        )

    def opening(self) -> Opening:
        """What the first screen is made of; the numbers are the declared tables' headlines."""
        parts = [numbers for table in self.estimated if (numbers := table.headline()) is not None]
        prompts = counted(len(self.table("prompts", ["prompt_id"])), "prompt")
        models = counted(len(self.measured.models()), "model")
        return Opening(
            pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS),
            differences=dict(chain.from_iterable(table.differences() for table in self.estimated)),
            extent=f"{prompts}, {models}.",
        )

    def browser(self) -> Browser:
        """All pairs with what was measured on them, for the browser beside the page."""
        return self.browsed(lambda prompts: ())

    def browsed(self, panels: Panels, numbers: Iterable[Number] | None = None) -> Browser:
        """The browser of pairs, with panels, and with numbers by which it sorts pairs.

        Args:
            panels: a function from rows of the prompts table, of whole pairs, to the panels of
                each pair, as plain data (`interp.report.pairs`).
            numbers: by default, those of the declared tables. Tables of the page lead to the pairs
                sorted by them (`Number.of`).
        """
        answers = judged_answers(self.measured)
        every = tuple(self.links() if numbers is None else numbers)
        return Browser(self.prompts, answers, panels, every, self.cluster, columns=False)

    def links(self) -> Iterator[Number]:
        """The numbers of pairs behind the declared tables."""
        for table in self.estimated:
            yield from table.links()

    def browse(self, pairs: int | Sequence[str] = 20) -> "Display":
        """The browser of pairs as a display of a notebook, with its own list of pairs.

        Args:
            pairs: the pair_ids to show, or the number of pairs, evenly spread over all. All that is
                shown becomes part of the notebook.

        Raises:
            UserError: there is no such pair, or no pair is asked for.
        """
        from interp.report.browse import in_frame, standalone
        from interp.report.html import Display

        browser = self.browser()
        all_ids = browser.prompts["pair_id"].unique()
        if isinstance(pairs, int):
            if pairs < 1:
                raise UserError(f"got {pairs} pairs; expected at least 1")
            ids = list(all_ids[:: max(1, -(-len(all_ids) // pairs))])
        else:
            ids = list(pairs)
            for name in set(ids) - set(all_ids):
                raise UserError(unknown("pair", str(name), list(map(str, all_ids))))
        shown = browser.prompts[browser.prompts["pair_id"].isin(ids)]
        page = standalone(replace(browser, prompts=shown), self.measured.about.title)
        return Display(in_frame(page, height=720))

    @cached_property
    def _items(self) -> tuple[TableItem | FigureItem | FileItem | OnPage, ...]:
        return tuple(self.items())

    @property
    def shown(self) -> tuple[TableItem | FigureItem, ...]:
        """The tables and figures, which are also files of a run."""
        return tuple(item for item in self._items if isinstance(item, TableItem | FigureItem))

    @property
    def figures(self) -> Iterator[FigureItem]:
        """The figures among the items."""
        return (item for item in self.shown if isinstance(item, FigureItem))

    @property
    def files(self) -> Iterator[FileItem]:
        """Further files of the run's folder."""
        return (item for item in self._items if isinstance(item, FileItem))

    @property
    def _titled(self) -> Sequence[tuple[str, pd.DataFrame]]:
        tables = (item for item in self.shown if isinstance(item, TableItem))
        return [titled for item in tables for titled in item.shown]

    def __repr__(self) -> str:
        names = ("prompts", *self.measured.names())
        sizes = (f"{name}: {self.measured.size(name):,} rows" for name in names)
        return f"{type(self).__name__}({', '.join(sizes)})"

    def _repr_html_(self) -> str | None:
        # Without rows, there is no summary to show, and the notebook falls back to plain text.
        if not self.measured.size(self.measured.names()[0]) or not self._titled:
            return None
        from interp.report.html import notebook_html

        return notebook_html(self._titled, cautions=self.cautions)


def result_class(spec: type[Spec]) -> type[Result]:
    """The result class of a spec."""
    kind: type[Result] = named(spec.result)
    return kind


def chosen(table: pd.DataFrame, name: str, value: str | int) -> pd.DataFrame:
    """The rows that have a value in a column.

    Raises:
        UserError: no row has the value.
    """
    rows = table[table[name] == value]
    if rows.empty:
        values = [str(each) for each in table[name].dropna().unique()]
        raise UserError(unknown(name, str(value), values))
    return rows


def figure_of(axes: "Axes") -> "Figure":
    """The figure that contains the axes."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def summarize(
    answers: pd.DataFrame, failed: pd.DataFrame | None = None, *, cautions: Iterable[Caution]
) -> dict[str, dict[str, object]]:
    """Each model's share of prompts without an answer, and its most frequent errors.

    Prints a line for each share above zero that no caution gives, and for each of these errors.
    Failed rows are by default those of `answers`, the rows with model, prompt_id, answer and error.
    """
    if failed is None:
        failed = answers[answers["error"] != ""]
    summary: dict[str, dict[str, object]] = {}
    for model, share in without_answer(answers).items():
        errors = failed[failed["model"] == model].drop_duplicates("prompt_id")["error"]
        counts = note_errors(str(model), errors, "prompt")
        summary[str(model)] = {"no_answer_share": float(share), "errors": counts}
    for note in notes_without_answer(answers, said=said_outside(cautions)):
        echo(note)
    return summary


def errors_by_model(rows: pd.DataFrame) -> dict[str, object]:
    """The most frequent errors by model; prints a line about each."""
    failed = rows[rows["error"] != ""].drop_duplicates(["model", "prompt_id"])
    return {
        str(model): {"errors": note_errors(str(model), rows["error"], "prompt")}
        for model, rows in failed.groupby("model", sort=False)
    }


def note_errors(model: str, errors: pd.Series, unit: str) -> dict[str, int]:
    """Print a line about each of the most frequent errors; return the frequency of each.

    There is one error for each failed prompt or pair, as `unit` says.
    """
    counts = errors.value_counts()
    shown = {str(error): int(count) for error, count in counts.head(ERRORS_SHOWN).items()}
    for error, count in shown.items():
        echo(f"{model}: {counted(int(count), unit)} stopped with an error: {error}")
    if len(counts) > ERRORS_SHOWN:
        others = counted(int(counts[ERRORS_SHOWN:].sum()), unit)
        echo(f"{model}: {others} stopped with other errors; the tables list them")
    return shown
