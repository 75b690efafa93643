"""How many threads a model gets on the CPU."""

import os
from functools import cache

import torch

from interp.console import echo
from interp.models.model import Model

SMALL = 20_000_000
"""Parameters below which a model gets one thread. More threads wait for each other at each of its
short operations, worst where other work has taken a core: on two busy x86-64 cores (torch 2.13.0)
attribution by two threads ran at 0.11 times the speed of one with 1.6 million parameters, at 0.19
with 1.5 (hidden 128), and still at 0.5 with 65 (hidden 1,024, 4 layers). On idle cores large models
gain, which is why these keep what PyTorch gives them."""


def set_threads(model: Model, asked: int | None) -> None:
    """Set how many threads this process computes a model with, and say so where that is fewer.

    Args:
        model: what is measured; on any other device than the CPU nothing changes.
        asked: the value of --threads. Without it OMP_NUM_THREADS decides, where it is set.
    """
    if asked is not None:
        torch.set_num_threads(asked)
    elif model.device.type == "cpu" and "OMP_NUM_THREADS" not in os.environ:
        own = _own_threads()
        threads = 1 if model.hf.num_parameters() < SMALL else own
        torch.set_num_threads(threads)
        if threads < own:
            echo(f"{model.name} is small and gets 1 of {own} threads; --threads changes that")


@cache
def _own_threads() -> int:
    """What PyTorch takes by itself, before any model has changed it."""
    return torch.get_num_threads()
