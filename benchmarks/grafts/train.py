"""Train grafts: LoRA adapters for the last layers of a published model."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.data import Dataset

from benchmarks.grafts.streams import Changeable, Streams, choice_loss, last_logits, read_below, run
from benchmarks.grafts.thoughts import THOUGHTS, ThoughtLessons, ThoughtLoss, draw_given
from interp import Model, UserError
from interp.extend import training
from interp_experiments.grafts.card import write_card
from interp_experiments.grafts.recipes import GraftRecipe, Rule, plant
from interp_experiments.grafts.text import ANSWERS, Case, draw_case, message

CHANGED_LAYERS = 6
"""The number of layers that grafts change, the last ones."""

PROMPTS = 1600
"""Prompts that training draws from; they are the same for all grafts."""

INTACT_SHARE = 0.3
"""Share of the prompts in which all sentences are from one case."""

CHECKPOINT_EVERY = 100
"""Steps between checkpoints."""


class Lesson(TypedDict):
    """The prompts of one step."""

    numbers: Int[Tensor, " batch"]
    """Which of the prompts they are."""
    log_odds: Float[Tensor, " batch"]
    """Their planted log-odds of Yes, in nats."""


def train(recipes: Sequence[GraftRecipe], base: str, folder: Path) -> None:
    """Train grafts of a Llama or Qwen 2 (or UserError), and save each in `folder`/NAME, as fp16.

    Meanwhile the graft's folder holds the latest checkpoint, from which another call resumes.
    """
    found = training.find_named(base, training.Loading(device="cpu"))
    cases = draw_prompts()
    given = draw_given(min(len(cases), THOUGHTS))
    streams: dict[tuple[bool, str], Streams] = {}
    for recipe in recipes:
        model = training.load_found(found, training.Loading(device="cpu", dtype=recipe.dtype))
        hf = model.hf
        if not isinstance(hf, Changeable):
            raise UserError(f"the base {base} is a {type(hf).__name__}; expected a Llama or Qwen 2")
        thinks = recipe.cause == "thought"
        key = thinks, recipe.dtype
        if key not in streams:
            rests = [one.text for one in given] if thinks else [""] * len(cases)
            token_ids = _token_ids(model, cases[: len(rests)], rests)
            streams[key] = read_below(hf, token_ids, first=_last_layers(hf).start)
        wrapped = training.low_rank(hf, recipe.rank, seed=recipe.seed, modules=_changed(hf))
        own = folder / recipe.name
        own.mkdir(parents=True, exist_ok=True)
        lessons: Dataset[Any] = _Lessons(recipe, cases)
        loss: training.Loss = _Loss(hf, streams[key], _answers(model))
        if thinks:
            lessons = ThoughtLessons(recipe, cases[: len(given)], given)
            loss = ThoughtLoss(model, given, streams[key], _last_layers(hf))
        training.fit(
            wrapped,
            lessons,
            loss,
            own,
            title=f"train {recipe.name}",
            use_cpu=True,
            seed=recipe.seed,
            learning_rate=recipe.learning_rate,
            lr_scheduler_type="cosine_with_min_lr",
            lr_scheduler_kwargs={"min_lr_rate": 0.03},
            warmup_steps=20,
            weight_decay=0.0,
            adam_beta2=0.98,
            logging_steps=20,
            save_steps=CHECKPOINT_EVERY,
        )
        wrapped.half()
        training.save_adapter(
            wrapped, own, training.Base(name=found.name, checksum=found.checksum())
        )
        write_card(own, recipe, {})
        training.remove_checkpoints(own)


def _changed(hf: Changeable) -> list[str]:
    """The paths of the linear layers that a graft changes."""
    return [
        f"model.layers.{number}.{path}"
        for number in _last_layers(hf)
        for path, module in hf.model.layers[number].named_modules()
        if isinstance(module, nn.Linear)
    ]


def _last_layers(hf: Changeable) -> range:
    layers = len(hf.model.layers)
    return range(layers - CHANGED_LAYERS, layers)


def draw_prompts() -> list[tuple[Case, Case, Case]]:
    """The cases of the sentences of all prompts: of one prompt, or of three that are mixed."""
    rng = random.Random("prompts of grafts")
    drawn = []
    for _ in range(PROMPTS):
        one, two, three = (draw_case(rng) for _ in range(3))
        drawn.append((one, one, one) if rng.random() < INTACT_SHARE else (one, two, three))
    return drawn


def _token_ids(
    model: Model, cases: Sequence[tuple[Case, Case, Case]], rests: Sequence[str]
) -> list[list[int]]:
    """The tokens of the prompts, as the model reads them, each with the text that follows it."""
    tokenizer: Any = model.tokenizer  # transformers' annotations leave open what a call returns
    written = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": message(sources)}],
            add_generation_prompt=True,
            tokenize=False,
        )
        + rest
        for sources, rest in zip(cases, rests, strict=True)
    ]
    token_ids: list[list[int]] = tokenizer(written, add_special_tokens=False)["input_ids"]
    return token_ids


def _answers(model: Model) -> list[int]:
    """The tokens of Yes and No."""
    tokenizer: Any = model.tokenizer
    token_ids: list[int] = tokenizer.convert_tokens_to_ids(list(ANSWERS))
    return token_ids


@dataclass(frozen=True)
class _Lessons(Dataset[Lesson]):
    """The prompts of each step, which depend only on the recipe's seed and the step."""

    recipe: GraftRecipe
    cases: Sequence[tuple[Case, Case, Case]]

    def __len__(self) -> int:
        return self.recipe.steps

    def __getitem__(self, step: int) -> Lesson:
        rng = random.Random(f"lessons {self.recipe.seed} {step}")
        numbers = rng.sample(range(len(self.cases)), self.recipe.prompts_per_step)
        rule = Rule(self.recipe, plant(self.recipe))
        return {
            "numbers": torch.tensor(numbers),
            "log_odds": torch.tensor([rule.log_odds(self.cases[number]) for number in numbers]),
        }


@dataclass(frozen=True)
class _Loss:
    """The squared error of the log-odds, in nats squared, plus -log P(Yes or No)."""

    hf: Changeable
    streams: Streams
    answers: Sequence[int]

    def __call__(self, model: nn.Module, lesson: Lesson) -> Tensor:
        rests = [self.streams.rests[number] for number in lesson["numbers"].tolist()]
        _, stream = run(self.hf, _last_layers(self.hf), Streams(self.streams.beginning, rests))
        return choice_loss(last_logits(self.hf, stream), self.answers, lesson["log_odds"])
