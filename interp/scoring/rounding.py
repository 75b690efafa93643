"""How coarsely a model's data type rounds its logits."""

import math
from collections.abc import Sequence

import torch

from interp.errors import UserError
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.reading.readers import reader_of
from interp.reading.tokens import pad, tokenize
from interp.scoring.answer_tokens import AnswerTokenizer

READ = 4
"""Number of prompts from which the size of the logits is taken."""

COARSE = {"bfloat16": torch.bfloat16, "float16": torch.float16}
"""The types whose rounding can matter; float32 rounds 65,536 times more finely than bfloat16."""


@torch.no_grad()
def logit_spacing(model: Model, prompts: Sequence[Prompt]) -> float | None:
    """The distance between neighboring numbers of the model's type at the size of its logits.

    The size is the median absolute logit of the answer options over the first prompts. None if the
    type is not coarse, no prompt can be read, or the weights are not on this machine.
    """
    if model.dtype not in COARSE or not model.has_weights:
        return None
    sizes = [size for prompt in prompts[:READ] for size in _sizes(model, prompt)]
    return spacing_at(sizes, model.dtype)


def spacing_at(sizes: Sequence[float], dtype: str) -> float | None:
    """The distance between neighboring numbers of a coarse type at the median size.

    In a binary type with machine epsilon e, numbers from 2^k to 2^(k + 1) are 2^k e apart. None if
    the type is not coarse, or there is no finite size above zero.
    """
    size = float(torch.tensor(sizes).median()) if sizes else 0.0
    if dtype not in COARSE or not (size > 0 and math.isfinite(size)):
        return None
    return float(torch.finfo(COARSE[dtype]).eps * 2.0 ** math.floor(math.log2(size)))


def _sizes(model: Model, prompt: Prompt) -> list[float]:
    """The absolute logits of a prompt's answer options; none if it cannot be read."""
    try:
        read = tokenize(model, [prompt])
        answers = AnswerTokenizer(model, "first")(read[0])
        tokens = [answers.spelled(column)[0] for column in answers.tokens]
        with model.measuring():
            logits = reader_of(model).answer_logits(pad(model, read))[0]
    except (UserError, RuntimeError):  # reported when the prompt is measured
        return []
    return [abs(float(value)) for value in logits[tokens]]
