"""Input gradient and attention of a batch in one forward and one backward pass.

1. Forward: read the batch as embeddings that carry a gradient; keep the logits of the answer and,
   layer by layer, the attention row of the token at which it is read.
2. Backward: the gradient of the target with respect to the embeddings alone.
3. Aggregate: token scores as shares of the prompt, sums over each premise, their ratio.
"""

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np
import torch
from numpy.typing import NDArray

from interp.attribution.attention import attention_scores
from interp.attribution.gradient import gradient_scores
from interp.attribution.targets import objective
from interp.models.attention_rows import answer_attention
from interp.models.model import Model
from interp.reading.readers import reader_of
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import Predictions, predict

TokenScores = dict[str, NDArray[np.float32]]
"""Method to its scores, (batch, token): shares of each prompt, 0 on padding."""


def attribute_in_one_pass(
    model: Model,
    batch: Batch,
    answer_tokens: AnswerTokenizer,
    *,
    methods: Sequence[str],
    target: str,
) -> tuple[Predictions, TokenScores]:
    """Predictions and token scores of a batch, by each of `methods`."""
    with ExitStack() as stack:
        stack.enter_context(model.measuring())
        stack.enter_context(torch.set_grad_enabled("gradient" in methods))
        rows = []
        if "attention" in methods:
            rows = stack.enter_context(answer_attention(model))
        embeddings = reader_of(model).embed(batch).detach()
        embeddings.requires_grad_("gradient" in methods)
        predictions = predict(model, batch, answer_tokens, embeddings=embeddings)
        scores: TokenScores = {}
        if "gradient" in methods:
            attributed = objective(target, batch, predictions)
            scores["gradient"] = gradient_scores(attributed, embeddings, batch).cpu().numpy()
        if "attention" in methods:
            scores["attention"] = attention_scores(rows, batch).cpu().numpy()
    return predictions, scores
