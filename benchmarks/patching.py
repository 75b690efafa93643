"""Patching side by side with TransformerLens and nnsight.

    python -m benchmarks.patching [--grown]

In one process, on one CPU thread, same model, same pair, same metric:
  1. a full grid of the residual stream (4 layers x 60 tokens, first difference at token 20) by
     TransformerLens's `get_act_patch_resid_pre` under no_grad, by nnsight's best batched form, and
     by this toolkit, exact and estimated; the largest difference of the metric from the first;
  2. with --grown, how the grid's seconds grow with layers, tokens and pairs.
"""

import argparse
import copy
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
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
from benchmarks.side_by_side import enlarged, machine, timed
from interp.measurements.patching import CPU_CELL_TOKENS
from interp.patching.cells import PatchingPair, cells_of
from interp.patching.estimates import Estimator
from interp.patching.exact import Grid
from interp.patching.nnsight import NnsightBackend
from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.prompt import Prompt
from interp.reading.budget import TokenBudget
from interp.reading.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer

LAYERS, TOKENS = 4, 60
VOCABULARY = 1000
REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grown", action="store_true", help="also how the seconds grow")
    grown = parser.parse_args().grown
    torch.set_num_threads(1)
    print(machine("transformer-lens", "nnsight"))
    for kind in ("llama", "gemma2"):
        print(f"\n{kind}: {LAYERS} layers x {TOKENS} tokens, first difference at {TOKENS // 3}")
        print(table(compare(kind, layers=LAYERS, tokens=TOKENS, repeats=REPEATS)))
    if grown:
        growth()


@dataclass(frozen=True, slots=True)
class Measured:
    """What one way of making a grid took, and how far its metric is from TransformerLens's."""

    seconds: float
    difference: float
    """The largest of any cell, in logits."""


def compare(kind: str, *, layers: int, tokens: int, repeats: int) -> Mapping[str, Measured]:
    """Measure each way, TransformerLens first."""
    model = made(kind, layers)
    pair = made_pair(model, tokens)
    ways: dict[str, Callable[[], list[float]]] = {
        "TransformerLens, no_grad": transformer_lens_grid(model, pair),
        "nnsight, 32 cells a trace": nnsight_grid(model, pair),
        "interp, exact": native_grid(model, pair),
        "interp, gradient estimate": estimated_grid(model, pair, "gradient"),
        "interp, integrated estimate": estimated_grid(model, pair, "integrated"),
    }
    values = {name: way() for name, way in ways.items()}
    reference = values["TransformerLens, no_grad"]
    return {
        name: Measured(
            seconds, max(abs(a - b) for a, b in zip(values[name], reference, strict=True))
        )
        for name, seconds in timed(ways, repeats, min).items()
    }


def table(found: Mapping[str, Measured]) -> str:
    theirs = next(iter(found.values())).seconds
    lines = [
        f"  {'':30}{'seconds':>9}{'x faster':>10}{'largest difference':>20}",
        *(
            f"  {name:30}{way.seconds:9.3f}{theirs / way.seconds:10.1f}{way.difference:20.1e}"
            for name, way in found.items()
        ),
    ]
    return "\n".join(lines)


def growth() -> None:
    print("\nseconds of exact grids of a llama, as one thing grows")
    for layers, tokens, pairs in [
        *((layers, 60, 1) for layers in (2, 4, 8, 16)),
        *((4, tokens, 1) for tokens in (60, 120, 240)),
        *((4, 60, pairs) for pairs in (1, 4, 16)),
    ]:
        model = made("llama", layers)
        made_pairs = [made_pair(model, tokens, seed) for seed in range(pairs)]
        grids = [native_grid(model, pair) for pair in made_pairs]
        seconds = timed({"": lambda grids=grids: [grid() for grid in grids]}, REPEATS, min)[""]
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
    )
    return interp.Model(kind, enlarged(hf.eval(), 3.0), fast)


def made_pair(model: interp.Model, tokens: int, seed: int = 0) -> PatchingPair:
    """Two prompts of random words that differ in one, a third of the way in."""
    generator = torch.Generator().manual_seed(seed)
    words = [f"w{index}" for index in torch.randint(10, 900, (tokens,), generator=generator)]
    other = [*words]
    other[tokens // 3] = "w950"
    base, source = tokenize(model, [made_prompt(words), made_prompt(other)])
    answers = AnswerTokenizer(model)(base).contrast("Yes", "No")
    return PatchingPair.aligned(base, source, answers, policy="all")


def made_prompt(words: Sequence[str]) -> Prompt:
    yes, no = AnswerOption("Yes", ("w1",)), AnswerOption("No", ("w2",))
    answer = Choice.between(yes, no, gold=True)
    return Prompt(" ".join(words[:3]), " ".join(words), {}, answer, "p", "side", {})


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


if __name__ == "__main__":
    sys.exit(main())
