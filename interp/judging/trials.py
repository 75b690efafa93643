"""Scores and effects of the same prompts, as parallel arrays, and the controls.

Controls are scores whose faithfulness is known: `oracle` scores each segment by its Shapley value,
`reversed` by the negated Shapley value, and `random` has the value of a random order, which is
known in closed form (`metrics.Metric.chance`). `length` scores a segment by its number of tokens,
and `position` by its position in the prompt, with higher scores for later segments.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from interp.attribution.games import shapley_values
from interp.attribution.registry import Method, find_method, method_names
from interp.choices import LENGTH, ORACLE, POSITION, RANDOM, REVERSED
from interp.variants import name_of

CONTROLS = (ORACLE, REVERSED, RANDOM, LENGTH, POSITION)

CONTROL = "control"
"""The `score` of a control, in place of "sum" or "mean"."""

Scores = Float[np.ndarray, "*methods prompt segment"]
"""Scores that any number of methods give to the segments of some prompts."""

Effects = Float[np.ndarray, "prompt segment"]
"""The effect of each segment, in logits: its Shapley value, or its leave-one-out effect."""

Values = Float[np.ndarray, "prompt coalition"]
"""v(S) in logits, indexed by the coalition S as a bit mask: bit i is set if segment i is kept."""

Segments = Float[np.ndarray, "prompt segment"]
Weights = Float[np.ndarray, " prompt"]


class Contender(NamedTuple):
    """A method with one way of scoring segments, or a control, to be judged."""

    method: str
    score: str
    """Scoring: "sum" or "mean" over a segment's tokens, or "control"."""


def declared(method: str) -> Method | None:
    """The method with a label; None for scores of other tools."""
    return find_method(method) if name_of(method) in method_names() else None


@dataclass(frozen=True)
class Trials:
    """Prompts of one model whose donors replace the same segments."""

    segments: tuple[str, ...]
    prompt_ids: tuple[str, ...]
    contenders: tuple[Contender, ...]
    """The methods, followed by the controls."""
    has_sign: Bool[np.ndarray, " methods"]
    """Whether a contender's scores can be negative, as evidence against the answer; of other tools,
    whether any is."""
    scores: Float[np.ndarray, "own prompt segment"]
    """The scores of the methods alone, without the controls."""
    tokens: Segments
    places: Segments
    """The position of each segment in the text, from 1."""
    values: Values
    """v, averaged over donors."""
    clusters: tuple[str, ...]
    weights: Weights
    ratio: tuple[str, str] | None
    """The names of two compared segments; the share is that of the first segment."""
    planted: Weights
    """The planted probability that the first segment of the ratio decides; NaN if nothing is."""

    @cached_property
    def shapley(self) -> Effects:
        """The exact Shapley values."""
        return shapley_values(self.values)

    @cached_property
    def sizes(self) -> Scores:
        """The absolute score of each segment by each contender."""
        strength = np.abs(self.shapley)
        mirrored = strength.max(-1, keepdims=True) + strength.min(-1, keepdims=True) - strength
        return np.concatenate([np.abs(self.scores), self._controls(strength, mirrored)])

    @cached_property
    def signed(self) -> Scores:
        """The signed score of each segment by each contender."""
        return np.concatenate([self.scores, self._controls(self.shapley, -self.shapley)])

    def _controls(self, oracle: Effects, reversed_: Effects) -> Scores:
        return np.stack([oracle, reversed_, np.ones_like(oracle), self.tokens, self.places])

    @property
    def compared(self) -> tuple[int, int] | None:
        """The indices of two compared segments; the share is that of the second."""
        if self.ratio is None or not set(self.ratio) <= set(self.segments):
            return None
        above, below = self.ratio
        return self.segments.index(below), self.segments.index(above)


@dataclass(frozen=True)
class Tables:
    """The measured tables of one model, and its prompts."""

    segment_scores: pd.DataFrame
    coalition_values: pd.DataFrame
    prompts: pd.DataFrame
    """The prompts table."""
    cluster: str
    """The column of `prompts` with their clusters."""
    ratio: tuple[str, str] | None
    """See `Trials`."""
    planted: pd.Series | None = None
    """The planted probability that the first segment of the ratio decides, by prompt."""


def trials_of(tables: Tables) -> list[Trials]:
    """The prompts with effects and scores by every method, grouped by their segments.

    First, methods without any score are omitted; then, prompts for which a method lacks a score.
    """
    scores = _by_contender(tables.segment_scores)
    if not scores:
        return []
    values = tables.coalition_values
    values = values[values["donor_kind"] == "instance"]
    groups = (
        _of_segments(tables, list(segments), rows, scores)
        for segments, rows in values.groupby(values["segments"].map(tuple), sort=False)
    )
    return [trials for trials in groups if trials is not None]


def _by_contender(segment_scores: pd.DataFrame) -> dict[Contender, pd.DataFrame]:
    """The scores of each contender that has any: one row per prompt, one column per segment."""
    by_contender: dict[Contender, pd.DataFrame] = {}
    for method, rows in segment_scores.dropna(subset=["score"]).groupby("method", sort=False):
        scores = rows.pivot(index="prompt_id", columns="segment", values="score")
        by_contender[Contender(str(method), "sum")] = scores
        registered = declared(str(method))
        if rows["tokens"].notna().all() if registered is None else registered.tokens:
            tokens = rows.pivot(index="prompt_id", columns="segment", values="tokens")
            by_contender[Contender(str(method), "mean")] = scores / tokens.where(tokens > 0)
    return by_contender


def _of_segments(
    tables: Tables, names: list[str], rows: pd.DataFrame, scores: dict[Contender, pd.DataFrame]
) -> Trials | None:
    """The prompts whose donors replace these segments; None if no prompt is complete."""
    ids = rows["prompt_id"].unique()
    cube = np.stack([wide.reindex(ids, columns=names).to_numpy(float) for wide in scores.values()])
    complete = np.isfinite(cube).all(axis=(0, 2))
    kept = ids[complete].tolist()
    if not kept:
        return None
    contenders = (*scores, *(Contender(name, CONTROL) for name in CONTROLS))
    prompts = tables.prompts.set_index("prompt_id").loc[kept]
    starts = prompts[[f"{name}_start" for name in names]].to_numpy(float)
    counts = tables.segment_scores.drop_duplicates(["prompt_id", "segment"])
    counts = counts.pivot(index="prompt_id", columns="segment", values="tokens")
    games = rows.sort_values("coalition").groupby("prompt_id", sort=False)["values"]
    values = {id_: np.stack(list(game)).mean(1) for id_, game in games}
    planted = pd.Series(dtype=float) if tables.planted is None else tables.planted
    return Trials(
        segments=tuple(names),
        prompt_ids=tuple(kept),
        contenders=contenders,
        has_sign=np.array([_has_sign(contender, scores) for contender in contenders]),
        scores=cube[:, complete],
        tokens=counts.loc[kept, names].to_numpy(float),
        places=starts.argsort(-1).argsort(-1) + 1.0,
        values=np.stack([values[id_] for id_ in kept]),
        clusters=tuple(prompts.get(tables.cluster, prompts.index.to_series()).astype(str)),
        weights=prompts["weight"].to_numpy(float),
        ratio=tables.ratio,
        planted=planted.reindex(kept).to_numpy(float),
    )


def _has_sign(contender: Contender, scores: Mapping[Contender, pd.DataFrame]) -> bool:
    if contender.score == CONTROL:
        return contender.method in (ORACLE, REVERSED)
    registered = declared(contender.method)
    return bool((scores[contender] < 0).any(axis=None)) if registered is None else registered.signed
