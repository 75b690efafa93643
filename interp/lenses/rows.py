"""Rows of lenses: for each word, the direction of the residual stream that leads to saying it.

Jacobian lens (Gurnee et al. 2026, "Verbalizable representations form a global workspace in language
models"): with h[l, t] the stream behind layer l at token t and f[t'] the final stream, before the
final norm, the lens of layer l is J = the mean over texts and tokens t of the sum over t' >= t of
d f[t'] / d h[l, t]. The first tokens of a text, which are attention sinks, and its last token,
which has no next one, do not count. The row of word w is v[l, w] = U[w] J, with the final norm's
weight folded into U (`final`) and its scale left out. Only the rows of chosen words are computed:
one backward pass per word from the sum of U[w] f[t'] gives them at all layers.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.console import passed
from interp.errors import UserError
from interp.lenses.final import check_lens, unembedding_rows
from interp.models.families.settings import drops_tokens
from interp.models.model import Model
from interp.models.precision import wide
from interp.models.sites import Location, embedded_as, layer_count, locate, recorded
from interp.prompts.answers import FreeText
from interp.prompts.prompt import Prompt
from interp.reading.budget import TokenBudget, in_chunks
from interp.reading.readers import reader_of
from interp.reading.tokens import Batch, ChatText, TokenizedPrompt, pad

EMBEDDING = -1
"""The layer number of the stream that layer 0 reads: the embeddings."""

FIRST = 4
"""Number of tokens at the beginning of a text that do not count, as they are attention sinks."""

Streams = Mapping[int, Float[Tensor, "row token width"]]
"""The residual stream behind each layer, by layer; `EMBEDDING` is before the first."""

LensRows = Float[Tensor, "layer word width"]


def stream_at(model: Model, layer: int) -> Location:
    """The residual stream behind a layer, or before the first one (`EMBEDDING`)."""
    return locate(model, *(("resid_pre", 0) if layer == EMBEDDING else ("resid_post", layer)))


def check_layers(model: Model, layers: Sequence[int]) -> None:
    """Check that a model has these layers."""
    count = layer_count(model)
    for layer in layers:
        if not EMBEDDING <= layer < count:
            raise UserError(
                f"no layer {layer} in {model.name}; expected 0 to {count - 1}, or {EMBEDDING} for "
                "the embeddings"
            )


def read_texts(model: Model, texts: Sequence[str]) -> list[TokenizedPrompt]:
    """Texts without a chat template, the shortest first; none without a token that counts."""
    encoded = model.tokenizer(list(texts), add_special_tokens=True)["input_ids"]
    limit = model.context_length
    kept = [
        TokenizedPrompt(
            Prompt(f"text {number}", text, {}, FreeText(("-",)), f"text {number}", "text", {}),
            ChatText(text, 0, templated=False),
            tuple(ids[:limit]),
            {},
        )
        for number, (text, ids) in enumerate(zip(texts, encoded, strict=True))
        if len(ids[:limit]) > FIRST + 1
    ]
    if not kept:
        raise UserError(
            f"none of {len(texts)} texts has more than {FIRST + 1} tokens, so there is nothing to "
            "fit a lens on; expected sentences"
        )
    return sorted(kept, key=len)


def summed_rows(
    model: Model,
    texts: Sequence[TokenizedPrompt],
    directions: Float[Tensor, "word width"],
    layers: Sequence[int],
    *,
    budget: TokenBudget,
) -> Iterator[tuple[int, LensRows]]:
    """For batches of texts (`read_texts`), in order, their number and the sum of their rows.

    `directions` are folded rows of the unembedding; a pass has at most `budget` tokens.
    """

    def summed(chunk: Sequence[TokenizedPrompt]) -> LensRows:
        batch = pad(model, chunk)
        tokens = batch.unpadded(0)  # those of every row, since the texts are equally long
        counted = torch.zeros_like(batch.attention_mask)
        counted[:, (tokens.start or 0) + FIRST : tokens.stop - 1] = 1
        length = len(chunk[0]) - FIRST - 1
        by_word = []
        for gradients in _gradients(model, batch, directions, layers, counted):
            each = (
                (wide(one) * counted.to(one.device)[..., None]).sum((0, 1)) for one in gradients
            )
            by_word.append(torch.stack([rows.cpu() for rows in each]) / length)
        return torch.stack(by_word, 1)

    for _, alike in groupby(texts, key=len):
        for done, sums in in_chunks(list(alike), summed, tokens=len, budget=budget):
            yield len(done), sums


def own_rows(
    model: Model,
    batch: Batch,
    token_ids: Sequence[int],
    layers: Sequence[int],
    places: Sequence[tuple[int, int]],
) -> Float[Tensor, "layer word place width"]:
    """Rows of prompts' own Jacobians: at each place, the gradient of which a lens is the mean.

    A row's product with a small change of the stream at its place is the change in U[w] f, summed
    over that token and all later ones. `places` are row and column (with padding) in the batch of
    each token.
    """
    check_layers(model, layers)
    directions = unembedding_rows(model, token_ids)
    at = torch.tensor(places, dtype=torch.long).reshape(-1, 2)
    by_word = []
    for gradients in _gradients(model, batch, directions, layers, batch.attention_mask):
        each = (one[tuple(at.to(one.device).T)].to("cpu") for one in gradients)
        by_word.append(torch.stack([wide(rows) for rows in each]))
    return torch.stack(by_word, 1)


def logit_rows(model: Model, token_ids: Sequence[int], layers: Sequence[int]) -> LensRows:
    """Rows of the logit lens (nostalgebraist 2020), U[w] at every layer: J is the identity."""
    check_layers(model, layers)
    return unembedding_rows(model, token_ids).expand(len(layers), -1, -1)


@torch.enable_grad()
def _gradients(
    model: Model,
    batch: Batch,
    directions: Float[Tensor, "word width"],
    layers: Sequence[int],
    counted: Int[Tensor, "row token"],
) -> Iterator[tuple[Float[Tensor, "row token width"], ...]]:
    """For each word, by one backward pass, the gradients of U[w] f, summed over counted tokens."""
    check_lens(model)
    last = layer_count(model) - 1
    with model.measuring():
        streams = read_streams(model, batch, [*layers, last])
        final, sources = streams[last], [streams[layer] for layer in layers]
        mask = counted.to(final.device, final.dtype)[..., None]
        for number, direction in enumerate(directions):
            yield torch.autograd.grad(
                final,
                sources,
                mask * direction.to(final.device, final.dtype),
                retain_graph=number + 1 < len(directions),
            )
            passed()


def read_streams(model: Model, batch: Batch, layers: Sequence[int]) -> Streams:
    """The residual streams of a pass within `model.measuring()`, with a gradient if enabled."""
    embeddings = reader_of(model).embed(batch.token_ids)
    embeddings.requires_grad_(torch.is_grad_enabled())
    inputs: dict[str, Any] = {
        "attention_mask": batch.attention_mask,
        "position_ids": batch.position_ids,
        "use_cache": False,
    }
    if not drops_tokens(model.text_config):
        inputs["logits_to_keep"] = 1
    locations = {layer: stream_at(model, layer) for layer in set(layers)}
    with recorded(locations) as streams, embedded_as(model, embeddings):
        model.hf(input_ids=batch.token_ids, **model.taken(inputs))
    return streams
