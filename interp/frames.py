"""What notebooks get: the tables of a measurement as data frames, with a summary and a display."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import pandas as pd

from interp.analysis.accuracy import accuracy_table
from interp.analysis.attribution_table import attribution_table
from interp.measurements.attribute import Attribute
from interp.measurements.evaluate import Evaluate
from interp.measurements.patch import Patch
from interp.measurements.spec import Spec
from interp.report.notebook import attributions_html, scores_html


@dataclass(frozen=True, slots=True)
class Scores:
    """Answers of models to prompts."""

    prompts: pd.DataFrame
    """The prompts table: one row per prompt, with pair_id, side and one column per factor."""
    answers: pd.DataFrame
    """The answers table (`interp.tables`): one row per prompt."""

    def to_frame(self) -> pd.DataFrame:
        """One row per prompt."""
        return self.answers

    def summary(self) -> pd.DataFrame:
        """One row: paired accuracy, accuracy of each side, number of prompts."""
        return accuracy_table(self.answers, self.prompts, _sides(self.prompts))

    def _repr_html_(self) -> str | None:
        # Without prompts there is nothing to sum up, and the notebook shows the plain text.
        return None if self.answers.empty else scores_html(self.summary())


@dataclass(frozen=True, slots=True)
class Attributions:
    """Answers of models to prompts, and what they are attributed to."""

    prompts: pd.DataFrame
    """The prompts table: one row per prompt, with pair_id, side and one column per factor."""
    answers: pd.DataFrame
    """The answers table: one row per prompt."""
    attributions: pd.DataFrame
    """The attributions table: one row per prompt and method."""
    token_scores: pd.DataFrame | None = None
    """The token_scores table: one row per prompt, method and token; None if not asked for."""

    def to_frame(self) -> pd.DataFrame:
        """One row per prompt and method."""
        return self.attributions

    def summary(self) -> pd.DataFrame:
        """One row: mean and standard deviation of each method's ratio, next to the accuracies."""
        sides = _sides(self.prompts)
        return attribution_table(self.attributions, self.answers, self.prompts, sides)

    def _repr_html_(self) -> str | None:
        if self.answers.empty:
            return None
        return attributions_html(
            self.summary(),
            prompts=self.prompts,
            answers=self.answers,
            token_scores=self.token_scores,
        )


@dataclass(frozen=True, slots=True)
class Patches:
    """What patches did to the answers of models."""

    prompts: pd.DataFrame
    """The prompts table: one row per prompt, with pair_id, side and one column per factor."""
    patches: pd.DataFrame
    """The patches table: one row per pair, method and cell."""
    pairs: pd.DataFrame
    """The pairs table: one row per pair."""

    def to_frame(self) -> pd.DataFrame:
        """One row per pair, method and cell."""
        return self.patches


@dataclass(frozen=True, slots=True)
class Tables:
    """What any other measurement gives."""

    prompts: pd.DataFrame
    """The prompts table: one row per prompt, with pair_id, side and one column per factor."""
    tables: Mapping[str, pd.DataFrame]
    """The measured tables, by name."""

    def to_frame(self) -> pd.DataFrame:
        """The first of the tables."""
        return next(iter(self.tables.values()))


Result = Scores | Attributions | Patches | Tables

_Kind = TypeVar("_Kind", Scores, Attributions, Patches)

_KINDS: dict[type[Spec], type[Scores] | type[Attributions] | type[Patches]] = {
    Evaluate: Scores,
    Attribute: Attributions,
    Patch: Patches,
}


def result_of(spec: Spec, tables: Mapping[str, pd.DataFrame]) -> Result:
    """The tables of a measurement, and of its prompts, in the kind that fits it."""
    for own, kind in _KINDS.items():
        if isinstance(spec, own):
            return kind(**_taken(kind, tables))
    measured = {name: table for name, table in tables.items() if name != "prompts"}
    return Tables(tables["prompts"], measured)


def made_of(kind: type[_Kind], tables: Mapping[str, pd.DataFrame]) -> _Kind:
    """A result of a kind, from tables by name."""
    return kind(**_taken(kind, tables))


def _taken(
    kind: type[Scores] | type[Attributions] | type[Patches], tables: Mapping[str, pd.DataFrame]
) -> dict[str, Any]:
    """The tables that a kind of result holds."""
    return {field.name: tables[field.name] for field in fields(kind) if field.name in tables}


def _sides(prompts: pd.DataFrame) -> tuple[str, ...]:
    return tuple(prompts["side"].unique())
