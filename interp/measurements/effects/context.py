"""Context attributions of models whose effects are measured, such as those that a server runs.

Methods that score segments by the values of coalitions (`Method.reads_coalitions`) need nothing
that `effects` has not measured: it stores the value of every coalition, with each donor.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

import numpy as np
import pandas as pd

from interp.attribution.attributor import build
from interp.attribution.explained import Played
from interp.attribution.games import Values
from interp.attribution.method import SegmentScores
from interp.attribution.registry import find_method, method_names
from interp.errors import UserError
from interp.statistics.summaries import grouped

COLUMNS = ["model", "prompt_id", "method", "segment", "score"]


@dataclass(frozen=True)
class _Measured:
    """The values of all coalitions of a prompt's segments."""

    segments: tuple[str, ...]
    known: Values

    def values(self, coalitions: Sequence[int] | None = None) -> Values:
        """The values of the given coalitions (by default, of all)."""
        return self.known if coalitions is None else self.known[list(coalitions)]


@dataclass(frozen=True)
class _Prompt:
    seed: str
    game: _Measured


@runtime_checkable
class _ByCoalitions(Protocol):
    """A method that reads nothing but values of coalitions."""

    def attribute(self, explained: Played) -> SegmentScores:
        """The scores of the segments."""


def _is_enough_for(name: str) -> bool:
    """Whether a method reads only coalitions' values; those of other packages might read more."""
    method = find_method(name)
    return method.reads_coalitions and method.implementation.startswith("interp.")


def context_scores(parts: Iterable[pd.DataFrame], methods: Sequence[str]) -> pd.DataFrame:
    """Scores of segments: one row per model, prompt, method and segment (`COLUMNS`).

    Args:
        parts: the parts of the coalition_values table.
        methods: labels of methods that read only values of coalitions.

    Raises:
        UserError: a method is unknown, or reads more of a model.
    """
    built = {}
    for name in methods:
        if not _is_enough_for(name):
            known = [own for own in method_names() if _is_enough_for(own)]
            raise UserError(
                f"the method {name!r} reads more than the values of coalitions, which are all that "
                f"effects measure; expected some of {', '.join(known)}"
            )
        built[name] = cast("_ByCoalitions", build(name, None))
    return pd.DataFrame(
        [(*key, name, *own) for key, name, own in _scored(parts, built)], columns=COLUMNS
    )


def _scored(
    parts: Iterable[pd.DataFrame], built: Mapping[str, _ByCoalitions]
) -> Iterator[tuple[tuple[str, str], str, tuple[str, float]]]:
    """The model and the prompt, the method, and a segment with its score."""
    for part in parts:
        for of, rows in grouped(part[part["donor_kind"] == "instance"], ["model", "prompt_id"]):
            ordered = rows.sort_values("coalition")
            means = np.array(ordered["values"].tolist(), dtype=np.float64).mean(1)
            game = _Measured(tuple(ordered["segments"].iloc[0]), means)
            prompt = _Prompt(str(of["prompt_id"]), game)
            for name, method in built.items():
                for segment, score in method.attribute(prompt).scores.items():
                    yield (str(of["model"]), prompt.seed), name, (segment, score)
