"""Score answers: probabilities of the options, the predicted token, whether it is correct."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers.cache_utils import Cache

from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.reading.readers import reader_of
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokenizer, AnswerTokens
from interp.tables import Row

NOT_FINITE = "non-finite"
"""Error of a prompt whose scores hold infinities or no numbers."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """What the model puts at the place of the answer, for the prompts of one batch."""

    logits: Float[Tensor, "batch vocabulary"]
    """Logits in fp32 of the tokens, or classes, that an answer may be; they carry a gradient where
    the forward pass did."""
    answers: tuple[AnswerTokens, ...]
    """The answer tokens of each prompt."""

    @property
    def token_ids(self) -> Int[Tensor, " batch"]:
        """The most probable token of each prompt."""
        return self.logits.detach().argmax(-1)


def predict(
    model: Model,
    batch: Batch,
    answer_tokens: AnswerTokenizer,
    *,
    embeddings: Float[Tensor, "batch token size"] | None = None,
    past: Cache | None = None,
) -> Predictions:
    """One forward pass, of which the logits at the place of the answer are kept.

    Args:
        model: the model, within `model.measuring()`.
        batch: the prompts.
        answer_tokens: finds each prompt's answer tokens.
        embeddings: input embeddings to read in place of the batch's tokens.
        past: keys and values of the batch's first columns, which are not read again.

    Raises:
        UserError: embeddings were given to a model that reads tokens alone.
    """
    # First, since a prompt whose answers cannot be told apart needs no forward pass.
    answers = tuple(answer_tokens(prompt) for prompt in batch.prompts)
    logits = reader_of(model).answer_logits(batch, embeddings=embeddings, past=past)
    return Predictions(logits, answers)


def answer_rows(model: Model, batch: Batch, predictions: Predictions) -> list[Row]:
    """One row a prompt, under the columns of the answers table.

    positive_probability and negative_probability are the confidences c+ and c- (formulas 4 and 5).
    `answer` is the option that the most probable token belongs to, empty if it belongs to none:
    such a prompt counts as wrong. A prompt with non-finite logits gets an error and no numbers.
    """
    finite = predictions.logits.isfinite().all(-1).tolist()
    predicted = predictions.token_ids.tolist()
    tokens = reader_of(model).answer_names(predicted)
    probabilities = token_probabilities(
        predictions.logits,
        [
            (token, *answers.positive, *answers.negative)
            for token, answers in zip(predicted, predictions.answers, strict=True)
        ],
    )
    rows: list[Row] = []
    for index, (tokenized, answers) in enumerate(
        zip(batch.prompts, predictions.answers, strict=True)
    ):
        prompt = tokenized.prompt
        if not finite[index]:
            rows.append(error_row(model, prompt, NOT_FINITE))
            continue
        token = predicted[index]
        own, positive, negative = torch.split(
            probabilities[index], [1, len(answers.positive), len(answers.negative)]
        )
        answer = _option(token, answers, prompt.positive.name, prompt.negative.name)
        rows.append(
            {
                "model": model.name,
                "prompt_id": prompt.id,
                "predicted_token": tokens[index],
                "predicted_token_id": token,
                "predicted_probability": float(own),
                "positive_probability": float(positive.sum()),
                "negative_probability": float(negative.sum()),
                "answer": answer,
                "correct": answer == prompt.gold_option.name,
                "error": "",
            }
        )
    return rows


def token_probabilities(
    logits: Float[Tensor, "batch vocabulary"], tokens: Sequence[Sequence[int]]
) -> list[Float[Tensor, " _token"]]:
    """Probabilities of some tokens of each prompt, in fp64 on the CPU."""
    normalizers = logits.detach().double().logsumexp(-1).tolist()
    return [
        (own - normalizer).exp()
        for own, normalizer in zip(token_logits(logits, tokens), normalizers, strict=True)
    ]


def token_logits(
    logits: Float[Tensor, "batch vocabulary"], tokens: Sequence[Sequence[int]]
) -> list[Float[Tensor, " _token"]]:
    """Logits of some tokens of each prompt, in fp64 on the CPU.

    Only these leave the device, those of all prompts at once: a GPU that is asked prompt by prompt
    waits for each answer, and a row of 128,256 logits in fp64 is a megabyte.
    """
    lengths = [len(own) for own in tokens]
    rows = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    columns = torch.tensor([token for own in tokens for token in own])
    places = torch.stack([rows, columns]).to(logits.device)
    values = logits.detach()[places[0], places[1]].double().cpu()
    return list(torch.split(values, lengths))


def error_row(model: Model, prompt: Prompt, error: str) -> Row:
    """The row of a prompt that could not be scored: it counts as wrong."""
    return {
        "model": model.name,
        "prompt_id": prompt.id,
        "answer": "",
        "correct": False,
        "error": error,
    }


def _option(token: int, answers: AnswerTokens, positive: str, negative: str) -> str:
    if token in answers.positive:
        return positive
    return negative if token in answers.negative else ""


@torch.inference_mode()
def score_batch(model: Model, batch: Batch, answer_tokens: AnswerTokenizer) -> list[Row]:
    """The rows of the answers table for one batch, by one forward pass."""
    return answer_rows(model, batch, predict(model, batch, answer_tokens))
