"""Speed of patching, compared with TransformerLens and nnsight.

    python -m benchmarks.patching [--grown]

Everything runs in one process, on one CPU thread, with the same model, pair and metric:

  1. a full grid of the residual stream (4 layers x 60 tokens, first difference at token 20) by
     TransformerLens's `get_act_patch_resid_pre` under no_grad, by nnsight in batches, and by this
     toolkit, exact and estimated; and the largest difference from TransformerLens's metric;
  2. with --grown, the time of the exact grid by numbers of layers, tokens and pairs.
"""

import argparse
import copy
import tempfile
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
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
from interp.measurements.patching.measure import CPU_CELL_TOKENS
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
    parser.add_argument("--grown", action="store_true", help="also time larger grids")
    grown = parser.parse_args().grown
    torch.set_num_threads(1)
    print(machine("transformer-lens", "nnsight"))
    for kind in ("llama", "gemma2"):
        print(f"\n{kind}: {LAYERS} layers x {TOKENS} tokens, first difference at {TOKENS // 3}")
        model = made(kind, LAYERS)
        found = compare(model, made_pair(model, TOKENS), repeats=REPEATS)
        print(found.to_string(float_format="{:.3g}".format))
    if grown:
        growth()


def compare(
    model: interp.Model, pair: PatchingPair, *, repeats: int, nnsight: bool = True
) -> pd.DataFrame:
    """One row per library and method: seconds, speed and largest difference in logits.

    Speed and difference are relative to TransformerLens.
    """
    ways: dict[str, Callable[[], list[float]]] = {
        "TransformerLens, no_grad": transformer_lens_grid(model, pair),
        "interp, exact": native_grid(model, pair),
        "interp, gradient estimate": estimated_grid(model, pair, "gradient"),
        "interp, integrated estimate": estimated_grid(model, pair, "integrated"),
    }
    if nnsight:
        ways["nnsight, 32 cells a trace"] = nnsight_grid(model, pair)
    values = {name: np.array(way()) for name, way in ways.items()}
    seconds = timed(ways, repeats, min)
    first = next(iter(ways))
    return pd.DataFrame(
        {
            "seconds": seconds[name],
            "x faster": seconds[first] / seconds[name],
            "largest difference": np.abs(values[name] - values[first]).max(),
        }
        for name in ways
    ).set_axis(list(ways))


def growth() -> None:
    print("\nseconds of exact grids of a llama, by layers, tokens and pairs")
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
            f"{1e3 * seconds / cells:9.2f} ms per cell"
        )


def made(kind: str, layers: int) -> interp.Model:
    """A random model of hidden size 256 with 8 heads and 4 key-value heads."""
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
    return interp.Model(kind, enlarged(hf.eval(), 3.0), made_tokenizer())


def made_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer of the words w0, w1, ..."""
    words = {f"w{index}": index for index in range(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="w0", eos_token="w0", bos_token="w0"
    )


def made_pair(model: interp.Model, tokens: int, seed: int = 0) -> PatchingPair:
    """Two prompts of random words that differ in one word, a third of the way in."""
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
    """`get_act_patch_resid_pre`, called as a user would call it, on a copy of the model."""
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
    main()
