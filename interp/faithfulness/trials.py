"""Scores and effects of the same prompts as parallel arrays, and controls.

Controls are scores whose faithfulness is known. `oracle` scores each segment by its Shapley value,
`reversed` the other way round, `random` is the value of a random order (in closed form,
`metrics.Metric.chance`), `length` scores a segment by its number of tokens, and `position` by its
place in the prompt, later ones higher.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from interp.attribution.games import leave_one_out, shapley_values
from interp.attribution.registry import find_method
from interp.choices import LENGTH, ORACLE, POSITION, RANDOM, REVERSED
from interp.faithfulness.agreement import Effects, Scores, Values

CONTROLS = (ORACLE, REVERSED, RANDOM, LENGTH, POSITION)

Segments = Float[np.ndarray, "prompt segment"]


def control_sizes(
    effects: Effects, tokens: Segments, places: Segments
) -> Float[np.ndarray, "control prompt segment"]:
    """How strong each segment is by each control, in the order of `CONTROLS`."""
    strength = np.abs(effects)
    mirrored = strength.max(-1, keepdims=True) + strength.min(-1, keepdims=True) - strength
    return np.stack([strength, mirrored, np.ones_like(strength), tokens, places])


def control_scores(
    effects: Effects, tokens: Segments, places: Segments
) -> Float[np.ndarray, "control prompt segment"]:
    """The scores of each control, in the order of `CONTROLS`."""
    return np.stack([effects, -effects, np.ones_like(effects), tokens, places])


Weights = Float[np.ndarray, " prompt"]


class Contender(NamedTuple):
    """A judged method with one way of scoring segments, or a control."""

    method: str
    score: str
    """"sum" over a segment's tokens, "mean" of a token, or "control"."""


@dataclass(frozen=True)
class Judged:
    """The input of metrics: scores and values of prompts with the same segments."""

    sizes: Scores
    """How strong each segment is by each contender, never negative."""
    signed: Scores
    """The contender's scores with their sign."""
    has_sign: Bool[np.ndarray, " methods"]
    """Whether a contender's scores can be negative, for evidence against the answer."""
    values: Values
    compared: tuple[int, int] | None
    """The places of two compared segments, the second over the first."""
    planted: Weights
    """The planted probability that the second of these decides; NaN if nothing is planted."""

    @cached_property
    def shapley(self) -> Effects:
        """The exact Shapley values."""
        return shapley_values(self.values)

    @cached_property
    def left_out(self) -> Effects:
        """The leave-one-out effects v(N) - v(N without i)."""
        return leave_one_out(self.values)


@dataclass(frozen=True)
class Trials:
    """Prompts of one model whose donors replace the same segments."""

    segments: tuple[str, ...]
    prompt_ids: tuple[str, ...]
    contenders: tuple[Contender, ...]
    """The methods, then the controls."""
    has_sign: Bool[np.ndarray, " methods"]
    """The same as in `Judged`."""
    scores: Float[np.ndarray, "own prompt segment"]
    """Scores of only the methods."""
    tokens: Float[np.ndarray, "prompt segment"]
    places: Float[np.ndarray, "prompt segment"]
    """1 for the first segment in the text."""
    values: Values
    """v as the mean over donors."""
    clusters: tuple[str, ...]
    weights: Weights
    ratio: tuple[str, str] | None
    """Two compared segments, the first over the second."""
    planted: Weights
    """As in `Judged`."""

    def judged(self) -> Judged:
        """The input of metrics."""
        effects = shapley_values(self.values)
        known = (effects, self.tokens, self.places)
        return Judged(
            sizes=np.concatenate([np.abs(self.scores), control_sizes(*known)]),
            signed=np.concatenate([self.scores, control_scores(*known)]),
            has_sign=self.has_sign,
            values=self.values,
            compared=self._compared,
            planted=self.planted,
        )

    @property
    def _compared(self) -> tuple[int, int] | None:
        if self.ratio is None or not set(self.ratio) <= set(self.segments):
            return None
        above, below = self.ratio
        return self.segments.index(below), self.segments.index(above)


CONTROL = "control"
"""How a control is scored."""


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
    """As in `Trials`."""
    planted: pd.Series | None = None
    """By prompt, the planted probability that the first segment of the ratio decides."""


def trials_of(tables: Tables) -> list[Trials]:
    """The prompts that have effects, and scores by every method, grouped by their segments.

    Methods without any score are omitted, then prompts that lack a score by some method.
    """
    scores = _by_contender(tables.segment_scores)
    if not scores:
        return []
    values = _instance(tables.coalition_values)
    keys = values["segments"].map(tuple)
    return [
        trials
        for segments, rows in values.groupby(keys, sort=False)
        if (trials := _of_segments(tables, tuple(segments), rows, scores)) is not None
    ]


def _instance(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["donor_kind"] == "instance"]


def _by_contender(segment_scores: pd.DataFrame) -> dict[Contender, pd.DataFrame]:
    """Scores of each method that has any: one row per prompt, one column per segment."""
    found: dict[Contender, pd.DataFrame] = {}
    for method, rows in segment_scores.dropna(subset=["score"]).groupby("method", sort=False):
        scores = rows.pivot(index="prompt_id", columns="segment", values="score")
        found[Contender(str(method), "sum")] = scores
        if find_method(str(method)).tokens:
            tokens = rows.pivot(index="prompt_id", columns="segment", values="tokens")
            found[Contender(str(method), "mean")] = scores / tokens.where(tokens > 0)
    return found


def _of_segments(
    tables: Tables,
    segments: tuple[str, ...],
    rows: pd.DataFrame,
    scores: dict[Contender, pd.DataFrame],
) -> Trials | None:
    """The prompts whose donors replace these segments; None if no prompt is complete."""
    ids = list(dict.fromkeys(rows["prompt_id"]))
    stacked = np.stack(
        [own.reindex(index=ids, columns=list(segments)).to_numpy(float) for own in scores.values()]
    )
    whole = np.isfinite(stacked).all(axis=(0, 2))
    kept = [id_ for id_, is_whole in zip(ids, whole, strict=True) if is_whole]
    if not kept:
        return None
    contenders = (*scores, *(Contender(name, CONTROL) for name in CONTROLS))
    prompts = tables.prompts.set_index("prompt_id").loc[kept]
    starts = prompts[[f"{name}_start" for name in segments]].to_numpy(float)
    return Trials(
        segments=segments,
        prompt_ids=tuple(kept),
        contenders=contenders,
        has_sign=np.array([_has_sign(contender) for contender in contenders]),
        scores=stacked[:, whole],
        tokens=_tokens(tables.segment_scores, kept, segments),
        places=starts.argsort(-1).argsort(-1) + 1.0,
        values=_values(rows, kept),
        clusters=tuple(prompts.get(tables.cluster, prompts.index.to_series()).astype(str)),
        weights=prompts["weight"].to_numpy(float),
        ratio=tables.ratio,
        planted=_planted(tables, kept),
    )


def _has_sign(contender: Contender) -> bool:
    if contender.score == CONTROL:
        return contender.method in (ORACLE, REVERSED)
    return find_method(contender.method).signed


def _planted(tables: Tables, ids: Sequence[str]) -> Weights:
    if tables.planted is None:
        return np.full(len(ids), np.nan)
    return np.asarray(tables.planted.reindex(list(ids)).to_numpy(float))


def _tokens(
    segment_scores: pd.DataFrame, ids: Sequence[str], segments: Sequence[str]
) -> Float[np.ndarray, "prompt segment"]:
    counts = segment_scores.drop_duplicates(["prompt_id", "segment"])
    wide = counts.pivot(index="prompt_id", columns="segment", values="tokens")
    found: np.ndarray = wide.loc[list(ids), list(segments)].to_numpy(float)
    return found


def _values(rows: pd.DataFrame, ids: Sequence[str]) -> Values:
    games = rows.sort_values("coalition").groupby("prompt_id", sort=False)["values"]
    by_prompt = {id_: np.stack(list(game)).mean(1) for id_, game in games}
    return np.stack([by_prompt[id_] for id_ in ids])
