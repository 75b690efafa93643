"""An attribution method has one of two forms; here are both, with their inputs and their scores.

A method of the first form shares the passes of a batch (`interp.attribution.attributor`) with all
others that need no more. A method of the second form runs its own passes, one prompt at a time.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from interp.attribution.explained import ExplainedPrompt
from interp.models.backward_rules import PLAIN, BackwardRules
from interp.reading.tokens import Batch
from interp.scoring.answers import Predictions

Need = Literal["input_gradient", "attention_rows", "attention_maps", "heads"]
"""What a pass keeps only for methods that name it."""

OPEN: frozenset[Need] = frozenset({"attention_maps", "heads"})
"""What can be read only where attention weights are computed openly."""


@dataclass(frozen=True, slots=True)
class Heads:
    """What each head of a layer brings to the last token from each token."""

    weights: Float[Tensor, "batch head token"]
    """Its attention."""
    values: Float[Tensor, "batch token kv_head size"]


@dataclass(frozen=True, slots=True)
class Captured:
    """What the passes of a batch leave for the methods that share them."""

    batch: Batch
    predictions: Predictions
    """The answers, without a gradient."""
    embeddings: Float[Tensor, "batch token size"]
    """The embeddings that were read."""
    gradient: Float[Tensor, "batch token size"] | None
    attention_rows: Sequence[Float[Tensor, "batch token"]]
    """One per layer: attention of the last token, averaged over the heads; empty where no method
    needs it."""
    attention_maps: Sequence[Float[Tensor, "batch query token"]] = ()
    """The same of every token."""
    heads: Sequence[Heads] = ()
    """Head by head, for each layer."""

    @property
    def input_gradient(self) -> Float[Tensor, "batch token size"]:
        """The gradient of each prompt's target with respect to its embeddings.

        Raises:
            LookupError: the method does not name it among its needs.
        """
        if self.gradient is None:
            raise LookupError("a method that reads input_gradient must name it among its needs")
        return self.gradient


@dataclass(frozen=True, slots=True)
class TokenScores:
    """The scores of a prompt's tokens, in the method's unit, with its sign."""

    scores: NDArray[np.float32]
    """One score a token, without padding."""
    total: float
    """The sum of their absolute values; not finite where any of them is not."""
    completeness_gap: float | None = None
    """Their sum minus the difference of the target that they should explain, in the target's unit;
    None where a method explains no difference."""

    @classmethod
    def of(cls, scores: Float[Tensor, "batch token"], batch: Batch) -> "list[TokenScores]":
        """The scores of each prompt of a batch, without those of the padding."""
        scores = scores.float().masked_fill(batch.attention_mask == 0, 0.0)
        totals = scores.abs().sum(-1).tolist()
        rows = scores.cpu().numpy()
        return [cls(rows[i, batch.unpadded(i)], total) for i, total in enumerate(totals)]


@dataclass(frozen=True, slots=True)
class SegmentScores:
    """The scores of a prompt's segments, by a method that has no scores of single tokens."""

    scores: Mapping[str, float]
    """By segment; the tokens outside all segments are `interp.choices.TEMPLATE`."""
    completeness_gap: float | None = None
    """As that of token scores."""

    @classmethod
    def undefined(cls, segments: Sequence[str]) -> "SegmentScores":
        """NaN for every segment, where a prompt's values are not finite."""
        return cls(dict.fromkeys(segments, math.nan))

    @property
    def total(self) -> float:
        """The sum of the absolute scores; not finite where any of them is not."""
        return sum(abs(score) for score in self.scores.values())


Attribution = TokenScores | SegmentScores


@runtime_checkable
class SharedPass(Protocol):
    """A method that needs one forward pass, and at most one backward pass, of the target.

    All methods of this form share the passes of a batch. Where `rules` (an optional attribute)
    change the backward pass, methods with the same rules share theirs.
    """

    needs: frozenset[Need]
    """The tensors of these passes that it reads."""

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """The score of each token; scores of padding are ignored."""


def rules_of(method: SharedPass) -> BackwardRules:
    """The rules of a method's backward pass."""
    rules: BackwardRules = getattr(method, "rules", PLAIN)
    return rules


@runtime_checkable
class OwnPasses(Protocol):
    """A method that runs its own passes, one prompt at a time."""

    def attribute(self, explained: ExplainedPrompt) -> Attribution:
        """The scores of a prompt, within `model.measuring()`.

        Passes through `explained.values` keep to the budget of tokens and shrink when memory ends.
        """
