"""A model that gives no finite logits for one prompt."""

import dataclasses

import torch

from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.reading.tokens import tokenize
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level


def broken_by(*prompts: Prompt) -> tuple[Model, Prompt]:
    """A random model, and the first prompt with a snowman, whose embedding is NaN."""
    model = make_tiny("llama", byte_level())
    named = {"id": "broken", "pair_id": "broken", "text": prompts[0].text + "☃"}
    broken = dataclasses.replace(prompts[0], **named)
    plain = {token for prompt in tokenize(model, prompts) for token in prompt.token_ids}
    snowman = next(t for t in tokenize(model, [broken])[0].token_ids if t not in plain)
    with torch.no_grad():
        model.hf.get_input_embeddings().weight[snowman] = torch.nan
        model.hf.lm_head.weight.copy_(torch.nan_to_num(model.hf.lm_head.weight))
    return model, broken
