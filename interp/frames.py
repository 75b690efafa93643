"""What notebooks get: the tables of a measurement as data frames, with a summary and a display."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import pandas as pd

from interp.analysis.accuracy import accuracy_table
from interp.analysis.attribution_table import attribution_table
from interp.analysis.segments import segment_ratios, segment_table, token_shares
from interp.errors import UserError
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
    option_probabilities: pd.DataFrame
    """The option_probabilities table: one row per prompt and option."""

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
            return segment_table(self.segment_scores)
        sides = _sides(self.prompts)
        return attribution_table(self.ratios(), self.answers, self.prompts, sides)

    def _repr_html_(self) -> str | None:
        if self.answers.empty:
            return None
        shares = None if self.tokens is None else self.token_shares()
        return attributions_html(
            self.summary(),
            prompts=self.prompts,
            answers=self.answers,
            shares=shares,
            ratio=self.ratio,
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
    node_sets: pd.DataFrame | None = None
    """The node_sets table: one row per pair, ranking and set; None if not asked for."""

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


def result_of(
    spec: Spec, tables: Mapping[str, pd.DataFrame], ratio: tuple[str, str] | None = None
) -> Result:
    """The tables of a measurement, and of its prompts, in the kind that fits it.

    Args:
        spec: what was measured.
        tables: by name, that of the prompts among them.
        ratio: the two segments that the prompts' system compares.
    """
    for own, kind in _KINDS.items():
        if isinstance(spec, own):
            return kind(**_taken(kind, tables, ratio))
    measured = {name: table for name, table in tables.items() if name != "prompts"}
    return Tables(tables["prompts"], measured)


def made_of(
    kind: type[_Kind], tables: Mapping[str, pd.DataFrame], ratio: tuple[str, str] | None = None
) -> _Kind:
    """A result of a kind, from tables by name."""
    return kind(**_taken(kind, tables, ratio))


def _taken(
    kind: type[Scores] | type[Attributions] | type[Patches],
    tables: Mapping[str, pd.DataFrame],
    ratio: tuple[str, str] | None,
) -> dict[str, Any]:
    """What a kind of result holds."""
    found: dict[str, Any] = {**tables, "ratio": ratio}
    return {field.name: found[field.name] for field in fields(kind) if field.name in found}


def _sides(prompts: pd.DataFrame) -> tuple[str, ...]:
    return tuple(prompts["side"].unique())
