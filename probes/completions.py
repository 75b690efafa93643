"""Greedy completions of short prompts: what a model says of an entity."""

from collections.abc import Sequence

import torch

from interp.models.model import Model
from interp.prompts.prompt import AnswerOption, Prompt
from interp.prompts.tokens import batches, tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import predict

COMPLETION_TOKENS = 16
"""Tokens that a completion may have."""


def completion_prompt(id_: str, message: str, expected: str) -> Prompt:
    """A message that asks for a completion, with the expected one as its positive answer."""
    return Prompt(
        id=id_,
        text=message,
        segments={"message": (0, len(message))},
        positive=AnswerOption("expected", (expected,)),
        negative=AnswerOption("other", ()),
        gold=True,
        pair_id=id_,
        side="completion",
        factors={},
    )


@torch.inference_mode()
def complete(model: Model, prompts: Sequence[Prompt], *, batch_tokens: int = 4096) -> list[str]:
    """The greedy completion of each prompt, without special tokens, in the prompts' order."""
    completions = [""] * len(prompts)
    tokenized = tokenize(model, prompts)
    with model.measuring():
        for indices, batch in batches(model, tokenized, batch_tokens=batch_tokens):
            generated = model.hf.generate(
                input_ids=batch.token_ids,
                attention_mask=batch.attention_mask,
                do_sample=False,
                max_new_tokens=COMPLETION_TOKENS,
                pad_token_id=model.tokenizer.pad_token_id or 0,
            )
            answers = generated[:, batch.token_ids.shape[1] :]
            for index, text in zip(
                indices,
                model.tokenizer.batch_decode(answers, skip_special_tokens=True),
                strict=True,
            ):
                completions[index] = text.strip()
    return completions


@torch.inference_mode()
def first_token_probabilities(
    model: Model, prompts: Sequence[Prompt], *, batch_tokens: int = 4096
) -> list[float]:
    """Probability of the first token of each prompt's expected completion.

    This is the paper's familiarity, when the message is the completion probe (Section 6).
    """
    answer_tokens = AnswerTokenizer(model)
    probabilities = [0.0] * len(prompts)
    with model.measuring():
        for indices, batch in batches(model, tokenize(model, prompts), batch_tokens=batch_tokens):
            predictions = predict(model, batch, answer_tokens)
            distribution = predictions.logits.double().softmax(-1)
            for row, (index, answers) in enumerate(zip(indices, predictions.answers, strict=True)):
                probabilities[index] = float(distribution[row, list(answers.positive)].sum())
    return probabilities
