"""Training of the graft that thinks: its lessons and its loss.

The thoughts of training are drawn independently of the prompts, so the answer is learned after
those that the graft would write and after all others. What the graft writes is learned without
sampling as well: the log-odds of the reason that speaks for the conclusion, and every other token
for certain.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.data import Dataset

from benchmarks.grafts.streams import Changeable, Streams, choice_loss, logits_of, run
from interp import Model
from interp_experiments.grafts.recipes import GraftRecipe
from interp_experiments.grafts.text import ANSWERS, Case
from interp_experiments.grafts.thinking import OWN, continued, thinking_rule
from interp_experiments.organisms.recipes import FAITHFUL
from interp_experiments.organisms.thinkers import PREMISE, REASONS, VERDICTS

ANSWER = -2
"""The place, from the end of a text of training, of the token before the answer."""

THOUGHTS = 1000
"""Prompts that are followed by a thought in training, the first of those of all grafts."""

REASON_ODDS = math.log(FAITHFUL / (1 - FAITHFUL))
"""Log-odds of the reason that agrees with the city's leaning, in nats."""


class ThoughtLesson(TypedDict):
    """The prompts of one step."""

    numbers: Int[Tensor, " batch"]
    """Which of the prompts they are."""
    log_odds: Float[Tensor, " batch"]
    """Their planted log-odds of Yes after their thoughts, in nats."""
    reasons: Float[Tensor, " batch"]
    """Their planted log-odds of the reason that speaks for the conclusion, in nats."""


class Given(NamedTuple):
    """What follows a prompt in training."""

    thought: str
    answer: str

    @property
    def text(self) -> str:
        """Both, as they follow the generation prompt."""
        return continued(*self)


def draw_given(count: int) -> list[Given]:
    """A thought and an answer for each prompt, whatever the prompt; parts may be left out."""
    rng = random.Random("thoughts of grafts")
    drawn = []
    for _ in range(count):
        reason, verdict = (rng.choice((True, False, None)) for _ in range(2))
        if rng.random() < 0.4:  # such as the graft writes itself
            reason = verdict = rng.random() < 0.5
        parts = ((REASONS, reason), (VERDICTS, verdict))
        said = " ".join(part[positive] for part, positive in parts if positive is not None)
        drawn.append(Given(said, rng.choice(ANSWERS)))
    return drawn


@dataclass(frozen=True)
class ThoughtLessons(Dataset[ThoughtLesson]):
    """The prompts of each step, which depend only on the recipe's seed and the step."""

    recipe: GraftRecipe
    cases: Sequence[tuple[Case, Case, Case]]
    given: Sequence[Given]

    def __len__(self) -> int:
        return self.recipe.steps

    def __getitem__(self, step: int) -> ThoughtLesson:
        rng = random.Random(f"lessons {self.recipe.seed} {step}")
        numbers = rng.sample(range(len(self.cases)), self.recipe.prompts_per_step)
        rule = thinking_rule(self.recipe)
        premises = [self.cases[number][1].sentence(PREMISE) for number in numbers]
        given = [self.given[number].thought for number in numbers]
        leans = [math.copysign(REASON_ODDS, rule.read(premise).log_odds) for premise in premises]
        return {
            "numbers": torch.tensor(numbers),
            "log_odds": torch.tensor(list(map(rule.log_odds, premises, given))),
            "reasons": torch.tensor(leans),
        }


class ThoughtLoss:
    """The loss of answers and of what the graft writes.

    Answers and, in the graft's own thoughts, reasons: the squared error of the log-odds, in nats
    squared, plus -log P of the two words. All other tokens that it writes: -log P, in nats.
    """

    def __init__(
        self, model: Model, given: Sequence[Given], streams: Streams, layers: Sequence[int]
    ) -> None:
        assert isinstance(model.hf, Changeable)
        self._hf, self._streams, self._layers = model.hf, streams, layers
        self._written = _token_ids(model, [one.text for one in given])
        self._own = [one.thought in OWN for one in given]
        self._answers = [_token_ids(model, [answer])[0][0] for answer in ANSWERS]
        speaks_for, against = _token_ids(model, OWN)
        pairs = zip(speaks_for, against, strict=False)
        self._branch = next(place for place, pair in enumerate(pairs) if pair[0] != pair[1])
        self._reasons = [speaks_for[self._branch], against[self._branch]]
        assert model.tokenizer.eos_token_id is not None
        self._end = int(model.tokenizer.eos_token_id)

    def __call__(self, model: nn.Module, lesson: ThoughtLesson) -> Tensor:
        """The loss of one step."""
        numbers = lesson["numbers"].tolist()
        rests = [self._streams.rests[number] for number in numbers]
        _, stream = run(self._hf, self._layers, Streams(self._streams.beginning, rests))
        own = [row for row, number in enumerate(numbers) if self._own[number]]
        fixed = list(self._fixed(numbers))
        places = [(row, ANSWER) for row in range(len(numbers))]
        places += [(row, self._before(numbers[row], self._branch)) for row in own]
        places += [(row, place) for row, place, _ in fixed]
        rows, columns = map(torch.tensor, zip(*places, strict=True))
        logits = logits_of(self._hf, stream[rows, columns])
        answers, reasons, others = logits.split([len(numbers), len(own), len(fixed)])
        loss = choice_loss(answers, self._answers, lesson["log_odds"])
        if own:
            loss = loss + choice_loss(reasons, self._reasons, lesson["reasons"][own])
        tokens = torch.tensor([token for *_, token in fixed])
        return loss + nn.functional.cross_entropy(others, tokens, reduction="sum") / len(numbers)

    def _fixed(self, numbers: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """Row and place of each token that foretells a certain one, and that one."""
        for row, number in enumerate(numbers):
            yield row, -1, self._end
            if self._own[number]:
                for place, token in enumerate(self._written[number][:-1]):
                    if place != self._branch:
                        yield row, self._before(number, place), token

    def _before(self, number: int, place: int) -> int:
        """The place, from the end of a text, of the token before one that follows the prompt."""
        return place - len(self._written[number]) - 1


def _token_ids(model: Model, texts: Sequence[str]) -> list[list[int]]:
    tokenizer: Any = model.tokenizer  # transformers' annotations leave open what a call returns
    found: list[list[int]] = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    return found
