"""Tensor parallelism: each of several processes, the ranks, holds a part of every layer.

transformers' own plan of a model says how each weight is divided; processes then add up what each
has computed. A plan divides attention by heads, so each process must get the same number of them.
"""

import os
from typing import Any

import torch
from transformers import PreTrainedConfig
from transformers.distributed.configuration_utils import DistributedConfig

from interp.errors import UserError, one_line
from interp.models.loading import Loading

_COUNTS = {
    "num_attention_heads": "attention heads",
    "num_key_value_heads": "key-value heads",
    "linear_num_key_heads": "key heads of linear attention",
    "linear_num_value_heads": "value heads of linear attention",
}
"""What is divided evenly, by the name of its number in a configuration."""

_WRONG = {"gemma3n_text", "step3p5"}
"""Types whose numbers change in several processes under transformers' plan (5.23.0); found by
`python -m tests.zoo.spread`, which compares logits and gradients of small models."""


def check_spread(name: str, config: PreTrainedConfig, ranks: int) -> None:
    """Raise a UserError if `ranks` processes cannot share a model, before weights are loaded."""
    text = config.get_text_config(decoder=True)
    if not text.base_model_tp_plan:
        raise UserError(
            f"transformers has no plan of tensor parallelism for models of the type "
            f"{config.model_type}, such as {one_line(name)}; omit tensor_parallel, or spread its "
            "layers over devices with --device-map auto"
        )
    if text.model_type in _WRONG:
        raise UserError(
            f"transformers' plan of tensor parallelism changes the numbers of models of the type "
            f"{config.model_type}, such as {one_line(name)}; omit tensor_parallel"
        )
    for setting, what in _COUNTS.items():
        for count in _counts(text, setting):
            if count % ranks:
                possible = numbers_of_processes(config)
                expected = f"; expected {' or '.join(map(str, possible))}" if possible else ""
                raise UserError(
                    f"got tensor_parallel {ranks}, but the {count} {what} of {one_line(name)} "
                    f"cannot be divided evenly among {ranks} processes{expected}"
                )


def numbers_of_processes(config: PreTrainedConfig) -> list[int]:
    """The numbers of processes, up to 8, over which a model can be spread."""
    text = config.get_text_config(decoder=True)
    counts = [count for setting in _COUNTS for count in _counts(text, setting)]
    if not text.base_model_tp_plan or text.model_type in _WRONG or not counts:
        return []
    # A usual node has up to 8 GPUs.
    return [n for n in range(2, 9) if not any(count % n for count in counts)]


def _counts(text: PreTrainedConfig, setting: str) -> list[int]:
    """A number of heads, or one for each layer; none if there is no such setting."""
    value = getattr(text, setting, None)
    return [n for n in (value if isinstance(value, list) else [value]) if isinstance(n, int)]


def spreading(name: str, loading: Loading) -> dict[str, Any]:
    """The arguments with which transformers loads this process's part of a model.

    Raises:
        UserError: this process is not one of as many processes as asked for, or has no GPU of its
            own.
    """
    wanted, world_size = loading.ranks, os.environ.get("WORLD_SIZE", "")  # torchrun sets it
    ranks = int(world_size) if world_size.isdecimal() and len(world_size) < 9 else 1
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        ranks = torch.distributed.get_world_size()
    if ranks != wanted:
        raise UserError(
            f"tensor_parallel {wanted} spreads {one_line(name)} over {wanted} processes, but this "
            f"program has {ranks}; write results to a folder (out=..., or a command), for which "
            f"the processes are started, or start this program with torchrun --nproc-per-node "
            f"{wanted}"
        )
    return {"distributed_config": DistributedConfig(tp_size=wanted)}
