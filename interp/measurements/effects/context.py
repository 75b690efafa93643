"""Context attributions of models whose effects are measured, such as those that a server runs.

Methods that score segments by the values of coalitions (`Method.reads_coalitions`) need nothing
that `effects` has not measured: it stores the value of every coalition, with each donor.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from interp.attribution.attributor import build
from interp.attribution.games import Values
from interp.attribution.registry import check_by_coalitions
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


def by_coalitions(methods: Sequence[str]) -> Mapping[str, Any]:
    """Methods of context attribution, by label: each takes a `Played` prompt.

    Raises:
        UserError: a method is unknown, or reads more of a model than values of coalitions.
    """
    for name in methods:
        check_by_coalitions(name)
    return {name: build(name, None) for name in methods}


def scores_of(
    methods: Mapping[str, Any], prompt_id: str, segments: Sequence[str], values: Values
) -> Iterator[tuple[str, str, float]]:
    """The score of each segment of a prompt: method, segment and score in logits.

    `prompt_id` seeds methods that draw coalitions; `values` are means over donors (coalition,).
    """
    prompt = _Prompt(prompt_id, _Measured(tuple(segments), values))
    for name, method in methods.items():
        for segment, score in method.attribute(prompt).scores.items():
            yield name, segment, score


def context_scores(parts: Iterable[pd.DataFrame], methods: Sequence[str]) -> pd.DataFrame:
    """Scores of segments: one row per model, prompt, method and segment (`COLUMNS`)."""
    built = by_coalitions(methods)
    found = []
    for part in parts:
        for of, rows in grouped(part[part["donor_kind"] == "instance"], ["model", "prompt_id"]):
            ordered = rows.sort_values("coalition")
            means = np.array(ordered["values"].tolist(), dtype=np.float64).mean(1)
            key = str(of["model"]), str(of["prompt_id"])
            found += [
                (*key, *own)
                for own in scores_of(built, key[1], list(ordered["segments"].iloc[0]), means)
            ]
    return pd.DataFrame(found, columns=COLUMNS)
