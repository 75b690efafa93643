"""The residual stream at chosen tokens of each prompt: after the embedding and after each layer."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import UserError
from interp.measurements.core import Measurement, PromptRows
from interp.measurements.scoring import answer_error
from interp.models.model import Model
from interp.models.sites import layer_count, locate, watched
from interp.reading.budget import token_budget
from interp.reading.tokens import Batch, TokenizedPrompt
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import answer_tables, predict
from interp.tables import Row
from interp_probes.specs import LAST_TOKEN, Residuals


def residuals(model: Model, spec: Residuals, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers and the residual stream at some positions in the same forward pass.

    Raises:
        UserError: when measured, a prompt without a segment of that name.
    """
    positions = spec.positions
    answer_tokens = AnswerTokenizer(model)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        places = _places(batch, positions)
        with torch.inference_mode(), model.measuring(), residual_stream(model, places) as stream:
            predictions = predict(model, batch, answer_tokens)
        answers = answer_tables(model, batch, predictions)
        vectors = torch.stack([layer.float().cpu() for layer in stream], dim=2)
        return [
            {
                "answers": tables["answers"],
                "residuals": _rows(model, prompt, positions, vectors[row]),
            }
            for row, (tables, prompt) in enumerate(zip(answers, batch.prompts, strict=True))
        ]

    budget = token_budget(model, batch_tokens)
    return Measurement(
        model, spec, spec.tables(), budget, measure_batch, partial(answer_error, model)
    )


@contextmanager
def residual_stream(
    model: Model, places: Int[Tensor, "batch position"]
) -> Iterator[list[Float[Tensor, "batch position size"]]]:
    """Within the block each forward pass appends the stream at `places` to the yielded list.

    First what enters the first layer, then what leaves each layer. Only these rows are kept.
    """
    kept: list[Tensor] = []

    def keep(hidden: Tensor) -> None:
        at = places.to(hidden.device)
        rows = torch.arange(len(at), device=hidden.device)[:, None]
        kept.append(hidden[rows, at].detach())

    after = [locate(model, "resid_post", layer) for layer in range(layer_count(model))]
    with watched([locate(model, "resid_pre", 0), *after], keep):
        yield kept


def _places(batch: Batch, positions: Sequence[str]) -> Int[Tensor, "batch position"]:
    """The column of each position in the padded batch."""
    # What is padded on the right begins at the first column.
    starts = [batch.unpadded(row).start or 0 for row in range(len(batch.prompts))]
    return torch.tensor(
        [
            [starts[row] + _place(prompt, position) for position in positions]
            for row, prompt in enumerate(batch.prompts)
        ]
    )


def _place(tokenized: TokenizedPrompt, position: str) -> int:
    """The index of a position among the prompt's own tokens."""
    if position == LAST_TOKEN:
        return len(tokenized) - 1
    if position not in tokenized.segments:
        known = ", ".join([LAST_TOKEN, *tokenized.segments])
        raise UserError(
            f"prompt {tokenized.prompt.id} has no position {position!r}; it has {known}"
        )
    return tokenized.segments[position][1] - 1


def _rows(
    model: Model,
    tokenized: TokenizedPrompt,
    positions: Sequence[str],
    vectors: Float[Tensor, "position layer size"],
) -> list[Row]:
    return [
        {
            "model": model.name,
            "prompt_id": tokenized.prompt.id,
            "position": position,
            "layer": layer,
            "vector": vector.numpy(),
        }
        for position, layers in zip(positions, vectors, strict=True)
        for layer, vector in enumerate(layers)
    ]
