"""The two kinds of attribution methods, and the classes of their inputs and scores."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from interp.models.model import Model
from interp.models.precision import wide
from interp.reading.tokens import Batch
from interp.scoring.answers import Predictions

if TYPE_CHECKING:
    from interp.attribution.explained import ExplainedPrompt

Need = Literal["input_gradient", "donor_products", "attention_rows", "attention_maps", "heads"]
"""Tensors that a pass keeps only if a method lists them among its needs."""

DIFFERENTIATED: frozenset[Need] = frozenset({"input_gradient", "donor_products"})
"""Tensors that need a backward pass."""

ATTENTION: frozenset[Need] = frozenset({"attention_rows", "attention_maps", "heads"})
"""Needs that read the heads of attention."""

OPEN: frozenset[Need] = frozenset({"attention_maps", "heads"})
"""Tensors that are available only if attention weights are computed explicitly."""


@dataclass(frozen=True, slots=True)
class Heads:
    """The heads of one layer: the last token's attention, and every token's values."""

    weights: Float[Tensor, "batch head token"]
    values: Float[Tensor, "batch token kv_head size"]


@dataclass(frozen=True, slots=True)
class Captured:
    """The results of a batch's passes, shared by methods."""

    batch: Batch
    predictions: Predictions
    """The answers, without a gradient."""
    embeddings: Float[Tensor, "batch token size"]
    """The embeddings of the batch's tokens."""
    gradient: Float[Tensor, "batch token size"] | None
    attention_rows: Sequence[Float[Tensor, "batch token"]]
    """The last token's attention in each layer, averaged over the heads; empty if not needed."""
    attention_maps: Sequence[Float[Tensor, "batch query token"]] = ()
    """The attention of every token in each layer, averaged over the heads; empty if not needed."""
    heads: Sequence[Heads] = ()
    """The heads' attention and values in each layer; empty if not needed."""
    products: Float[Tensor, "batch token"] | None = None
    """See `donor_products`."""

    @property
    def input_gradient(self) -> Float[Tensor, "batch token size"]:
        """The gradient of each prompt's target with respect to its embeddings.

        Raises:
            LookupError: the gradient is not among the method's needs.
        """
        if self.gradient is None:
            raise LookupError("a method that uses input_gradient must list it among its needs")
        return self.gradient

    @property
    def donor_products(self) -> Float[Tensor, "batch token"]:
        """(Embedding - donor's embedding) . gradient of each token.

        Raises:
            LookupError: the method does not list donor_products among its needs.
        """
        if self.products is None:
            raise LookupError("a method that uses donor_products must list it among its needs")
        return self.products


@dataclass(frozen=True, slots=True)
class TokenScores:
    """The signed scores of a prompt's tokens, in the method's units."""

    scores: NDArray[np.floating]
    """One score per token, without padding."""
    total: float
    """The sum of the absolute scores; not finite if any score is not."""
    completeness_gap: float | None = None
    """The sum of the scores minus the change in the target that they should add up to, in the
    target's units; None if they need not add up to any change."""

    @classmethod
    def of(cls, scores: Float[Tensor, "batch token"], batch: Batch) -> "list[TokenScores]":
        """The scores of each prompt of a batch, excluding padding."""
        scores = wide(scores).masked_fill(batch.attention_mask == 0, 0.0)
        totals = scores.abs().sum(-1).tolist()
        rows = scores.cpu().numpy()
        return [cls(rows[i, batch.unpadded(i)], total) for i, total in enumerate(totals)]


@dataclass(frozen=True, slots=True)
class SegmentScores:
    """The scores of a prompt's segments by a method that does not score individual tokens."""

    scores: Mapping[str, float]
    """Scores by segment; `interp.choices.TEMPLATE` stands for the tokens outside all segments."""
    completeness_gap: float | None = None
    """See `TokenScores`."""

    @classmethod
    def undefined(cls, segments: Sequence[str]) -> "SegmentScores":
        """NaN scores for every segment of a prompt whose values are not finite."""
        return cls(dict.fromkeys(segments, math.nan))

    @property
    def total(self) -> float:
        """The sum of the absolute scores; not finite if any score is not."""
        return sum(abs(score) for score in self.scores.values())


Attribution = TokenScores | SegmentScores


class AnyModel:
    """Base class of methods that support any model."""

    def __init__(self, model: Model | None) -> None:
        pass


@runtime_checkable
class SharedPass(Protocol):
    """A method that requires one forward pass and at most one backward pass from the target.

    All such methods share the passes of a batch. Methods with the same `rules` (an optional
    attribute that changes the backward pass, `PLAIN` by default) share a backward pass.
    """

    needs: frozenset[Need]
    """The tensors from these passes that the method uses."""

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """The score of each token; scores of padding are ignored."""


@runtime_checkable
class OwnPasses(Protocol):
    """A method that runs its own passes, one prompt at a time."""

    def attribute(self, explained: "ExplainedPrompt") -> Attribution:
        """The scores of a prompt. It is called within `model.measuring()`."""
