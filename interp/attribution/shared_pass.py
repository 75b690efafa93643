"""One forward and one backward pass of a batch, for all methods that need no more.

1. Forward: read the batch as embeddings that carry a gradient; keep the logits of the answer and,
   layer by layer, the attention row of the token at which it is read.
2. Backward: the gradient of the target with respect to the embeddings alone.

Each is done only where a method needs it.
"""

from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

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
"""What is there to be read only where attention weights are computed openly."""


@dataclass(frozen=True, slots=True)
class Heads:
    """What the last token takes from each token by each head of a layer."""

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
    """What was read."""
    gradient: Float[Tensor, "batch token size"] | None
    attention_rows: Sequence[Float[Tensor, "batch token"]]
    """One row a layer: attention of the last token, averaged over the heads; empty where no method
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
    """Run the passes of a batch, the backward pass by some rules, and keep what is needed.

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
    """Within the block a pass fills the lists with what is needed of open attention.

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
