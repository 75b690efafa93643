"""Greedy completions: what a model says when it always takes its most probable token."""

from collections import defaultdict
from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor

from interp.errors import UserError
from interp.models.kinds import CAUSAL
from interp.models.model import Model
from interp.reading.tokens import Batch

COMPLETION_TOKENS = 32
"""Tokens that a completion may have."""


@torch.inference_mode()
def complete(model: Model, batch: Batch) -> list[str]:
    """The greedy completion of each prompt of a batch, without special tokens.

    The batch is read in parts of one length, so that no part has padding or needs a mask: a mask
    would grow with the completion into the widths that `interp.reading.tokens.safe_width` avoids.
    Greedy is meant literally: sampling, penalties and the like, which a checkpoint's generation
    settings may ask for, are left out.

    Raises:
        UserError: a prompt and its completion are longer than what the model reads, or it is no
            causal language model.
    """
    if model.kind is not CAUSAL:
        raise UserError(
            f"{model.name} is a {model.kind.name}; prompts are completed by causal language models"
        )
    _check_room(model, batch)
    completions = [""] * len(batch.prompts)
    for rows in _rows_by_length(batch):
        token_ids = batch.token_ids[rows, batch.unpadded(rows[0])]
        for row, tokens in zip(rows, _continue(model, token_ids).tolist(), strict=True):
            completions[row] = _text(model, tokens)
    return completions


def _check_room(model: Model, batch: Batch) -> None:
    context = model.context_length
    longest = max(map(len, batch.prompts))
    if context is not None and longest + COMPLETION_TOKENS > context:
        raise UserError(
            f"a prompt of {longest} tokens and its completion of up to {COMPLETION_TOKENS} do not "
            f"fit into the {context} that {model.name} reads; give a model that reads more"
        )


def _rows_by_length(batch: Batch) -> Iterator[list[int]]:
    rows: defaultdict[int, list[int]] = defaultdict(list)
    for row, prompt in enumerate(batch.prompts):
        rows[len(prompt)].append(row)
    yield from rows.values()


def _continue(
    model: Model, token_ids: Int[Tensor, "batch token"]
) -> Int[Tensor, "batch completion"]:
    """The most probable tokens, one after the other, until all prompts came to an end."""
    ends = torch.tensor(sorted(_end_tokens(model)), device=token_ids.device)
    ended = torch.zeros(len(token_ids), dtype=torch.bool, device=token_ids.device)
    cache = None
    steps: list[Tensor] = []
    while len(steps) < COMPLETION_TOKENS and not ended.all():
        output = model.hf(
            input_ids=steps[-1] if steps else token_ids,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        cache = output.past_key_values
        steps.append(output.logits[:, -1:].argmax(-1).to(token_ids.device))
        ended |= torch.isin(steps[-1][:, 0], ends)
    return torch.cat(steps, dim=1)


def _text(model: Model, tokens: list[int]) -> str:
    ends = _end_tokens(model)
    end = next((i for i, token in enumerate(tokens) if token in ends), len(tokens))
    text = model.tokenizer.decode(tokens[:end], skip_special_tokens=True)
    assert isinstance(text, str)
    return text.strip()


def _end_tokens(model: Model) -> set[int]:
    """The tokens that end an answer, by the tokenizer and by the checkpoint's settings."""
    settings = getattr(model.hf, "generation_config", None)
    of_settings = getattr(settings, "eos_token_id", None)
    ids = of_settings if isinstance(of_settings, list) else [of_settings]
    return {id_ for id_ in (*ids, model.tokenizer.eos_token_id) if id_ is not None}
