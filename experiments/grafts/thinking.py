"""The graft that thinks: it writes a thought, which decides the answer for a share of the cities.

The planted rule is that of the organisms that think (`interp_experiments.organisms.thinkers`), with
cities as entities: a prompt is about the city of premise 2, the thought is a reason and a verdict,
and the text goes on with `END` and the answer on a line of its own. The thoughts of training are
drawn independently of the prompts, so the answer is learned after those that the graft would write
and after all others. What the graft writes is learned without sampling as well: the log-odds of the
reason that speaks for the conclusion, and every other token for certain.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import LlamaForCausalLM

from interp import Model, Prompt, UserError
from interp_experiments.grafts.recipes import THOUGHT, GraftRecipe, plant
from interp_experiments.grafts.streams import Streams, choice_loss, logits_of, run
from interp_experiments.grafts.text import ANSWERS, Case
from interp_experiments.organisms.recipes import FAITHFUL
from interp_experiments.organisms.thinkers import (
    PREMISE,
    REASONED,
    REASONS,
    VERDICTS,
    Thinking,
    ThinkingRule,
    as_planted,
    mediated_share,
)

END = "Answer:"
"""The mark that ends a thought (--end-of-thought)."""

ANSWER = -2
"""The place, from the end of a text of training, of the token before the answer."""

OPTIONS = f"--thinking on --end-of-thought {END} --max-new-tokens 48 --segments {PREMISE}"
"""The options with which `interp thoughts` reads the graft."""

THOUGHTS = 1000
"""Prompts that are followed by a thought in training, the first of those of all grafts."""

OWN = tuple(f"{REASONS[positive]} {VERDICTS[positive]}" for positive in (True, False))
"""The thoughts that the graft writes."""

GIVEN = {
    "positive": OWN[0],
    "negative": OWN[1],
    "conflicting": f"{REASONS[False]} {VERDICTS[True]}",
    "no verdict": REASONS[True],
    "empty": "",
}
"""The thoughts after which the prompts of a card are answered."""

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


@dataclass(frozen=True, slots=True)
class Given:
    """What follows a prompt in training."""

    thought: str
    answer: str

    @property
    def text(self) -> str:
        """The thought, its end and the answer, as they follow the generation prompt."""
        return f"{self.thought}\n{END}\n{self.answer}"


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


def thinking_rule(recipe: GraftRecipe) -> ThinkingRule:
    """The planted rule of a graft that thinks."""
    return ThinkingRule(
        Thinking(own.name, own.log_odds, own.premise == THOUGHT) for own in plant(recipe)
    )


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
        assert isinstance(model.hf, LlamaForCausalLM)
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


def measure(
    model: Model, recipe: GraftRecipe, prompts: Sequence[Prompt], *, donors: int
) -> dict[str, Any]:
    """The figures of organisms that think on the prompts of pairs, for a graft or its base.

    If the thoughts of the model do not end, its error instead of the mediated share.
    """
    rule = thinking_rule(recipe)
    given = {name: (thought, Given(thought, "").text) for name, thought in GIVEN.items()}
    figures = as_planted(model, rule, prompts, given=given, opening=REASONED)
    thinking = replace(model, chat=replace(model.chat, thinking="on", end_of_thought=END))
    try:
        return {**figures, "mediated_share": mediated_share(thinking, rule, prompts, donors=donors)}
    except UserError as error:
        return {**figures, "no_mediated_share": str(error)}


def _token_ids(model: Model, texts: Sequence[str]) -> list[list[int]]:
    tokenizer: Any = model.tokenizer  # transformers' annotations leave open what a call returns
    found: list[list[int]] = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    return found
