"""What an attribution method is: one of two forms, what it reads, and the scores that it gives.

A method of the first form shares the passes of a batch with all others that need no more:

1. Forward: read the batch as embeddings that carry a gradient; keep the logits of the answer and,
   layer by layer, the attention row of the token where it is read.
2. Backward: the gradient of the target with respect to the embeddings alone.

Each is done only where a method needs it. A method of the second form runs its own passes, one
prompt at a time.
"""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from interp.attribution.explained import ExplainedPrompt
from interp.attribution.targets import objective
from interp.models.attention_rows import answer_attention
from interp.models.backward_rules import PLAIN, BackwardRules, backward_rules, open_attention
from interp.models.model import Model
from interp.models.sites import View, layer_count, locate, watched
from interp.reading.readers import reader_of
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import Predictions, predict

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


def shared_pass(
    model: Model,
    batch: Batch,
    answer_tokens: AnswerTokenizer,
    *,
    needs: Set[Need],
    target: str,
    rules: BackwardRules = PLAIN,
) -> Captured:
    """Run the passes of a batch, the backward pass by `rules`, and keep what is needed.

    The target of a prompt depends on its own embeddings alone, so that one backward pass of the sum
    serves the whole batch.
    """
    differentiated = "input_gradient" in needs
    with ExitStack() as stack:
        stack.enter_context(model.measuring())
        stack.enter_context(torch.set_grad_enabled(differentiated))
        stack.enter_context(backward_rules(model, rules))
        rows: list[Tensor] = []
        if "attention_rows" in needs:
            rows = stack.enter_context(answer_attention(model))
        opened = stack.enter_context(_opened(model, needs))
        embeddings = reader_of(model).embed(batch.token_ids).requires_grad_(differentiated)
        predictions = predict(model, batch, answer_tokens, embeddings=embeddings)
        gradient = None
        if differentiated:
            attributed = objective(target, batch, predictions)
            (gradient,) = torch.autograd.grad(attributed.sum(), embeddings)
    predictions = Predictions(predictions.logits.detach(), predictions.answers)
    maps, heads = opened
    return Captured(batch, predictions, embeddings.detach(), gradient, rows, maps, heads)


@contextmanager
def _opened(model: Model, needs: Set[Need]) -> Iterator[tuple[list[Tensor], list[Heads]]]:
    """Within the block a pass fills the lists with what methods need from open attention.

    Raises:
        UserError: the architecture is not understood, or is that of an encoder.
    """
    maps: list[Tensor] = []
    heads: list[Heads] = []
    if not needs & OPEN:
        yield maps, heads
        return
    values: list[Tensor] = []

    def see_weights(weights: Tensor) -> None:
        weights = weights.detach()
        if "attention_maps" in needs:
            maps.append(weights.mean(1))
        if "heads" in needs:
            heads.append(Heads(weights[:, :, -1], values.pop()))

    with ExitStack() as stack:
        stack.enter_context(open_attention(model))
        for layer in range(layer_count(model)):
            place = locate(model, "v", layer)
            keep = partial(_keep, place.view, values)
            stack.enter_context(watched([place], keep))
            stack.enter_context(watched([locate(model, "pattern", layer)], see_weights))
        yield maps, heads


def _keep(view: View, kept: list[Tensor], tensor: Tensor) -> None:
    kept.append(view(tensor.detach()))


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
