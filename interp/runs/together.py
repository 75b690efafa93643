"""Ranks in step: rank 0 tells the other processes that hold the model what to compute.

The others do the same as rank 0 and drop the results. All numbers are equal in all ranks, since
each layer ends with a sum over the ranks. After each pass and each batch, the ranks exchange how it
ended. If memory ran out in one, all of them go on with smaller batches; if a rank does not answer,
the others end (`LostRankError`).
"""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import IntEnum
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from interp.errors import ModelError, UserError
from interp.measuring.core import Measurement, PromptRows
from interp.models.loading import Loading
from interp.reading.budget import is_out_of_memory
from interp.reading.tokens import Batch

LONGEST = timedelta(minutes=10)
"""How long a rank waits for another one, which may load a model or write a shard meanwhile."""

AFTER_FAILURE = timedelta(minutes=1)
"""How long a rank whose pass failed waits for the others, which end the same pass."""


class LostRankError(ModelError):
    """Another process that holds a part of the model has ended or does not answer."""


class Ending(IntEnum):
    """How a step ended in one rank."""

    FINE = 0
    OUT_OF_MEMORY = 1
    REFUSED = 2


class Step(IntEnum):
    """What the ranks compare the ends of."""

    PASS = 0
    BATCH = 1


@dataclass(frozen=True)
class Ranks:
    """This process among those that hold a model together."""

    rank: int
    count: int
    group: distributed.ProcessGroup
    """The group in which orders and endings are exchanged, apart from the model's own sums."""

    def tell(self, do: str, **what: Any) -> None:
        """Tell the other ranks what to do; rank 0 calls this."""
        order = bytearray(json.dumps({"do": do, **what}).encode())
        text = torch.frombuffer(order, dtype=torch.uint8)
        with _losing():
            distributed.broadcast(torch.tensor([len(text)]), 0, group=self.group)
            distributed.broadcast(text, 0, group=self.group)

    def told(self) -> dict[str, Any]:
        """What rank 0 tells this rank to do."""
        size = torch.zeros(1, dtype=torch.long)
        with _losing():
            distributed.broadcast(size, 0, group=self.group)
            text = torch.zeros(int(size), dtype=torch.uint8)
            distributed.broadcast(text, 0, group=self.group)
        order: dict[str, Any] = json.loads(bytes(text.tolist()))
        return order

    def in_step(self, measurement: Measurement) -> Measurement:
        """The measurement, whose batches end in the same way in all ranks."""
        measurement.budget.anywhere = self._memory_ended_anywhere

        def measure_batch(batch: Batch) -> list[PromptRows]:
            rows: list[PromptRows] = []
            reason: UserError | None = None
            ending = Ending.FINE
            try:
                rows = measurement.measure_batch(batch)
            except LostRankError:
                raise
            except UserError as error:
                ending, reason = Ending.REFUSED, error
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                ending = Ending.OUT_OF_MEMORY
            # Outside the except clause, since the error keeps the batch's tensors in memory.
            otherwise = f"{_NO_ANSWER}; this one stopped because of: {reason}" if reason else ""
            endings = self._endings(Step.BATCH, ending, otherwise)
            if Ending.REFUSED in endings and len(set(endings)) > 1:
                raise LostRankError(
                    "one of the processes that hold the model refused what the others measured"
                )
            if reason is not None:
                raise reason
            if Ending.OUT_OF_MEMORY in endings:
                raise torch.OutOfMemoryError("out of memory in one of the processes")
            return rows

        return replace(measurement, measure_batch=measure_batch)

    def _memory_ended_anywhere(self, here: bool) -> bool:
        ending = Ending.OUT_OF_MEMORY if here else Ending.FINE
        return max(self._endings(Step.PASS, ending)) == Ending.OUT_OF_MEMORY

    def _endings(self, step: Step, ending: Ending, otherwise: str = "") -> list[Ending]:
        """How a step ended in each rank; `otherwise` says that one is lost, or at another step."""
        if ending == Ending.OUT_OF_MEMORY:
            otherwise = (
                "memory ran out in one of the processes that hold the model, but not in all; use "
                "smaller batches (--batch-tokens), or more processes (--tensor-parallel)"
            )
        sent = torch.tensor([step, ending])
        received = [torch.empty_like(sent) for _ in range(self.count)]
        patience = LONGEST if ending == Ending.FINE else AFTER_FAILURE
        with _losing(otherwise):
            work = distributed.all_gather(received, sent, group=self.group, async_op=True)
            work.wait(patience)
        if any(int(reply[0]) != step for reply in received):
            raise LostRankError(otherwise or _NO_ANSWER)
        return [Ending(int(reply[1])) for reply in received]


_NO_ANSWER = "another process that holds a part of the model has ended or does not answer"


@contextmanager
def _losing(otherwise: str = "") -> Iterator[None]:
    """Turn PyTorch's errors about other processes into a LostRankError."""
    try:
        yield
    except RuntimeError as error:
        raise LostRankError(otherwise or _NO_ANSWER) from error


@contextmanager
def joined(rank: int, loading: Loading, meeting: Path) -> Iterator[Ranks]:
    """Within the block, this process is the rank with this number, from 0.

    Ranks find each other through the file `meeting`, which is in a folder of their own.

    Raises:
        UserError: there are fewer GPUs than ranks.
        LostRankError: another rank did not come or has ended.
    """
    if loading.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # transformers would take any GPU that it sees
    on_gpus = torch.cuda.is_available()
    if on_gpus and torch.cuda.device_count() < loading.ranks:
        raise UserError(
            f"tensor_parallel {loading.ranks} needs as many GPUs, but this worker has "
            f"{torch.cuda.device_count()}; use --device cpu, fewer workers or processes, or, on a "
            f"cluster, --slurm-options gpus-per-node={loading.ranks}"
        )
    # transformers reads its device from here.
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(loading.ranks)}
    local = next((name for _, name in socket.if_nameindex() if name in ("lo", "lo0")), None)
    if local is not None:  # all ranks are on this machine
        os.environ.setdefault("GLOO_SOCKET_IFNAME", local)
    if on_gpus:
        torch.cuda.set_device(rank)
    with _losing():
        distributed.init_process_group(
            "nccl" if on_gpus else "gloo",
            init_method=f"file://{meeting}",
            rank=rank,
            world_size=loading.ranks,
            timeout=LONGEST,
            device_id=torch.device("cuda", rank) if on_gpus else None,
        )
        group = distributed.new_group(backend="gloo", timeout=LONGEST)
    try:
        yield Ranks(rank, loading.ranks, group)
    except RuntimeError as error:
        if isinstance(error, distributed.DistError) or "gloo" in str(error):
            raise LostRankError(_NO_ANSWER) from error
        raise
