"""The target of one prompt, as a function of embeddings and as a game between its segments."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from interp.attribution.games import Coalitions
from interp.attribution.games import Values as GameValues
from interp.attribution.targets import Attributed, values_of
from interp.models.model import Model
from interp.prompts.mixing import donors_of
from interp.prompts.prompt import Content, Prompt
from interp.reading.budget import TokenBudget, in_chunks
from interp.reading.readers import reader_of
from interp.reading.tokens import TokenizedPrompt, pad, tokenize
from interp.scoring.answer_tokens import AnswerTokens
from interp.scoring.answers import Predictions, read_prompts
from interp.scoring.shared_prefix import PrefixCache, read_all, read_start


@runtime_checkable
class Game(Protocol):
    """v(S): the value of each coalition of segments."""

    @property
    def segments(self) -> tuple[str, ...]:
        """The players; player i is bit i of a coalition."""

    def values(self, coalitions: Sequence[int] | None = None) -> GameValues:
        """The values of the given coalitions (by default, of all 2^k)."""


@runtime_checkable
class Played(Protocol):
    """A prompt of which a method reads nothing but the values of coalitions."""

    @property
    def seed(self) -> str:
        """What random coalitions are drawn by: the prompt's id."""

    @property
    def game(self) -> Game:
        """The values of coalitions."""


class SegmentGame:
    """v(S): the mean target over donors, with the segments outside S taken from the donor.

    Donors are other instances of the prompt's template. Each value is computed once.
    """

    def __init__(self, prompt: Prompt, read: Callable[[Sequence[Prompt]], Sequence[float]]) -> None:
        self._coalitions = Coalitions(prompt, donors_of(prompt, "instance"))
        self._read = read
        self._known: dict[Content, float] = {}

    @property
    def segments(self) -> tuple[str, ...]:
        """The players; player i is bit i of a coalition."""
        return self._coalitions.segments

    def values(self, coalitions: Sequence[int] | None = None) -> GameValues:
        """The values of the given coalitions (by default, of all 2^k)."""
        numbers = range(2 ** len(self.segments)) if coalitions is None else coalitions
        prompts = [[row[number] for number in numbers] for row in self._coalitions.prompts]
        new = {p.content: p for row in prompts for p in row if p.content not in self._known}
        self._known |= zip(new, self._read(list(new.values())), strict=True)
        rows = [[self._known[p.content] for p in row] for row in prompts]
        mean: GameValues = np.array(rows, dtype=np.float64).mean(0)
        return mean


Embeddings = Float[Tensor, "row token size"]
Values = Float[Tensor, " row"]

_Result = TypeVar("_Result")


class ExplainedPrompt:
    """One prompt, the scalar that is attributed, and the token budget of its passes.

    The attributed tokens are chosen once, from the answer to the prompt itself. They stay the same
    when the model is given other embeddings or prompts.
    """

    def __init__(
        self,
        model: Model,
        prompt: TokenizedPrompt,
        answers: AnswerTokens,
        *,
        attributed: Attributed,
        budget: TokenBudget,
    ) -> None:
        self.model = model
        self.prompt = prompt
        self.attributed = attributed
        self.batch = pad(model, [prompt])
        """A batch that contains only this prompt."""
        self._reader = reader_of(model)
        # Nothing is read behind the prompt unless it is attributed.
        self._answers = answers if attributed.whole else replace(answers, ways=())
        self._budget = budget
        self._start: PrefixCache | None = None

    @property
    def seed(self) -> str:
        """What random coalitions are drawn by: the prompt's id."""
        return self.prompt.prompt.id

    @cached_property
    def embeddings(self) -> Float[Tensor, "1 token size"]:
        """The prompt's embeddings, e."""
        return self._reader.embed(self.batch.token_ids)

    @property
    def rows(self) -> int:
        """Number of rows that one pass can currently hold, at least one."""
        return max(1, self._budget.tokens // self.batch.token_ids.shape[1])

    def value(self, embeddings: Embeddings) -> Values:
        """The target of each row, from one pass, in nats or logits (for a contrast or margin)."""
        rows, follows = len(embeddings), bool(self._answers.ways)
        past = self._start.past(rows, kept=follows) if self._start else None
        answers = [self._answers] * rows
        read = read_prompts(self.model, self.batch, answers, embeddings=embeddings, past=past)
        return self._of(read.predictions())

    @contextmanager
    def after(self, columns: int) -> Iterator[None]:
        """Run the prompt's first columns once; in the block, embeddings exclude these columns."""
        if columns:
            self._start = read_start(self.model, self.batch, columns)
        try:
            yield
        finally:
            self._start = None

    def values_of(self, prompts: Sequence[TokenizedPrompt]) -> list[float]:
        """The target of other prompts, without a gradient; shared tokens are run only once."""
        return read_all(
            self.model,
            prompts,
            lambda prompt: self._answers,
            self._budget,
            read=lambda predictions: self._of(predictions).tolist(),
        )

    def _of(self, predictions: Predictions) -> Values:
        return values_of(predictions, [self.attributed] * len(predictions.answers))

    def values(self, embeddings: Embeddings) -> Values:
        """The target of each row, from passes within the budget, which shrinks if memory runs out.

        If a gradient is needed, each backward pass runs before the next forward pass, so memory
        holds only one pass; second derivatives are not available.
        """
        if torch.is_grad_enabled() and embeddings.requires_grad:
            # torch does not annotate `apply`, which mypy takes for our class's own.
            values: Tensor = _Differentiated.apply(embeddings, self)  # type: ignore[no-untyped-call]
            return values
        return torch.cat(self.passes(embeddings, self.value))

    @cached_property
    def game(self) -> SegmentGame:
        """The target as a function of kept segments; all others are replaced by donors' segments.

        Raises:
            UserError: the prompt has no donors.
        """
        return SegmentGame(
            self.prompt.prompt, lambda prompts: self.values_of(tokenize(self.model, prompts))
        )

    def gap(
        self, scores: Float[Tensor, "1 token"], baseline: Float[Tensor, "1 token size"]
    ) -> float:
        """The sum of the scores minus the difference in target between prompt and baseline."""
        with torch.no_grad():
            difference = self.value(self.embeddings) - self.value(baseline)
        unpadded = scores[:, self.batch.unpadded(0)]
        return float(unpadded.double().sum() - difference.double().sum())

    def passes(self, embeddings: Embeddings, run: Callable[[Embeddings], _Result]) -> list[_Result]:
        """The result of `run` for the rows of each pass within the budget."""
        width = self.batch.token_ids.shape[1]
        chunks = in_chunks(
            range(len(embeddings)),
            lambda rows: run(embeddings[rows[0] : rows[-1] + 1]),
            tokens=lambda row: width,
            budget=self._budget,
        )
        return [result for _, result in chunks]

    @torch.enable_grad()
    def value_and_gradient(self, embeddings: Embeddings) -> tuple[Values, Embeddings]:
        """The target of each row, and its gradient with respect to the row, from one pass."""
        rows = embeddings.detach().requires_grad_()
        values = self.value(rows)
        # The value of each row depends only on that row.
        (gradients,) = torch.autograd.grad(values.sum(), rows)
        return values.detach(), gradients


class _Differentiated(torch.autograd.Function):
    """The targets of a prompt's rows; the forward pass already computes their gradients."""

    @staticmethod
    def forward(ctx: Any, embeddings: Tensor, explained: ExplainedPrompt) -> Tensor:
        pairs = explained.passes(embeddings, explained.value_and_gradient)
        values, gradients = zip(*pairs, strict=True)
        ctx.save_for_backward(torch.cat(gradients))
        return torch.cat(values)

    @staticmethod
    def backward(ctx: Any, *of_values: Tensor) -> tuple[Tensor, None]:
        (gradients,) = ctx.saved_tensors
        return of_values[0][:, None, None] * gradients, None
