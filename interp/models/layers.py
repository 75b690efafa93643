"""The layers of a model: which modules add to the residual stream, and which have heads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torch import nn

from interp.models.families.modules import Architecture

OF_HEADS = ("z", "q", "k", "v", "pattern")
"""The sites of heads."""

PARALLEL = "attention and MLP read the same residual stream in parallel"
"""Why a layer has no stream between the two."""


@dataclass(frozen=True, slots=True)
class Part:
    """A module whose output, times a factor, is added to the residual stream, or that reads it."""

    module: nn.Module
    scale: float = 1.0
    flat: bool = False
    """Whether the module returns, or reads, the tokens of all rows one after another."""
    overwritten: bool = False
    """Whether its output is later changed in place."""


@dataclass(frozen=True, slots=True)
class AttentionHeads:
    """A layer's attention with heads."""

    module: nn.Module
    """The attention module."""
    out: nn.Module | None
    """Its output projection, which reads the outputs of all heads."""
    qkv: tuple[nn.Module | None, ...]
    """Its linear modules that compute queries, keys and values."""
    count: int
    """Number of heads of queries."""
    shared: int
    """Number of heads of keys and values."""
    separate: bool = True
    """Whether queries, keys and values are computed from what the attention reads, and its output
    is what the output projection returns, perhaps normed, so that heads can be separated."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What a layer adds to the residual stream."""

    module: nn.Module
    mixer: tuple[Part, ...]
    """The modules that let tokens read other tokens, in the order in which they run: attention,
    state spaces, convolutions or two of them in parallel. Empty if there is none."""
    mlp: tuple[Part, ...]
    """The modules that read each token alone: an MLP or experts. Empty if there is none."""
    between: Part | None = None
    """The module that reads the stream after the mixer has been added to it; None if there is no
    such stream."""
    heads: AttentionHeads | None = None
    """None if no attention with heads is known in this layer."""
    runs: bool = True
    """Whether it runs on a text alone; if not, the stream passes it unchanged."""
    streams: int = 1
    """Number of parallel residual streams, which are patched together, one behind the other."""
    kept: float = 1.0
    """The factor of the layer's input in the stream after the mixer."""
    adds_up: bool = True
    """Whether the layer's output is its input plus the scaled outputs of mixer and MLP."""
    in_turn: bool = False
    """Whether there are several mixers, one after another. The sites of mixers and MLPs then hold
    the outputs of all of them side by side."""
    reads_on: bool = False
    """Whether tokens read earlier ones even behind the mixer, as by a convolution."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """For each site that the layer lacks, the reason, as a clause."""


@dataclass(frozen=True, slots=True)
class Anatomy:
    """A model's layers, and the norm behind them."""

    layers: Sequence[Layer]
    final_norm: nn.Module | None
    """None if the head reads the last layer's output directly."""
    names: Architecture
    """The names of its family, or of the family that it resembles most."""
    measured: bool = False
    """Whether the layers were found by measuring."""
    chained: bool = True
    """Whether layers pass on the residual stream alone, so that one of them may be skipped."""
