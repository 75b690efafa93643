"""Which types give the numbers of one process if two processes hold the model.

`python -m tests.zoo.spread [TYPE ...]` prints a line for each type. Two ranks build the same small
random model, load it once whole and once spread by transformers' plan, and compare logits, and the
gradient of one logit with respect to the input embeddings, in float64.
"""

import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, distributed
from transformers import PreTrainedModel
from transformers.distributed.configuration_utils import DistributedConfig

from interp.errors import UserError
from interp.models.loading import Loading
from interp.models.tensor_parallel import check_spread
from interp.runs.together import joined
from tests.zoo.build import build, types

RANKS = 2

CLOSE = 1e-6
"""Largest relative difference. Some types compute parts in float32, whatever the weights' type."""


def spread(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each type and what became of it: "equal", how far it is apart, or why it was not compared.

    An error in one rank may leave the other one waiting, so new ranks go on after it.
    """
    context = multiprocessing.get_context("fork")
    left = list(names)
    while left:
        with tempfile.TemporaryDirectory() as folder:
            ranks = [
                context.Process(target=_compare_all, args=(rank, Path(folder), left))
                for rank in range(RANKS)
            ]
            for rank in ranks:
                rank.start()
            for rank in ranks:
                rank.join()
            lines = (Path(folder) / "found.jsonl").read_text().splitlines()
        yield from map(json.loads, lines)
        left = left[len(lines) :]


def _compare_all(rank: int, folder: Path, names: Sequence[str]) -> None:
    """What one of the ranks does until an error ends it."""
    torch.set_num_threads(1)
    with joined(rank, Loading(device="cpu", tensor_parallel=RANKS), folder / "meeting"):
        for name in names:
            failed = False
            try:
                said = _compare(name, folder / name.replace(":", "-"), rank)
            except Exception as error:
                said, failed = f"{type(error).__name__}: {' '.join(str(error).split())[:150]}", True
            if rank == 0:
                with (folder / "found.jsonl").open("a") as file:
                    file.write(json.dumps([name, said]) + "\n")
            if failed:
                os._exit(1)
    os._exit(0)  # the group's threads would wait for one another


def _compare(name: str, folder: Path, rank: int) -> str:
    hf = build(name, dtype=torch.float64).hf
    try:
        check_spread(name, hf.config, RANKS)
    except UserError as error:
        return f"refused: {error}"
    if rank == 0:
        hf.save_pretrained(folder)
    distributed.barrier()
    options = {"dtype": torch.float64, "attn_implementation": hf.config._attn_implementation}
    torch.manual_seed(0)  # draws the same ids in both ranks
    ids = torch.randint(5, min(90, hf.config.get_text_config().vocab_size - 1), (1, 12))
    whole = _numbers(type(hf).from_pretrained(folder, **options), ids)
    if any(bool((a - b).abs().max() > 1e-4) for a, b in zip(whole, _numbers(hf, ids), strict=True)):
        return "cannot be saved and loaded"
    there = _numbers(
        type(hf).from_pretrained(
            folder, distributed_config=DistributedConfig(tp_size=RANKS), **options
        ),
        ids,
    )
    apart = max(
        float((a - b).abs().max() / b.abs().max()) for a, b in zip(there, whole, strict=True)
    )
    return "equal" if apart < CLOSE else f"apart by {apart:.2g}"


def _numbers(
    hf: PreTrainedModel, ids: Int[Tensor, "1 token"]
) -> tuple[Float[Tensor, "1 token vocabulary"], Float[Tensor, "1 token size"]]:
    """The logits without a gradient, and the gradient of one of them."""
    hf.eval()
    if "grouped_mm" in hf.get_experts_implementation().values():
        hf.set_experts_implementation("eager")  # the grouped product lacks float64
    with torch.no_grad():
        logits = hf(input_ids=ids).logits
    embedded: list[Tensor] = []

    def begin(_module: object, _inputs: object, output: Tensor) -> Tensor:
        embedded.append(output.detach().requires_grad_())
        return embedded[-1]

    hook = hf.get_input_embeddings().register_forward_hook(begin)
    target = hf(input_ids=ids).logits[0, -1, 7]
    hook.remove()
    (gradient,) = torch.autograd.grad(target, embedded[0])
    return logits, gradient


if __name__ == "__main__":
    for name, said in spread(sys.argv[1:] or types()):
        sys.stdout.write(f"{name}\t{said}\n")
