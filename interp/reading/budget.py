"""The largest number of tokens in a forward pass, which shrinks if memory runs out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size

from interp.console import passed
from interp.errors import UserError
from interp.models.model import Model

CPU_BATCH_TOKENS = 2048
GPU_BATCH_TOKENS = 32768
"""Default budgets, in tokens per batch."""

GPU_GRADIENT_TOKENS = 8192
"""The default on a GPU if a backward pass follows. A model of the shape of Llama-3-8B then keeps
4.5 MB per token in bf16, or 37 GB for this number of tokens."""

_Row = TypeVar("_Row")
_Result = TypeVar("_Result")


@dataclass
class TokenBudget:
    """The largest number of tokens in a forward pass, including padding."""

    tokens: int
    shrunk: bool = False
    """Whether memory has already run out."""
    anywhere: Callable[[bool], bool] = field(default=bool, repr=False, compare=False)
    """Function that, told whether memory ran out in this process, returns whether it did in any
    process that holds a part of the model. All of them call it after every pass."""

    def shrink(self, tokens: int) -> None:
        """Set the budget to half the number of tokens that did not fit."""
        self.tokens = max(1, min(self.tokens, tokens) // 2)
        self.shrunk = True


def token_budget(
    model: Model,
    batch_tokens: int | None,
    *,
    on_cpu: int = CPU_BATCH_TOKENS,
    on_gpu: int = GPU_BATCH_TOKENS,
) -> TokenBudget:
    """The requested budget, in tokens per batch, or the device's default."""
    if batch_tokens is None:
        batch_tokens = on_cpu if model.device.type == "cpu" else on_gpu
    if not isinstance(batch_tokens, int) or batch_tokens < 1:
        raise UserError(
            f"the budget is {batch_tokens!r} tokens per batch; expected a whole number from 1"
        )
    return TokenBudget(batch_tokens)


def in_chunks(
    rows: Sequence[_Row],
    run: Callable[[Sequence[_Row]], _Result],
    *,
    tokens: Callable[[_Row], int],
    budget: TokenBudget,
) -> Iterator[tuple[Sequence[_Row], _Result]]:
    """Run rows, in order, in the largest passes that fit; yield each pass's rows and result.

    If memory runs out, the budget is halved, and the remaining rows are run in smaller passes. A
    pass has at least one row, and its result for a row must not depend on other rows. `tokens`
    gives the number of tokens per row from the first row of a pass.
    """
    done = 0
    while done < len(rows):
        width = tokens(rows[done])
        chunk = rows[done : done + max(1, budget.tokens // width)]
        with unless_memory_ends(budget) as attempt:
            result = run(chunk)
        if attempt.ended:
            if len(chunk) == 1:
                raise torch.OutOfMemoryError(f"out of memory on {width} tokens")
            budget.shrink(width * len(chunk))
            continue
        yield chunk, result
        done += len(chunk)
        passed()


@dataclass
class Pass:
    """A pass through the model."""

    ended: bool = False
    """Whether memory ran out, in any process that holds a part of the model."""


@contextmanager
def unless_memory_ends(budget: TokenBudget) -> Iterator[Pass]:
    """Run a block until its end, or until memory runs out in any process that takes part in it."""
    attempt = Pass()
    try:
        yield attempt
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        attempt.ended = True
    # Outside the except clause, since the error keeps the pass's tensors in memory.
    attempt.ended = budget.anywhere(attempt.ended)


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether an error means that memory ran out on any device; if so, free unused memory."""
    ended = isinstance(error, torch.OutOfMemoryError) or should_reduce_batch_size(error)
    if ended:
        clear_device_cache(garbage_collection=True)
    return ended
