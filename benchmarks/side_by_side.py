"""Helpers for all benchmarks: a line about the machine, random models, and timing."""

import gc
import os
import platform
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from itertools import pairwise, product
from typing import TypeVar

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedModel

import interp
from interp.models.organisms import DEFAULT, organism_folder
from interp.reading.shared_batches import Tokens, shared_tokens

K = TypeVar("K", bound=Hashable)


def machine(*packages: str) -> str:
    """One line with the day, the processor, its load, PyTorch's threads and versions."""
    return ", ".join(
        [
            str(date.today()),
            processor(),
            f"{os.cpu_count()} cores",
            f"load {os.getloadavg()[0]:.1f}",
            f"threads {torch.get_num_threads()}",
            *(f"{name} {version(name)}" for name in ("torch", "transformers", *packages)),
        ]
    )


def processor() -> str:
    return platform.processor() or platform.machine()


def random_llama(hidden: int, layers: int) -> interp.Model:
    """A model with random weights large enough that its answers are not uniform."""
    tokenizer = AutoTokenizer.from_pretrained(organism_folder(DEFAULT))
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 32,
        num_key_value_heads=max(1, hidden // 64),
        intermediate_size=hidden * 8 // 3,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    hf = enlarged(LlamaForCausalLM(config).eval(), 4.0)
    return interp.Model(f"llama {hidden}x{layers}", hf, tokenizer)


def enlarged(hf: PreTrainedModel, factor: float) -> PreTrainedModel:
    """The model, with its weight matrices scaled in place."""
    with torch.no_grad():
        for parameter in hf.parameters():
            if parameter.dim() > 1:
                parameter.mul_(factor)
    return hf


def timed(
    ways: Mapping[K, Callable[[], object]],
    repeats: int,
    summary: Callable[[Sequence[float]], float],
) -> dict[K, float]:
    """The seconds of each function, summarized over rounds in which each runs once."""
    times: dict[K, list[float]] = {way: [] for way in ways}
    for _, way in product(range(repeats), ways):
        gc.collect()
        start = time.perf_counter()
        ways[way]()
        times[way].append(time.perf_counter() - start)
    return {way: summary(taken) for way, taken in times.items()}


def tokens_once(prompts: Iterable[Tokens]) -> int:
    """The number of tokens in the prompts, with shared beginnings counted once."""
    ordered = sorted(prompts)
    again = sum(shared_tokens(one, other) for one, other in pairwise(ordered))
    return sum(map(len, ordered)) - again


def lines(title: str, numbers: Mapping[str, float]) -> str:
    """A title, then one line for each number and its name."""
    rows = (f"  {name:45}{number:12,.4g}" for name, number in numbers.items())
    return "\n".join([title, *rows])
