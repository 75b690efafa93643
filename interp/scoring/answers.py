"""Answers: the options' probabilities, the predicted token, and whether it is correct."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers.cache_utils import Cache

from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.reading.readers import reader_of
from interp.reading.tokens import Batch, TokenizedPrompt
from interp.scoring.answer_tokens import AnswerTokens
from interp.scoring.whole_answers import Behind, cache_for, longest_row, read_behind
from interp.tables import TIE, Row

AnswerRows: TypeAlias = dict[str, list[Row]]
"""One prompt's rows in each table."""

LookUp: TypeAlias = Callable[[TokenizedPrompt], AnswerTokens]
"""The answer tokens of a prompt, as an `AnswerTokenizer` finds them."""

NOT_FINITE = "non-finite"
"""The error recorded for a prompt whose scores are infinite or NaN."""


class Written(NamedTuple):
    """An answer that a model writes if it always takes the most probable token."""

    option: str
    """The option that the text begins with; empty if none."""
    column: int
    """Its token or way (`AnswerTokens`); its first token if the text begins with no option."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """The model's logits at the answer's position, for the prompts in one batch."""

    logits: Float[Tensor, "batch vocabulary"]
    """Logits in fp32 (fp64 for models in it) for all possible answer tokens or classes, with a
    gradient if the forward pass has one.
    """
    answers: tuple[AnswerTokens, ...]
    """The answer tokens of each prompt."""
    behind: Behind | None = None
    """What was read behind the prompts, if a prompt's answers are whole texts."""

    @property
    def columns(self) -> Float[Tensor, "batch column"]:
        """The logits and then those of the ways of whole texts, for the last column -1.

        Logits share their normalizer: a column minus the log-sum-exp of `logits` is the
        log-probability of a token or way.
        """
        if self.behind is None:
            return self.logits
        return torch.cat([self.logits, self.behind.ways.to(self.logits.dtype)], 1)

    def detached(self) -> "Predictions":
        """The predictions without a gradient."""
        behind = self.behind and replace(self.behind, ways=self.behind.ways.detach())
        return replace(self, logits=self.logits.detach(), behind=behind)

    def written(self) -> list[list[Written]]:
        """What each prompt's answer begins with; several if the most probable tokens are tied."""
        ties = self.ties()
        return [
            [reply for token in ties.get(index, [best]) for reply in self._goes_on(index, (token,))]
            for index, best in enumerate(self.token_ids.tolist())
        ]

    def _goes_on(self, index: int, tokens: tuple[int, ...]) -> list[Written]:
        """The answers that begin with these tokens."""
        answers = self.answers[index]
        if not answers.whole:
            return [Written(answers.option(tokens[0]), tokens[0])]
        steps = {} if self.behind is None else self.behind.steps[index]
        after = [path for path in steps if path[:-1] == tokens]
        likely = [path for path in after if steps[path]]
        written = [reply for path in likely for reply in self._goes_on(index, path)]
        if self.behind is None or len(likely) < self.behind.tied[index].get(tokens, 1):
            column = answers.begun(tokens)
            written.append(Written(answers.option(column), column))
        return written

    def ties(self) -> dict[int, list[int]]:
        """The most probable tokens of each prompt that has several, by its index."""
        logits = self.logits.detach()
        tied = logits == logits.amax(-1, keepdim=True)
        several = (tied.sum(-1) > 1).nonzero()[:, 0].tolist()
        return {index: tied[index].nonzero()[:, 0].tolist() for index in several}

    @property
    def token_ids(self) -> Int[Tensor, " batch"]:
        """The most probable token of each prompt."""
        return self.logits.detach().argmax(-1)


def predict(model: Model, batch: Batch, answer_tokens: LookUp) -> Predictions:
    """One forward pass that keeps the logits at the answer's position.

    Within `model.measuring()`.

    Raises:
        UserError: a prompt's answers lack unique tokens.
    """
    answers = tuple(answer_tokens(prompt) for prompt in batch.prompts)
    return read_prompts(model, batch, answers).predictions()


@dataclass(frozen=True, slots=True)
class PromptPass:
    """A pass over prompts, behind which their whole answers are still to be read."""

    model: Model
    batch: Batch
    answers: tuple[AnswerTokens, ...]
    logits: Float[Tensor, "batch vocabulary"]
    embeddings: Float[Tensor, "batch token size"] | None
    past: tuple[Cache, ...]
    """The cache of the pass, with the keys and values of its prompts; none to read them again."""

    def predictions(self) -> Predictions:
        """The predictions, after a pass over the tokens of whole answers if there are any."""
        ways, behind = [tokens.ways for tokens in self.answers], None
        if any(ways):
            read = self.model, self.batch, ways, self.logits
            behind = read_behind(*read, embeddings=self.embeddings, past=self.past)
        return Predictions(self.logits, self.answers, behind)


def read_prompts(
    model: Model,
    batch: Batch,
    answers: Sequence[AnswerTokens],
    *,
    embeddings: Float[Tensor, "batch token size"] | None = None,
    past: Cache | None = None,
) -> PromptPass:
    """The forward pass over prompts; see `predict`.

    Input embeddings are read instead of the batch's tokens, and the batch's first columns, whose
    keys and values are `past`, are not read again. `answers` are those of each prompt or, for a
    single prompt, of each row of the embeddings. A `past` behind which whole answers are read must
    keep what the pass adds (`gathered`).

    Raises:
        UserError: embeddings were passed to a model that reads only tokens.
    """
    following = max((longest_row(tokens.ways) for tokens in answers if tokens.ways), default=0)
    behind: tuple[Cache, ...] = ()
    if following:
        behind = cache_for(model, batch.token_ids.shape[1] + following, past=past)
        past = behind[0] if behind else past
    logits = reader_of(model).answer_logits(batch, embeddings=embeddings, past=past)
    return PromptPass(model, batch, tuple(answers), logits, embeddings, behind)


def answer_tables(model: Model, batch: Batch, predictions: Predictions) -> list[AnswerRows]:
    """Each prompt's row in the answers table and rows in option_probabilities.

    `answer` is the option of the most probable token; if there is no such option, it is empty and
    the prompt counts as wrong. It also does if equally probable tokens belong to several options,
    or to an option and to none (`TIE`), as happens in bfloat16. If the answer requires generated
    text, `answer` and `correct` are null. A prompt with non-finite logits has an error and no
    numbers.
    """
    finite = predictions.logits.isfinite().all(-1).tolist()
    predicted = predictions.token_ids.tolist()
    names = reader_of(model).answer_names(predicted)
    numbers = _numbers(predictions, predicted)
    written = predictions.written()
    tables: list[AnswerRows] = []
    for index, tokens in enumerate(predictions.answers):
        prompt, (probability, *of_options) = batch.prompts[index].prompt, numbers[index]
        if not finite[index]:
            tables.append(answer_error(model, prompt, NOT_FINITE))
            continue
        replied = {reply.option for reply in written[index]}
        scored, tied = prompt.answer.scored_by_next_token, len(replied) > 1
        answer = TIE if tied else replied.pop()
        key: Row = {"model": model.name, "prompt_id": prompt.id}
        row = {
            **key,
            "predicted_token": names[index],
            "predicted_token_id": predicted[index],
            "predicted_probability": probability,
            "answer": answer if scored else None,
            "correct": not tied and answer == prompt.answer.gold if scored else None,
            "error": "",
        }
        options = [
            {
                **key,
                "option": name,
                "probability": p,
                "relative_probability": share,
                "token_ids": [*chain.from_iterable(map(tokens.spelled, columns))],
                "whole": tokens.whole,
            }
            for (name, columns), p, share in zip(tokens.of.items(), *of_options, strict=True)
        ]
        tables.append({"answers": [row], "option_probabilities": options})
    return tables


def _numbers(
    predictions: Predictions, predicted: Sequence[int]
) -> list[tuple[float, list[float], list[float] | list[None]]]:
    """Each prompt's probabilities, in fp64; prompts with equal numbers of tokens are batched.

    These are the probabilities of the predicted token and of each option, and each option's share
    of the total probability of all options, which is None for a single option.
    """
    normalizers = predictions.logits.detach().double().logsumexp(-1).cpu()
    answers = [tokens.tokens for tokens in predictions.answers]
    needed = [(token, *tokens) for token, tokens in zip(predicted, answers, strict=True)]
    logits = token_logits(predictions.columns, needed)
    layouts: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, tokens in enumerate(predictions.answers):
        layouts[tuple(map(len, tokens.of.values()))].append(index)
    by_index: dict[int, Any] = {}
    for sizes, indices in layouts.items():
        stacked = torch.stack([logits[index] for index in indices])
        probabilities = (stacked - normalizers[indices, None]).exp()
        options = [part.sum(1) for part in torch.split(probabilities[:, 1:], list(sizes), dim=1)]
        shares: Sequence[list[float] | list[None]] = [[None]] * len(indices)
        if len(sizes) > 1:
            parts = torch.split(stacked[:, 1:], list(sizes), dim=1)
            totals = torch.stack([part.logsumexp(1) for part in parts], 1)
            lengths = [_lengths(predictions.answers[index], logits[index][1:]) for index in indices]
            if any(lengths):
                totals = (totals - normalizers[indices, None]) / torch.tensor(lengths)
            shares = option_shares(totals)
        numbers = probabilities[:, 0].tolist(), torch.stack(options, 1).tolist(), shares
        by_index |= dict(zip(indices, zip(*numbers, strict=True), strict=True))
    return [by_index[index] for index in range(len(logits))]


def _lengths(answers: AnswerTokens, values: Float[Tensor, " _token"]) -> list[int]:
    """The length of each option's most probable way; none if log-probabilities are not divided."""
    if not answers.lengths:
        return []
    parts = torch.split(values, [*map(len, answers.of.values())])
    return [
        answers.lengths[columns[int(part.argmax())]]
        for columns, part in zip(answers.of.values(), parts, strict=True)
    ]


def option_shares(logits: Float[Tensor, "prompt option"]) -> list[list[float]]:
    """For each prompt, each option's share of the total probability of two or more options.

    Shares are computed from the logits, so that small probabilities do not vanish.
    """
    columns = list(logits.unbind(1))
    others = [
        torch.stack(columns[:place] + columns[place + 1 :], 1).logsumexp(1)
        for place in range(len(columns))
    ]
    differences: list[list[float]] = (logits - torch.stack(others, 1)).tolist()
    # The logistic function, by hand: torch's last digits differ between a batch and one number.
    return [
        [1 / (1 + math.exp(-x)) if x > -700 else math.exp(x) for x in row] for row in differences
    ]


def token_logits(
    logits: Float[Tensor, "batch vocabulary"], tokens: Sequence[Sequence[int]]
) -> list[Float[Tensor, " _token"]]:
    """Logits of the given tokens for each prompt, in fp64 on the CPU.

    Columns below zero are counted from the end. Only these logits are copied from the device, for
    all prompts at once, because a GPU would otherwise wait for each prompt, and a row of 128,256
    logits in fp64 takes a megabyte.
    """
    lengths = [len(of_prompt) for of_prompt in tokens]
    rows = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    columns = torch.tensor([token for of_prompt in tokens for token in of_prompt])
    places = torch.stack([rows, columns]).to(logits.device)
    values = logits.detach()[places[0], places[1]].double().cpu()
    return list(torch.split(values, lengths))


def answer_error(model: Model, prompt: Prompt, error: str) -> AnswerRows:
    """The row in the answers table for a prompt that could not be scored; `correct` is null."""
    key = {"model": model.name, "prompt_id": prompt.id}
    answer = "" if prompt.answer.scored_by_next_token else None
    return {"answers": [{**key, "answer": answer, "correct": None, "error": error}]}
