"""What notebooks get: the tables of a measurement as data frames, with a summary and a display."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, TypeVar

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from interp.analysis.accuracy import accuracy_table
from interp.analysis.attribution_table import attribution_table
from interp.analysis.comparison import comparison_table, judged_pairs, measures_of
from interp.analysis.patching_effects import SHARED, effect_table
from interp.analysis.segments import segment_ratios, segment_table, token_shares
from interp.choices import COUNTERPART
from interp.errors import UserError, unknown
from interp.measurements.attribute import Attribute
from interp.measurements.evaluate import Evaluate
from interp.measurements.patch import Patch
from interp.measurements.spec import Spec
from interp.prompts.systems import dependence_factor
from interp.report.figures.segments import segment_shares
from interp.report.formatting import ratio_title
from interp.report.notebook import Display, heat_maps, notebook_html
from interp.report.patch_figures import layers_by_roles, layers_by_tokens
from interp.report.patching_report import effects_for_people
from interp.report.results import Results, results_of


class _Sized:
    """Results whose text names their tables and says how long each is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(_sizes(self))})"


class _Answered(_Sized):
    """Results that hold answers of models."""

    __slots__ = ()
    prompts: pd.DataFrame
    answers: pd.DataFrame
    cluster: str | None

    def compare(self, a: str, b: str) -> pd.DataFrame:
        """Two models on the same prompts: one row for each side of a pair, and for whole pairs.

        Columns are those of `interp compare`: both accuracies; their difference a - b, its 95%
        interval and p with clusters as the unit; pairs that one alone has right, and McNemar's
        exact test, which takes pairs as independent.

        Args:
            a: name of a model.
            b: name of another one.

        Raises:
            UserError: there is no such model, or none of its answers was judged.
        """
        cluster = self.cluster or "pair_id"
        pairs = [
            judged_pairs(
                _chosen(self.answers, "model", name), self.prompts, model=name, cluster=cluster
            )
            for name in (a, b)
        ]
        measures = measures_of(pairs[0], cluster=cluster)
        return comparison_table(*pairs, measures=measures, cluster=cluster)


@dataclass(frozen=True, slots=True, repr=False)
class Scores(_Answered):
    """Answers of models to prompts."""

    prompts: pd.DataFrame
    """The prompts table: one row per prompt, with pair_id, side and one column per factor."""
    answers: pd.DataFrame
    """The answers table (`interp.tables`): one row per prompt."""
    option_probabilities: pd.DataFrame
    """The option_probabilities table: one row per prompt and option."""
    cluster: str | None = None
    """The factor whose prompts depend on each other, such as their entity; None where pairs do
    not."""

    def to_frame(self) -> pd.DataFrame:
        """One row per prompt."""
        return self.answers

    def summary(self) -> pd.DataFrame:
        """One row: paired accuracy, accuracy of each side, number of prompts."""
        return accuracy_table(self.answers, self.prompts, _sides(self.prompts))

    def _repr_html_(self) -> str | None:
        # Without prompts there is nothing to sum up, and the notebook shows the plain text.
        return None if self.answers.empty else notebook_html([("Accuracy", self.summary())])


@dataclass(frozen=True, slots=True, repr=False)
class Attributions(_Answered):
    """Answers of models to prompts, and what they are attributed to."""

    prompts: pd.DataFrame
    """The prompts table: one row per prompt, with pair_id, side and one column per factor."""
    answers: pd.DataFrame
    """The answers table: one row per prompt."""
    option_probabilities: pd.DataFrame
    """The option_probabilities table: one row per prompt and option."""
    segment_scores: pd.DataFrame
    """The segment_scores table: one row per prompt, method and segment."""
    tokens: pd.DataFrame | None = None
    """The tokens table: one row per prompt and token; None if not asked for."""
    token_scores: pd.DataFrame | None = None
    """The token_scores table: one row per prompt, method and token; None if not asked for."""
    ratio: tuple[str, str] | None = None
    """The two segments that the prompts' system compares, the first over the second."""
    cluster: str | None = None
    """The factor whose prompts depend on each other, such as their entity; None where pairs do
    not."""

    def to_frame(self) -> pd.DataFrame:
        """One row per prompt, method and segment."""
        return self.segment_scores

    def ratios(self, above: str | None = None, below: str | None = None) -> pd.DataFrame:
        """One row per prompt and method: the share of one segment over that of another.

        Args:
            above: the segment above the line; that of the prompts' system if not given.
            below: the segment below the line, likewise.

        Raises:
            UserError: no segments are given, and the system compares none.
        """
        named = self.ratio or (above, below)
        above, below = above or named[0], below or named[1]
        if above is None or below is None:
            known = ", ".join(self.segment_scores["segment"].unique())
            raise UserError(
                f"the prompts name no two segments to compare; name two of {known}, such as "
                "ratios(above, below)"
            )
        return segment_ratios(self.segment_scores, (above, below))

    def token_shares(self) -> pd.DataFrame:
        """The token scores with each token's text, segment and share of the prompt's scores.

        Raises:
            UserError: the tokens were not kept.
        """
        if self.tokens is None or self.token_scores is None:
            raise UserError("the tokens were not kept; call attribute(..., keep_tokens=True)")
        return token_shares(self.token_scores, self.tokens)

    def summary(self) -> pd.DataFrame:
        """Means and standard deviations over the prompts.

        One row with each method's ratio next to the accuracies, where the prompts' system compares
        two segments; else one row per method and segment.
        """
        if self.ratio is None:
            return self.segments()
        sides = _sides(self.prompts)
        return attribution_table(self.ratios(), self.answers, self.prompts, sides)

    def segments(self) -> pd.DataFrame:
        """One row per model, method and segment: mean score and share, over the prompts."""
        return segment_table(self.segment_scores)

    def plot(self) -> Figure:
        """The mean share of each segment by each method, as bars, a panel for each model."""
        return _figure(segment_shares(self.segments()))

    def heat_map(
        self, pair: str | None = None, *, model: str | None = None, method: str | None = None
    ) -> Display:
        """The prompts of a pair as running text, each token shaded by its share of the scores.

        Args:
            pair: a `pair_id` of the prompts table; the first if not given.
            model: one of the models; all if not given.
            method: one of the attribution methods; all if not given.

        Raises:
            UserError: the tokens were not kept, or there is no such pair, model or method.
        """
        shares = self.token_shares()
        for name, value in (("model", model), ("method", method)):
            if value is not None:
                shares = _chosen(shares, name, value)
        shown = _chosen(self.prompts, "pair_id", pair or self.prompts["pair_id"].iloc[0])
        maps = heat_maps(shares, prompts=shown, answers=self.answers)
        return Display(notebook_html([], list(maps)))

    def _repr_html_(self) -> str | None:
        if self.answers.empty:
            return None
        compared = "Scores by segment" if self.ratio is None else ratio_title(self.ratio)
        title = f"{compared}: mean and standard deviation over prompts"
        table = notebook_html([(title, self.summary())])
        return table if self.tokens is None else table + self.heat_map().html


@dataclass(frozen=True, repr=False)
class Patches(_Sized):
    """What patches did to the answers of models."""

    prompts: pd.DataFrame
    """The prompts table: one row per prompt, with pair_id, side and one column per factor."""
    patches: pd.DataFrame
    """The patches table: one row per pair, method and cell."""
    pairs: pd.DataFrame
    """The pairs table: one row per pair."""
    node_sets: pd.DataFrame | None = None
    """The node_sets table: one row per pair, ranking and set; None if not asked for."""
    cluster: str | None = None
    """The factor whose pairs depend on each other, such as their entity; None where pairs do
    not."""

    def to_frame(self) -> pd.DataFrame:
        """One row per pair, method and cell."""
        return self.patches

    def summary(self) -> pd.DataFrame:
        """Means over pairs, with 95% intervals by a bootstrap over clusters and tests.

        One row per model, direction, method, source, site, layer, head, role and group of pairs:
        `recognized` is "yes" for those that the model answers correctly on both sides, "no" for the
        others, and "all". effect is in logits of the answers that the data contrasts, such as Yes
        minus No. recovered is the mean effect over the mean difference between both prompts, of
        recognized pairs: 1 where the patch gives the answer of the prompt that it comes from.
        """
        return self._effects

    def plot(self, value: Literal["effect", "recovered"] = "effect", **which: str | int) -> Figure:
        """What patches do by layer and role, as a heat map.

        Args:
            value: effect, of all pairs, or recovered, of those that the model recognizes.
            which: of the summary's columns model, method, source, site and head, where it has more
                than one value; the first if not given.

        Raises:
            UserError: there is no such value.
        """
        rows = _first(self._effects, which)
        recognized = SHARED if value == "recovered" else "all"
        drawn = layers_by_roles(rows, value=value, recognized=recognized, head=_head(rows))
        return _figure(drawn)

    def plot_tokens(self, pair: str | None = None, **which: str | int) -> Figure:
        """The effects of each token of one pair by layer, of patches by position.

        Args:
            pair: a `pair_id`; the first if not given.
            which: as in `plot`.

        Raises:
            UserError: the pair was not patched token by token, or there is no such value.
        """
        rows = self._asked[self._asked["position"].notna()]
        if rows.empty:
            raise UserError('nothing was patched token by token; give granularity="position"')
        rows = _first(rows if pair is None else _chosen(rows, "pair_id", pair), which)
        rows = rows[rows["pair_id"] == rows["pair_id"].iloc[0]]
        return _figure(layers_by_tokens(rows, head=_head(rows)))

    @cached_property
    def _asked(self) -> pd.DataFrame:
        """The patches without exact ones of estimates, which are the largest and so no sample."""
        estimated = self.patches["method"] != "exact"
        return self.patches[estimated] if estimated.any() else self.patches

    @cached_property
    def _effects(self) -> pd.DataFrame:
        if self.cluster is None:
            return effect_table(self._asked, self.pairs)
        of_pair = self.prompts[["pair_id", self.cluster]].drop_duplicates("pair_id")
        named = of_pair.rename(columns={self.cluster: "cluster"})
        pairs = self.pairs.merge(named, on="pair_id", how="left")
        return effect_table(self._asked, pairs, cluster="cluster")

    def _repr_html_(self) -> str | None:
        if self.patches.empty:
            return None
        return notebook_html(list(effects_for_people(self._effects)))


@dataclass(frozen=True, repr=False)
class Tables(_Sized):
    """What any other measurement gives."""

    spec: Spec
    """What was measured."""

    prompts: pd.DataFrame
    """The prompts table: one row per prompt, with pair_id, side and one column per factor."""
    tables: Mapping[str, pd.DataFrame]
    """The measured tables, by name."""
    seed: int = 0
    """What the prompts were generated with."""

    def to_frame(self) -> pd.DataFrame:
        """The first of the tables."""
        return next(iter(self.tables.values()))

    def summary(self) -> pd.DataFrame:
        """What the command line prints first of this measurement.

        Raises:
            UserError: it makes no small tables.
        """
        if not self._results.shown:
            raise UserError(f"{self.spec.name} makes no summary; see tables")
        return self._results.shown[0][1]

    def derived(self) -> Mapping[str, pd.DataFrame]:
        """The small tables that the command line writes as CSV, by name."""
        return self._results.tables

    def plot(self) -> Figure:
        """The first figure that the command line draws of this measurement.

        Raises:
            UserError: it draws none.
        """
        if not self._results.figures:
            raise UserError(f"{self.spec.name} has no figure; see summary() and derived()")
        return _figure(next(iter(self._results.figures.values()))())

    def table(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """A measured table, or the prompts table as "prompts".

        Args:
            name: of the table.
            columns: those to take; all if not given.

        Raises:
            UserError: there is no such table.
        """
        found = {**self.tables, "prompts": self.prompts}
        if name not in found:
            raise UserError(unknown("table", name, list(found)))
        return found[name] if columns is None else found[name][list(columns)]

    def rows(self, name: str) -> pd.DataFrame:
        """The table itself, where a run folder has files."""
        return self.table(name)

    @cached_property
    def _results(self) -> Results:
        return results_of(type(self.spec), self)

    def _repr_html_(self) -> str | None:
        return notebook_html(self._results.shown) if self._results.shown else None


Result = Scores | Attributions | Patches | Tables

_Kind = TypeVar("_Kind", Scores, Attributions, Patches)

_KINDS: dict[type[Spec], type[Scores] | type[Attributions] | type[Patches]] = {
    Evaluate: Scores,
    Attribute: Attributions,
    Patch: Patches,
}


@dataclass(frozen=True, slots=True)
class Origin:
    """What results need to know of where their prompts come from."""

    system: str
    """Name of the system."""
    ratio: tuple[str, str] | None = None
    """The two segments that it compares."""
    seed: int = 0
    """What the prompts were generated with."""


def result_of(spec: Spec, tables: Mapping[str, pd.DataFrame], origin: Origin) -> Result:
    """The tables of a measurement, and of its prompts, in the kind that fits it.

    Args:
        spec: what was measured.
        tables: by name, that of the prompts among them.
        origin: where the prompts come from.
    """
    for own, kind in _KINDS.items():
        if isinstance(spec, own):
            return kind(**_held(kind, tables, origin))
    measured = {name: table for name, table in tables.items() if name != "prompts"}
    return Tables(spec, tables["prompts"], measured, origin.seed)


def made_of(kind: type[_Kind], tables: Mapping[str, pd.DataFrame], origin: Origin) -> _Kind:
    """A result of a kind, from tables by name."""
    return kind(**_held(kind, tables, origin))


def _held(
    kind: type[Scores] | type[Attributions] | type[Patches],
    tables: Mapping[str, pd.DataFrame],
    origin: Origin,
) -> dict[str, Any]:
    """What a kind of result holds."""
    about = {"ratio": origin.ratio, "cluster": dependence_factor(origin.system)}
    found: dict[str, Any] = {**tables, **about}
    return {field.name: found[field.name] for field in fields(kind) if field.name in found}


def _sizes(result: Any) -> Iterator[str]:
    """The tables of a result, each with its number of rows."""
    for field in fields(result):
        held = getattr(result, field.name)
        tables = held if isinstance(held, Mapping) else {field.name: held}
        for name, table in tables.items():
            if isinstance(table, pd.DataFrame):
                yield f"{name}: {len(table):,} rows"


def _chosen(table: pd.DataFrame, name: str, value: str | int) -> pd.DataFrame:
    """The rows that have a value in a column.

    Raises:
        UserError: none has.
    """
    rows = table[table[name] == value]
    if rows.empty:
        known = [str(each) for each in table[name].dropna().unique()]
        raise UserError(unknown(name, str(value), known))
    return rows


_ONE = ("model", "direction", "method", "source", "site", "head")
"""Columns of which a heat map of patches shows one value."""


def _first(table: pd.DataFrame, which: Mapping[str, str | int]) -> pd.DataFrame:
    """The rows of the values that are named, and of the first value of all other columns.

    Raises:
        UserError: an unknown column, or a value that no row has.
    """
    for name in which:
        if name not in _ONE:
            raise UserError(unknown("choice", name, _ONE))
    for name in _ONE:
        default = COUNTERPART if name == "source" else table[name].iloc[0]
        value = which.get(name, default)
        table = table if pd.isna(value) else _chosen(table, name, value)
    return table


def _head(rows: pd.DataFrame) -> int | None:
    """The head of the rows; None where the site has none."""
    head = rows["head"].iloc[0]
    return None if pd.isna(head) else int(head)


def _figure(axes: Axes) -> Figure:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def _sides(prompts: pd.DataFrame) -> tuple[str, ...]:
    return tuple(prompts["side"].unique())
