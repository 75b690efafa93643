"""Methods as another package would write them."""

from dataclasses import replace
from typing import Annotated

import torch
from pydantic import Field

from interp.attribution.method import SegmentScores
from interp.attribution.registry import Method
from interp.options import Options


def described(name, implementation):
    return Method(
        name,
        "a method of the tests",
        "none",
        "Nobody 2026",
        "signed",
        "no pass",
        f"tests.attribution.own_methods:{implementation}",
    )


NORM = described("embedding_norm", "EmbeddingNorm")
LEAVE_ONE_OUT = described("leave_one_out", "LeaveOneOut")
FORGETFUL = described("forgetful", "Forgetful")
NEITHER = described("neither", "neither")
NOWHERE = described("nowhere", "Nowhere")
NOTHING = "no method"
TUPLED = described("tupled", "Tupled")
MISNAMED = described("misnamed", "Misnamed")


class EmbeddingNorm:
    needs = frozenset()

    def __init__(self, model):
        pass

    def scores(self, captured):
        return captured.embeddings.norm(dim=-1)


class Tupled(EmbeddingNorm):
    needs = ("input_gradient",)


class Misnamed(EmbeddingNorm):
    needs = frozenset({"input_gradients"})


class Forgetful(EmbeddingNorm):
    def scores(self, captured):
        return captured.input_gradient.norm(dim=-1)


class LeaveOneOut:
    """The change of the target when a segment's embeddings become zero."""

    def __init__(self, model):
        pass

    @torch.no_grad()
    def attribute(self, explained):
        spans = explained.prompt.segments
        rows = explained.embeddings.repeat(1 + len(spans), 1, 1)
        for row, (start, end) in enumerate(spans.values(), start=1):
            rows[row, start:end] = 0.0
        whole, *without = explained.values(rows).tolist()
        return SegmentScores({n: whole - v for n, v in zip(spans, without, strict=True)})


def neither(model):
    return object()


class Powers(Options):
    power: Annotated[int, Field(ge=1, le=4)] = 2
    """exponent of the norm"""
    halved: bool = False
    """whether scores are divided by two"""


class PowerNorm(EmbeddingNorm):
    def __init__(self, model, *, power, halved):
        self._power, self._divisor = power, 2 if halved else 1

    def scores(self, captured):
        return captured.embeddings.norm(dim=-1) ** self._power / self._divisor


class Unset(Options):
    power: int


POWER = replace(described("power", "PowerNorm"), options=Powers)
UNSET = replace(described("unset", "PowerNorm"), options=Unset)
UNDECLARED = replace(described("undeclared", "PowerNorm"), options=dict)
