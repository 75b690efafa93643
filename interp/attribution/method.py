"""What an attribution method is: one of two forms, and the scores that it gives a prompt."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from interp.attribution.explained import ExplainedPrompt
from interp.attribution.shared_pass import Captured, Need
from interp.models.backward_rules import PLAIN, BackwardRules
from interp.reading.tokens import Batch


@dataclass(frozen=True, slots=True)
class TokenScores:
    """The scores of a prompt's tokens, in the method's unit, with its sign."""

    scores: NDArray[np.float32]
    """One score a token, without padding."""
    total: float
    """The sum of their absolute values; not finite where any of them is not."""
    completeness_gap: float | None = None
    """Their sum minus the difference of the target that they are to explain, in the target's unit;
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
        """Scores that say nothing, of a prompt whose values are not finite."""
        return cls(dict.fromkeys(segments, math.nan))

    @property
    def total(self) -> float:
        """The sum of the absolute scores; not finite where any of them is not."""
        return sum(abs(score) for score in self.scores.values())


Attribution = TokenScores | SegmentScores


@runtime_checkable
class SharedPass(Protocol):
    """A method that needs one forward pass, and at most one backward pass, of the target.

    All methods of this form share the passes of a batch, but for those whose `rules` change the
    backward pass (an attribute that may be left out): methods of the same rules share theirs.
    """

    needs: frozenset[Need]
    """The tensors that it reads of them."""

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """The score of each token; what it gives for padding is left out."""


def rules_of(method: SharedPass) -> BackwardRules:
    """The rules that a method's backward pass follows."""
    rules: BackwardRules = getattr(method, "rules", PLAIN)
    return rules


@runtime_checkable
class OwnPasses(Protocol):
    """A method that runs passes of its own, one prompt at a time."""

    def attribute(self, explained: ExplainedPrompt) -> Attribution:
        """The scores of a prompt, within `model.measuring()`.

        Passes through `explained.values` keep to the budget of tokens and shrink when memory ends.
        """
