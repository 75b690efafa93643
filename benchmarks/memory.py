"""Memory that models of given shapes need: for weights, and per token of attribution.

    python -m benchmarks.memory [--shapes NAME ...]

Weights are counted in a model of each shape that is built on PyTorch's meta device, which allocates
nothing. Memory kept for the backward pass is measured on the CPU in bf16. It is the size of all
tensors that autograd saves for two prompts in a random model of two layers, minus the size in a
model of one layer.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pandas as pd
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig

import interp
from benchmarks.side_by_side import machine
from interp.attribution.attributor import shared_pass
from interp.models.organisms import DEFAULT, organism_folder
from interp.prompts.prompt import Prompt
from interp.reading.tokens import TokenizedPrompt, pad, tokenize
from interp.report.console import print_table
from interp.scoring.answer_tokens import AnswerTokenizer

VOCABULARY = 128_256
NF4_BYTES = 0.5 + 4 / 64
"""Bytes per quantized weight, including its share of the fp32 scale of its block."""


@dataclass(frozen=True)
class Shape:
    """The shape of a Llama."""

    hidden: int
    mlp: int
    layers: int
    heads: int
    kv_heads: int = 8
    tied: bool = False
    """Whether embedding and unembedding share one matrix."""

    def config(self, *, layers: int, vocabulary: int) -> LlamaConfig:
        """The configuration for this number of layers and tokens."""
        return LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=self.hidden,
            intermediate_size=self.mlp,
            num_hidden_layers=layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            tie_word_embeddings=self.tied,
        )


SHAPES = {
    "Llama-3.2-1B": Shape(2048, 8192, 16, 32, tied=True),
    "Llama-3-8B": Shape(4096, 14_336, 32, 32),
    "Llama-3-70B": Shape(8192, 28_672, 80, 64),
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=[*SHAPES], metavar="NAME")
    names = parser.parse_args(argv).shapes
    print(machine())
    prompts = interp.load_prompts(limit=48)
    table = pd.DataFrame([{"shape": name, **needs(SHAPES[name], prompts)} for name in names])
    print_table(table, title="Memory")


def needs(shape: Shape, prompts: Sequence[Prompt]) -> dict[str, float]:
    """Parameters, GB of weights, and bytes kept per token and layer without and with padding."""
    with torch.device("meta"):
        whole = AutoModelForCausalLM.from_config(
            shape.config(layers=shape.layers, vocabulary=VOCABULARY)
        )
    # bitsandbytes quantizes all linear layers except the unembedding.
    in_layers = sum(p.numel() for p in whole.model.layers.parameters() if p.dim() == 2)
    outside = whole.num_parameters() - in_layers
    plain, padded = kept_per_layer(shape, prompts)
    return {
        "parameters": in_layers + outside,
        "gb_bf16": 2 * (in_layers + outside) / 1e9,
        "gb_4bit": (NF4_BYTES * in_layers + 2 * outside) / 1e9,
        "kept_plain": round(plain),
        "kept_padded": round(padded),
    }


def kept_per_layer(shape: Shape, prompts: Sequence[Prompt]) -> tuple[float, float]:
    """Bytes per token for two prompts of equal length, and for one of them with the longest."""
    kept = []
    for layers in (1, 2):
        model = random_model(shape, layers)
        read = tokenize(model, prompts)
        ordered = sorted(read, key=len)
        first, alike = next(two for two in pairwise(ordered) if len(two[0]) == len(two[1]))
        kept.append([saved(model, rows) for rows in ((first, alike), (first, ordered[-1]))])
    plain, padded = (two - one for one, two in zip(*kept, strict=True))
    return plain, padded


def random_model(shape: Shape, layers: int) -> interp.Model:
    """A few layers in bf16; the vocabulary is small, which does not affect what a layer keeps."""
    tokenizer = AutoTokenizer.from_pretrained(organism_folder(DEFAULT))
    config = shape.config(layers=layers, vocabulary=len(tokenizer))
    config.pad_token_id = tokenizer.pad_token_id
    hf = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    return interp.Model("random", hf.eval().requires_grad_(False), tokenizer)


def saved(model: interp.Model, prompts: Sequence[TokenizedPrompt]) -> float:
    """Bytes per token, padding included, that autograd keeps for a batch, without weights."""
    weights = {tensor.untyped_storage().data_ptr() for tensor in model.hf.state_dict().values()}
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        place = tensor.untyped_storage().data_ptr()
        if place not in weights:
            kept[place] = tensor  # kept alive, so that its memory is not reused
        return tensor

    batch = pad(model, prompts)
    answers = AnswerTokenizer(model)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        shared_pass(model, batch, answers, needs={"input_gradient"}, target="predicted")
    return sum(t.untyped_storage().nbytes() for t in kept.values()) / batch.token_ids.numel()


if __name__ == "__main__":
    main()
