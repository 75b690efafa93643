"""Speed of evaluate and attribute for a model shaped like Llama-3-8B, as a share of the GPU's peak.

    python -m benchmarks.gpu [--shape SHAPE] [--prompts N] [--sweep] [--out FILE]

1. Build a model with random weights on the device, in bf16 on a GPU.
2. Multiply large matrices; the speed of the fastest product is the peak for all shares.
3. Time evaluate and attribute, from prompts to tables in memory, then plain transformers (batches
   of 128, all logits). After each measurement, print a line and write the record.
4. With --sweep, time evaluate and attribute again with other token budgets and more prompts at a
   time.

A hook counts the tokens that pass through the layers, without padding. A token costs two operations
per weight in the forward pass and two more in the backward pass, whose gradient goes only to the
inputs; each query-key pair costs four operations per head dimension in the forward pass and eight
in the backward pass. The unembedding is counted only for the last token of each prompt. Prompts use
the tokenizer and the template of organism/llama-shallow, since no large model's tokenizer can be
packaged. The record gives the length of the prompts.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig

import interp
from benchmarks.side_by_side import processor
from interp.files import write_whole
from interp.measurements.specs import Attribute, Evaluate
from interp.measuring.core import bind, collect
from interp.models.organisms import DEFAULT, organism_folder
from interp.prompts.prompt import Prompt
from interp.reading.tokens import tokenize, write_chat
from interp.report.console import print_table
from interp.runs.records import now, versions

SHAPES = {
    "llama-3-8b": {
        "vocab_size": 128_256,
        "hidden_size": 4096,
        "intermediate_size": 14_336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 8192,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500_000.0},
    },
    "tiny": {
        "vocab_size": 4096,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
}
PEAK_SHAPES = {
    "cuda": ((8192, 8192, 8192), (16_384, 4096, 14_336), (16_384, 14_336, 4096)),
    "cpu": ((512, 512, 512),),
}
SHARD_PROMPTS = Evaluate.shard_prompts
PEAK_PRODUCTS = 20
REPEATS = 5
PLAIN_BATCH = 128
SWEEP = (
    (Evaluate(), 8192, 960),
    (Evaluate(), 16_384, 960),
    (Evaluate(), 32_768, 1920),
    (Evaluate(), 65_536, 3840),
    (Attribute(), 4096, 960),
    (Attribute(), 8192, 960),
    (Attribute(), 16_384, 960),
)
"""Measurement, tokens per batch, and prompts per call."""


def main(argv: Sequence[str] | None = None) -> None:
    arguments = read_arguments(argv)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = random_model(arguments.shape, device)
    prompts = some_prompts(arguments.prompts)
    record = about(model, arguments.shape, prompts) | {"peak_flops": matrix_peak(model), "rows": []}
    print(f"{record['device']}, {record['peak_flops'] / 1e12:,.1f} TFLOP/s at most", flush=True)
    for row in timed_rows(Bench(model, record["peak_flops"]), prompts, sweep=arguments.sweep):
        record["rows"].append(row)
        rate = row["prompts_per_second"]
        print(row["work"], "not installed" if rate is None else f"{rate:,.1f}/s", flush=True)
        if arguments.out:
            text = json.dumps(record, indent=2)
            write_whole(arguments.out, lambda path: path.write_text(text, encoding="utf-8"))  # noqa: B023
    tokens = record["tokens_per_prompt"]
    title = f"{model.name} on {record['device']}, {len(prompts):,} prompts of {tokens:.1f} tokens"
    print_table(pd.DataFrame(record["rows"]), title=title)


def read_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    on_gpu = torch.cuda.is_available()
    parser.add_argument("--shape", choices=SHAPES, default="llama-3-8b" if on_gpu else "tiny")
    parser.add_argument("--prompts", type=int, default=3840 if on_gpu else 240, metavar="N")
    parser.add_argument("--sweep", action="store_true", help="also other budgets of tokens")
    parser.add_argument("--out", type=Path, metavar="FILE", help="record of all figures, as JSON")
    return parser.parse_args(argv)


def random_model(shape: str, device: torch.device) -> interp.Model:
    """A random model that is created on its device, so that its weights are never stored twice."""
    tokenizer = AutoTokenizer.from_pretrained(organism_folder(DEFAULT))
    special = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos")
    }
    config = LlamaConfig(**SHAPES[shape], **special, pad_token_id=tokenizer.pad_token_id)
    dtype = torch.float32 if device.type == "cpu" else torch.bfloat16
    torch.manual_seed(0)
    with device:
        hf = AutoModelForCausalLM.from_config(config, dtype=dtype)
    return interp.Model(shape, hf.eval(), tokenizer)


def some_prompts(count: int) -> list[Prompt]:
    """Whole, evenly spaced shards of RULEBREAKERS, in the order of a full run."""
    everything = interp.load_prompts(limit="all")
    shards = max(1, min(count, len(everything)) // SHARD_PROMPTS)
    starts = [len(everything) * shard // shards for shard in range(shards)]
    chosen = [prompt for start in starts for prompt in everything[start : start + SHARD_PROMPTS]]
    return chosen[:count]


def about(model: interp.Model, shape: str, prompts: Sequence[Prompt]) -> dict[str, Any]:
    return {
        "started": now(),
        "versions": versions(),
        "device": device_name(model.device),
        "driver": driver(model.device),
        "cuda": torch.version.cuda,
        "shape": {"name": shape, **SHAPES[shape]},
        "parameters": model.hf.num_parameters(),
        "dtype": model.dtype,
        "tokenizer": DEFAULT,
        "prompts": len(prompts),
        "tokens_per_prompt": sum(map(len, tokenize(model, prompts))) / len(prompts),
    }


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return processor()


def driver(device: torch.device) -> str | None:
    if device.type != "cuda":
        return None
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError):
        return None


def matrix_peak(model: interp.Model) -> float:
    """Operations per second of the fastest large matrix product in the model's dtype."""
    rates = []
    for rows, inner, columns in PEAK_SHAPES[model.device.type]:
        options = {"device": model.device, "dtype": model.hf.dtype}
        left, right = torch.randn(rows, inner, **options), torch.randn(inner, columns, **options)

        def products(left: torch.Tensor = left, right: torch.Tensor = right) -> None:
            for _ in range(PEAK_PRODUCTS):
                left @ right

        products()
        best = min(seconds(products, model.device) for _ in range(REPEATS))
        rates.append(2 * PEAK_PRODUCTS * rows * inner * columns / best)
    return max(rates)


def seconds(work: Callable[[], object], device: torch.device) -> float:
    finish(device)
    start = time.perf_counter()
    work()
    finish(device)
    return time.perf_counter() - start


def finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed_rows(
    bench: "Bench", prompts: Sequence[Prompt], *, sweep: bool
) -> Iterator[dict[str, Any]]:
    model = bench.model
    evaluate, attribute = bind(Evaluate(), model), bind(Attribute(), model)
    yield bench.row("evaluate", lambda part: collect(evaluate, part), prompts, gradient=False)
    yield bench.row("attribute", lambda part: collect(attribute, part), prompts, gradient=True)
    yield bench.row("tokenizing alone", lambda part: tokenize(model, part), prompts)
    yield bench.row("plain transformers", lambda part: plain(model, part), prompts, gradient=False)
    for kind, batch_tokens, at_a_time in SWEEP if sweep else ():
        measurement, part = bind(kind, model, batch_tokens=batch_tokens), prompts[:at_a_time]
        name = f"{kind.name}, {batch_tokens:,} tokens, {len(part):,} prompts at a time"
        yield bench.row(
            name, measurement, part, gradient=isinstance(kind, Attribute), warm_up=len(part)
        )


@dataclass(frozen=True)
class Bench:
    """Times work on one model."""

    model: interp.Model
    peak: float
    """Operations per second that count as the peak, to which the shares are relative."""

    def row(
        self,
        name: str,
        work: Callable[[Sequence[Prompt]], object],
        prompts: Sequence[Prompt],
        *,
        gradient: bool | None = None,
        warm_up: int = SHARD_PROMPTS,
    ) -> dict[str, Any]:
        """Speed and memory of work on prompts, after a warm-up.

        The row also gives shares of the peak, unless `gradient` is None. `gradient` says whether
        the work has a backward pass.
        """
        work(prompts[:warm_up])
        device = self.model.device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        with counted(self.model) as read:
            taken = seconds(lambda: work(prompts), device)
        row = {"work": name, "prompts": len(prompts), "prompts_per_second": len(prompts) / taken}
        if gradient is not None:
            row |= self.shares(prompts, torch.cat(read, 1).cpu(), taken, gradient=gradient)
        return row | {
            "peak_memory_gib": peak_memory(device) / 2**30,
            "hours_for_256,000_prompts": 256_000 * taken / len(prompts) / 3600,
        }

    def shares(
        self, prompts: Sequence[Prompt], read: torch.Tensor, taken: float, *, gradient: bool
    ) -> dict[str, float]:
        """The share of tokens read, and the share of the peak, actual and as if all were read."""
        lengths = torch.tensor([len(prompt) for prompt in tokenize(self.model, prompts)]).double()
        done, whole = (
            operations(self.model, counts, len(prompts), gradient=gradient) / taken / self.peak
            for counts in (read, lengths.expand(2, -1))
        )
        return {
            "share_of_tokens_read": float(read[0].sum() / lengths.sum()),
            "share_of_peak": done,
            "share_if_all_were_read": whole,
        }


@contextmanager
def counted(model: interp.Model) -> Iterator[list[torch.Tensor]]:
    """Within the block, record (tokens read, tokens seen) for each row in each pass."""
    counts: list[torch.Tensor] = []

    def count(module: torch.nn.Module, args: object, inputs: dict[str, Any]) -> None:
        ids, embeddings = inputs.get("input_ids"), inputs.get("inputs_embeds")
        rows, width = (embeddings if ids is None else ids).shape[:2]
        mask = inputs.get("attention_mask")
        if mask is None and ids is not None:
            # Prefixes are padded on the right, where no mask is needed.
            mask = (ids != model.tokenizer.pad_token_id).long()
        elif mask is None:
            mask = torch.ones(rows, width, device=model.device)
        counts.append(torch.stack([mask[:, -width:].sum(1), mask.sum(1)]).double())

    handle = model.hf.base_model.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield counts
    finally:
        handle.remove()


def operations(model: interp.Model, counts: torch.Tensor, prompts: int, *, gradient: bool) -> float:
    """Floating-point operations for rows with these (tokens read, tokens seen)."""
    config = model.hf.config
    layers = [layer.module for layer in model.layers]
    weights = sum(p.numel() for layer in layers for p in layer.parameters() if p.dim() == 2)
    read, seen = counts
    pairs = (read * seen - read * (read - 1) / 2).sum()
    linear = 2 * weights * read.sum() + 2 * config.hidden_size * config.vocab_size * prompts
    attention = 4 * config.num_hidden_layers * config.hidden_size * pairs
    return float(2 * linear + 3 * attention if gradient else linear + attention)


def peak_memory(device: torch.device) -> int:
    """Peak memory of the device in bytes; on a CPU, the peak memory of the process so far."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@torch.no_grad()
def plain(model: interp.Model, prompts: Sequence[Prompt]) -> list[list[float]]:
    """Next-token probabilities, computed as the documentation of transformers shows."""
    answers = model.tokenizer(["Yes", "No"], add_special_tokens=False)["input_ids"]
    first = [ids[0] for ids in answers]
    found = []
    for start in range(0, len(prompts), PLAIN_BATCH):
        chats = [write_chat(p, model) for p in prompts[start : start + PLAIN_BATCH]]
        inputs = model.tokenizer(
            [chat.text for chat in chats],
            add_special_tokens=not chats[0].templated,
            padding=True,
            padding_side="left",
            return_tensors="pt",
            return_token_type_ids=False,
        ).to(model.device)
        probabilities = model.hf(**inputs).logits[:, -1].softmax(-1)
        found += probabilities[:, first].tolist()
    return found


if __name__ == "__main__":
    sys.exit(main())
