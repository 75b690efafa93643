"""Lessons (prompts in the form that a model reads, with answers), and the batch for each step."""

import hashlib
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from interp.console import Progress
from interp.errors import UserError
from interp.models.kinds import CAUSAL, CLASSIFIER
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.reading.outputs import fixed_answers
from interp.reading.tokens import TokenizedPrompt, safe_width, tokenize_whole
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.training.spec import TrainSpec

IGNORED = -100
"""Label for tokens that are excluded from the loss."""

BUCKET = 32
"""Number of batches whose prompts are sorted by length together, to reduce padding."""

_READ_AT_ONCE = 256


class Lesson(NamedTuple):
    """A prompt and its answer in a model's tokens."""

    token_ids: NDArray[np.int32]
    """Tokens that the model reads; for a causal model, the prompt and its answer."""
    target: NDArray[np.int32]
    """A classifier's class, or the tokens to write, which are also the last input tokens of a
    causal model.
    """
    group: str
    """The prompt's `pair_id`, shared within its group."""


class Lessons(NamedTuple):
    """The lessons on which a model is trained."""

    lessons: list[Lesson]
    too_long: int
    """Number of prompts omitted because they have more tokens than the model can read."""

    def digest(self) -> str:
        """A hash of all lessons in order, in the form that the model reads."""
        digest = hashlib.sha256()
        for lesson in self.lessons:
            for part in (lesson.token_ids, lesson.target):
                digest.update(len(part).to_bytes(4, "big"))
                digest.update(part.astype("<i4").tobytes())
        return digest.hexdigest()

    @property
    def longest(self) -> Lesson:
        """The lesson with the most tokens to read and, in case of ties, to write."""
        return max(self.lessons, key=lambda lesson: (len(lesson.token_ids), len(lesson.target)))


def read_lessons(model: Model, spec: TrainSpec, prompts: Sequence[Prompt]) -> Lessons:
    """The lessons for a model, omitting prompts that are too long for it.

    Raises:
        UserError: all prompts are too long, or an answer is not among a classifier's classes.
    """
    lessons: list[Lesson] = []
    waiting = iter(prompts)
    with Progress("read the training set", total=len(prompts)) as progress:
        while chunk := list(islice(waiting, _READ_AT_ONCE)):
            lessons += _lessons(model, spec, chunk)
            progress.advance(len(chunk))
    limit = model.context_length
    kept = [lesson for lesson in lessons if limit is None or len(lesson.token_ids) <= limit]
    if not kept:
        raise UserError(
            f"all {len(lessons):,} prompts read from the training set have more than {limit} "
            f"tokens, the limit of {model.name}; use a model with a longer context, or shorter "
            "prompts"
        )
    return Lessons(kept, len(lessons) - len(kept))


def _lessons(model: Model, spec: TrainSpec, prompts: Sequence[Prompt]) -> Iterator[Lesson]:
    # Segments are not needed here, and locating their tokens would take most of the time.
    bare = [replace(prompt, segments={}, roles={}) for prompt in prompts]
    for prompt, tokenized in zip(bare, tokenize_whole(model, bare), strict=True):
        if model.kind is CLASSIFIER:
            gold = prompt.answer.gold
            option = next(option for option in prompt.answer.options if option.name == gold)
            fixed = fixed_answers(model, option)
            assert fixed, f"the option {gold} of a classifier has no class"
            read, target = tokenized.token_ids, [fixed[0]]
        elif model.kind is CAUSAL:
            target = _continuation(model, tokenized, spec.target(prompt))
            read = (*tokenized.token_ids, *target)
        else:
            read = tokenized.token_ids
            target = model.tokenizer(text_target=spec.target(prompt))["input_ids"]
        ids, answer = (np.asarray(tokens, dtype=np.int32) for tokens in (read, target))
        yield Lesson(ids, answer, prompt.pair_id)


def _continuation(model: Model, tokenized: TokenizedPrompt, answer: str) -> list[int]:
    """The tokens of an answer after a causal model's prompt, with the token that ends the turn."""
    reader = AnswerTokenizer(model)
    ids = reader.after(tokenized.chat, reader.openings(tokenized.chat)[0], answer)
    end = model.tokenizer.eos_token_id
    return list(ids) if end is None else [*ids, end]


def steps_of(
    lengths: Sequence[int],
    groups: Sequence[str],
    *,
    batch: int,
    epochs: int,
    seed: int,
    curriculum: float | None = None,
) -> list[list[int]]:
    """The indices of each step's lessons, in an order determined by the seed.

    Each lesson, of so many tokens and of a group, occurs once per epoch. Batches contain lessons of
    similar length, since the lessons for `BUCKET` batches are sorted together.

    Without a curriculum, the order is random. Otherwise, groups of short prompts precede groups of
    long prompts in the first epoch, after each group's length is increased at random by up to this
    share. Groups are kept together, so that the gradient of a batch reflects the differences among
    a group's prompts.
    """
    steps: list[list[int]] = []
    for epoch in range(epochs):
        rng = random.Random(f"order {seed} {epoch}")
        if curriculum is not None and epoch == 0:
            steps += _cut(_short_first(lengths, groups, curriculum, rng), batch)
        else:
            steps += _similar(lengths, batch, rng)
    return steps


def _short_first(
    lengths: Sequence[int], groups: Sequence[str], blur: float, rng: random.Random
) -> list[int]:
    """All indices, with groups sorted by mean length times a random factor from 1 to 1 + `blur`."""
    members: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)

    def size(places: list[int]) -> float:
        return sum(lengths[place] for place in places) / len(places) * (1 + blur * rng.random())

    ordered = sorted(members.values(), key=size)
    return list(chain.from_iterable(ordered))


def _similar(lengths: Sequence[int], batch: int, rng: random.Random) -> list[list[int]]:
    """All indices in random order, with similar lengths within each batch."""
    order = sorted(range(len(lengths)), key=lambda _: rng.random())
    buckets = _cut(order, batch * BUCKET)
    made = [step for part in buckets for step in _cut(sorted(part, key=lengths.__getitem__), batch)]
    return sorted(made, key=lambda _: rng.random())


def _cut(places: list[int], size: int) -> list[list[int]]:
    return [places[start : start + size] for start in range(0, len(places), size)]


class Steps(Dataset[dict[str, Tensor]]):
    """The batch for each training step, in the form that Hugging Face's models accept."""

    def __init__(self, model: Model, spec: TrainSpec, lessons: Sequence[Lesson]) -> None:
        self._model, self._lessons = model, lessons
        self._steps = steps_of(
            [len(lesson.token_ids) for lesson in lessons],
            [lesson.group for lesson in lessons],
            batch=spec.batch,
            epochs=spec.epochs,
            seed=spec.seed,
            curriculum=spec.curriculum,
        )

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, step: int) -> dict[str, Tensor]:
        return to_batch(self._model, [self._lessons[place] for place in self._steps[step]])


def to_batch(model: Model, lessons: Sequence[Lesson]) -> dict[str, Int[Tensor, "lesson ..."]]:
    """Lessons as tensors, padded on the right even for causal models, so no token sees padding."""
    padding = model.tokenizer.pad_token_id or 0
    width = safe_width(max(len(lesson.token_ids) for lesson in lessons), model.device)
    batch = {
        "input_ids": _padded([lesson.token_ids for lesson in lessons], padding, width),
        "attention_mask": _padded([np.ones_like(lesson.token_ids) for lesson in lessons], 0, width),
    }
    targets = [lesson.target for lesson in lessons]
    if model.kind is CLASSIFIER:
        labels = torch.tensor([int(target[0]) for target in targets])
    elif model.kind is CAUSAL:
        before = [len(lesson.token_ids) - len(lesson.target) for lesson in lessons]
        sequences = [
            np.pad(target, (n, 0), constant_values=IGNORED)
            for target, n in zip(targets, before, strict=True)
        ]
        labels = _padded(sequences, IGNORED, width)
    else:
        labels = _padded(targets, IGNORED, max(map(len, targets)))
    return {**batch, "labels": labels}


def _padded(
    rows: Sequence[NDArray[np.int32]], padding: int, width: int
) -> Int[Tensor, "lesson token"]:
    table = np.full((len(rows), width), padding, dtype=np.int64)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return torch.from_numpy(table)


_NUMBER_BYTES = 4
"""Bytes per number: weights, gradients and AdamW's two running means are in fp32."""


class Estimate(NamedTuple):
    """The cost of training: steps, and memory in bytes."""

    read: int
    """Number of prompts that were read for the estimate; the other counts are of all prompts."""
    lessons: int
    too_long: int
    """Number of prompts omitted, as in `Lessons`."""
    longest: int
    """Number of tokens in the longest prompt that was read."""
    steps: int
    parameters: int
    trained: int
    """Number of trained parameters: all those of the model, or only an adapter's."""
    weights: int
    gradients: int
    optimizer: int
    activations: int
    """Bytes that a step keeps for its backward pass if all its prompts have the maximum length."""

    @property
    def memory(self) -> int:
        """Total bytes for training, excluding libraries and temporary results."""
        return self.weights + self.gradients + self.optimizer + self.activations


def estimate(outline: Model, spec: TrainSpec, sample: Lessons, prompts: int) -> Estimate:
    """The cost of training a model without weights, from lessons for some of so many prompts."""
    trained = [weight for weight in outline.hf.parameters() if weight.requires_grad]
    parameters, learned = outline.hf.num_parameters(), sum(weight.numel() for weight in trained)
    longest, read = sample.longest, len(sample.lessons) + sample.too_long
    too_long = round(sample.too_long / read * prompts)
    return Estimate(
        read=read,
        lessons=prompts - too_long,
        too_long=too_long,
        longest=len(longest.token_ids),
        steps=spec.epochs * math.ceil((prompts - too_long) / spec.batch),
        parameters=parameters,
        trained=learned,
        weights=parameters * _NUMBER_BYTES,
        gradients=learned * _NUMBER_BYTES,
        optimizer=learned * _NUMBER_BYTES * 2,
        activations=_kept(outline, to_batch(outline, [longest] * spec.batch)),
    )


def _kept(outline: Model, batch: dict[str, Tensor]) -> int:
    """Bytes that a batch's forward pass keeps for the backward pass, excluding weights."""
    # Models inspect a mask of tokens, which is impossible on "meta", but use an additive mask
    # unchanged.
    mask = batch["attention_mask"][:, None, None].float()
    inputs = {name: part.to("meta") for name, part in (batch | {"attention_mask": mask}).items()}
    of_weights = {weight.untyped_storage()._cdata for weight in outline.hf.parameters()}
    kept: dict[int, int] = {}
    alive: list[Tensor] = []  # keeps tensors alive, so no two storages share an address

    def count(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in of_weights and storage._cdata not in kept:
            alive.append(tensor)
            kept[storage._cdata] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        outline.hf.train()(**inputs)
    return sum(kept.values())
