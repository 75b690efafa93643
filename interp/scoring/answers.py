"""Score answers: probabilities of the options, the predicted token, whether it is correct."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

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

AnswerRows: TypeAlias = dict[str, list[Row]]
"""The rows of one prompt, by table."""

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


def answer_tables(model: Model, batch: Batch, predictions: Predictions) -> list[AnswerRows]:
    """Of each prompt one row of the answers table, and those of option_probabilities.

    `answer` is the option that the most probable token belongs to, empty if it belongs to none:
    such a prompt counts as wrong. Where only a generated text tells the answer, `answer` and
    `correct` are null. A prompt with non-finite logits gets an error and no numbers.
    """
    finite = predictions.logits.isfinite().all(-1).tolist()
    predicted = predictions.token_ids.tolist()
    names = reader_of(model).answer_names(predicted)
    tokens = [
        (token, *answers.tokens)
        for token, answers in zip(predicted, predictions.answers, strict=True)
    ]
    logits = token_logits(predictions.logits, tokens)
    normalizers = predictions.logits.detach().double().logsumexp(-1).tolist()
    tables: list[AnswerRows] = []
    for index, (tokenized, answers) in enumerate(
        zip(batch.prompts, predictions.answers, strict=True)
    ):
        prompt = tokenized.prompt
        if not finite[index]:
            tables.append({"answers": [error_row(model, prompt, NOT_FINITE)]})
            continue
        token = predicted[index]
        answer = answers.option(token) if prompt.answer.judged_at_once else None
        probabilities = (logits[index] - normalizers[index]).exp()
        row = {
            "model": model.name,
            "prompt_id": prompt.id,
            "predicted_token": names[index],
            "predicted_token_id": token,
            "predicted_probability": float(probabilities[0]),
            "answer": answer,
            "correct": None if answer is None else answer == prompt.answer.gold,
            "error": "",
        }
        options = _option_rows(answers, probabilities[1:], logits[index][1:])
        key = {"model": model.name, "prompt_id": prompt.id}
        tables.append(
            {"answers": [row], "option_probabilities": [key | option for option in options]}
        )
    return tables


def _option_rows(
    answers: AnswerTokens,
    probabilities: Float[Tensor, " _token"],
    logits: Float[Tensor, " _token"],
) -> list[Row]:
    """Each option with its probability and its share of the probability of all options.

    Shares are taken from the logits, so that small probabilities do not vanish. An option without
    others has no share of its own.
    """
    sizes = [len(tokens) for tokens in answers.of.values()]
    shares = option_shares(torch.split(logits, sizes)) if len(sizes) > 1 else [None]
    return [
        {
            "option": name,
            "probability": float(own.sum()),
            "relative_probability": share,
            "token_ids": list(tokens),
        }
        for (name, tokens), own, share in zip(
            answers.of.items(), torch.split(probabilities, sizes), shares, strict=True
        )
    ]


def option_shares(logits: Sequence[Float[Tensor, " _token"]]) -> list[float]:
    """The share of each of two or more options in the probability of all, from tokens' logits."""
    own = [option.logsumexp(0) for option in logits]
    others = (torch.stack([*own[:i], *own[i + 1 :]]).logsumexp(0) for i in range(len(own)))
    return [float((one - other).sigmoid()) for one, other in zip(own, others, strict=True)]


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


@torch.inference_mode()
def score_batch(model: Model, batch: Batch, answer_tokens: AnswerTokenizer) -> list[AnswerRows]:
    """The rows of each prompt of a batch, by one forward pass."""
    return answer_tables(model, batch, predict(model, batch, answer_tokens))
