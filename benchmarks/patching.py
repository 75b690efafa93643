"""Patching side by side with TransformerLens and nnsight.

    python benchmarks/patching.py [--grown]

In one process, on one CPU thread, same model, same pair, same metric:
  1. a full grid of the residual stream (4 layers x 60 tokens, first difference at token 20) by
     TransformerLens's `get_act_patch_resid_pre` under no_grad, by nnsight's best batched form, and
     by this toolkit, exact and estimated; the largest difference of the metric from the first;
  2. with --grown, how the grid's seconds grow with layers, tokens and pairs.
"""

import argparse
import copy
import gc
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import date
from importlib.metadata import version
from itertools import product

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformer_lens import patching as lens
from transformer_lens.model_bridge import TransformerBridge
from transformers import (
    AutoTokenizer,
    Gemma2Config,
    Gemma2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

import interp
from interp.backends.nnsight import NnsightBackend
from interp.measurements.patching import CPU_CELL_TOKENS
from interp.patching.cells import PatchingPair, cells_of
from interp.patching.estimates import Estimator
from interp.patching.grid import Grid
from interp.prompts.prompt import AnswerOption, Prompt
from interp.reading.budget import TokenBudget
from interp.reading.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer

LAYERS, TOKENS, FIRST_DIFFERENCE = 4, 60, 20
VOCABULARY = 1000
REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grown", action="store_true", help="also how the seconds grow")
    grown = parser.parse_args().grown
    print(
        f"{date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"one thread, torch {torch.__version__}, transformers {transformers.__version__}, "
        f"transformer-lens {version('transformer-lens')}, nnsight {version('nnsight')}"
    )
    torch.set_num_threads(1)
    for kind in ("llama", "gemma2"):
        compare(kind)
    if grown:
        growth()


def compare(kind: str) -> None:
    model = made(kind, LAYERS)
    pair = made_pair(model, TOKENS, FIRST_DIFFERENCE)
    ways: dict[str, Callable[[], list[float]]] = {
        "TransformerLens, no_grad": transformer_lens_grid(model, pair),
        "nnsight, 32 cells a trace": nnsight_grid(model, pair),
        "interp, exact": native_grid(model, pair),
        "interp, gradient estimate": estimated_grid(model, pair, "gradient"),
        "interp, integrated estimate": estimated_grid(model, pair, "integrated"),
    }
    values = {name: way() for name, way in ways.items()}
    seconds = fastest(ways)
    reference, theirs = values["TransformerLens, no_grad"], seconds["TransformerLens, no_grad"]
    print(f"\n{kind}: {LAYERS} layers x {TOKENS} tokens, first difference at {FIRST_DIFFERENCE}")
    print(f"  {'':30}{'seconds':>9}{'x faster':>10}{'largest difference':>20}")
    for name, value in seconds.items():
        worst = max(abs(a - b) for a, b in zip(values[name], reference, strict=True))
        print(f"  {name:30}{value:9.3f}{theirs / value:10.1f}{worst:20.1e}")


def growth() -> None:
    print("\nseconds of exact grids of a llama, as one thing grows")
    for layers, tokens, pairs in [
        *((layers, 60, 1) for layers in (2, 4, 8, 16)),
        *((4, tokens, 1) for tokens in (60, 120, 240)),
        *((4, 60, pairs) for pairs in (1, 4, 16)),
    ]:
        model = made("llama", layers)
        made_pairs = [made_pair(model, tokens, tokens // 3, seed) for seed in range(pairs)]
        grids = [native_grid(model, pair) for pair in made_pairs]
        seconds = fastest({"": lambda grids=grids: [grid() for grid in grids]})[""]
        cells = layers * tokens * pairs
        print(
            f"  {layers:3} layers {tokens:4} tokens {pairs:3} pairs {seconds:9.3f} s"
            f"{1e3 * seconds / cells:9.2f} ms a cell"
        )


def made(kind: str, layers: int) -> interp.Model:
    """A random model of hidden size 256 with 8 heads and 4 key-value heads."""
    words = {f"w{index}": index for index in range(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="w0", eos_token="w0", bos_token="w0"
    )
    shape = {
        "vocab_size": VOCABULARY,
        "hidden_size": 256,
        "num_hidden_layers": layers,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 32,
        "intermediate_size": 688,
    }
    torch.manual_seed(0)
    hf = (
        LlamaForCausalLM(LlamaConfig(**shape))
        if kind == "llama"
        else Gemma2ForCausalLM(Gemma2Config(**shape, query_pre_attn_scalar=32))
    ).eval()
    with torch.no_grad():
        for parameter in hf.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3.0)
    return interp.Model(kind, hf, fast)


def made_pair(
    model: interp.Model, tokens: int, first_difference: int, seed: int = 0
) -> PatchingPair:
    """Two prompts of random words that differ in one."""
    generator = torch.Generator().manual_seed(seed)
    words = [f"w{index}" for index in torch.randint(10, 900, (tokens,), generator=generator)]
    other = [*words]
    other[first_difference] = "w950"
    base, source = tokenize(model, [made_prompt(words), made_prompt(other)])
    return PatchingPair.aligned(base, source, AnswerTokenizer(model)(base), policy="all")


def made_prompt(words: Sequence[str]) -> Prompt:
    yes, no = AnswerOption("Yes", ("w1",)), AnswerOption("No", ("w2",))
    return Prompt(" ".join(words[:3]), " ".join(words), {}, yes, no, True, "p", "side", {})


def residual_cells(model: interp.Model, pair: PatchingPair) -> list:
    return list(
        cells_of(model, pair.base, ["resid_pre"], granularity="position", layers=None, heads=None)
    )


def native_grid(model: interp.Model, pair: PatchingPair) -> Callable[[], list[float]]:
    grid, cells = Grid(model, budget=TokenBudget(CPU_CELL_TOKENS)), residual_cells(model, pair)
    return lambda: list(grid.patch(pair, cells).cells)


def estimated_grid(
    model: interp.Model, pair: PatchingPair, estimate: str
) -> Callable[[], list[float]]:
    estimator, cells = Estimator(model, estimate=estimate), residual_cells(model, pair)
    return lambda: list(estimator.patch(pair, cells).cells)


def nnsight_grid(model: interp.Model, pair: PatchingPair) -> Callable[[], list[float]]:
    backend, cells = NnsightBackend(model), residual_cells(model, pair)
    return lambda: list(backend.patch(pair, cells).cells)


def transformer_lens_grid(model: interp.Model, pair: PatchingPair) -> Callable[[], list[float]]:
    """`get_act_patch_resid_pre` as a user calls it, on a copy of the model."""
    with tempfile.TemporaryDirectory() as folder:
        model.tokenizer.save_pretrained(folder)
        bridge = TransformerBridge.boot_transformers(
            model.name,
            hf_model=copy.deepcopy(model.hf),
            tokenizer=AutoTokenizer.from_pretrained(folder),
            device="cpu",
        )
    base, source = (torch.tensor([prompt.token_ids]) for prompt in (pair.base, pair.source))
    (positive,), (negative,) = pair.answers.positive, pair.answers.negative

    def metric(logits: torch.Tensor) -> torch.Tensor:
        return logits[0, -1, positive] - logits[0, -1, negative]

    def run() -> list[float]:
        with torch.no_grad():
            _, cache = bridge.run_with_cache(source)
            grid = lens.get_act_patch_resid_pre(bridge, base, cache, metric)
        return grid.flatten().tolist()

    return run


def fastest(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of the fastest of several rounds in which the ways take turns."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _, name in product(range(REPEATS), ways):
        gc.collect()
        start = time.perf_counter()
        ways[name]()
        times[name].append(time.perf_counter() - start)
    return {name: min(taken) for name, taken in times.items()}


if __name__ == "__main__":
    sys.exit(main())
