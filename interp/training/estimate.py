"""What a training run will take, before it begins: steps and memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from interp.models.model import Model
from interp.training.lessons import Lessons, Steps, to_batch
from interp.training.spec import TrainSpec

_NUMBER_BYTES = 4
"""Weights, gradients and AdamW's two means of each are in fp32."""


class Estimate(NamedTuple):
    """Steps, and memory in bytes."""

    lessons: int
    """Prompts that are learned."""
    too_long: int
    """Prompts that are left out, since the model cannot read so many tokens."""
    longest: int
    """Tokens of the longest."""
    steps: int
    parameters: int
    trained: int
    """Parameters that are trained: all, or those of an adapter."""
    weights: int
    gradients: int
    optimizer: int
    activations: int
    """What a step keeps from its forward pass for its backward pass, where all prompts of the batch
    are as long as the longest."""

    @property
    def memory(self) -> int:
        """All of it together; libraries and temporary results come on top."""
        return self.weights + self.gradients + self.optimizer + self.activations


def estimate(outline: Model, spec: TrainSpec, lessons: Lessons) -> Estimate:
    """What it will take to train a model, of which no weights are needed: `Start.outline`."""
    trained = [weight for weight in outline.hf.parameters() if weight.requires_grad]
    parameters, learned = outline.hf.num_parameters(), sum(weight.numel() for weight in trained)
    longest = lessons.longest
    return Estimate(
        lessons=len(lessons.lessons),
        too_long=lessons.too_long,
        longest=len(longest.token_ids),
        steps=len(Steps(outline, spec, lessons.lessons)),
        parameters=parameters,
        trained=learned,
        weights=parameters * _NUMBER_BYTES,
        gradients=learned * _NUMBER_BYTES,
        optimizer=learned * _NUMBER_BYTES * 2,
        activations=_kept(outline, to_batch(outline, [longest] * spec.batch)),
    )


def _kept(outline: Model, batch: dict[str, Tensor]) -> int:
    """Bytes that the forward pass of a batch keeps for the backward pass, weights aside."""
    # A mask of tokens would be looked at, which nobody can on the device "meta"; one of scores not.
    mask = batch["attention_mask"][:, None, None].float()
    inputs = {name: part.to("meta") for name, part in (batch | {"attention_mask": mask}).items()}
    own = {weight.untyped_storage()._cdata for weight in outline.hf.parameters()}
    with _counting(own) as kept:
        outline.hf.train()(**inputs)
    return sum(kept.values())


@contextmanager
def _counting(without: set[int]) -> Iterator[dict[int, int]]:
    """Within the block: the size of each storage that is kept for a backward pass."""
    kept: dict[int, int] = {}
    alive: list[Tensor] = []  # so that no two storages have one address

    def count(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in without and storage._cdata not in kept:
            alive.append(tensor)
            kept[storage._cdata] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        yield kept
