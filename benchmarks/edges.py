"""Edges: time compared with TransformerLens, and memory compared with a plain backward pass.

    python -m benchmarks.edges [--repeats N]

Everything runs in one process, on one CPU thread, with the same random model and a pair of prompts
that differ in one token, a third of the way in:

  1. seconds for all edges by TransformerLens's `attribution_patch(granularity="edge")` and by this
     toolkit's `gradient`, timed in alternation and starting from token ids, and the largest
     difference in a score;
  2. for bf16 models with grouped queries, the peak bytes of live tensors, not counting weights,
     during a forward and backward pass over the whole clean prompt and during the measurement of
     all edges; and the bytes of the writers' outputs.
"""

import argparse
import weakref
from collections.abc import Callable
from typing import Any

import pandas as pd
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from transformer_lens.tools.analysis import attribution_patching as lens
from transformers import LlamaConfig, LlamaForCausalLM

import interp
from benchmarks.patching import VOCABULARY, made_pair, made_tokenizer
from benchmarks.side_by_side import enlarged, machine, timed
from interp.circuits.estimates import EdgeEstimator
from interp.circuits.graph import EdgeValues, graph_of
from interp.circuits.streams import PairStreams
from interp.models.unembedding import ExactLogits
from interp.patching.cells import PatchingPair
from interp.patching.passes import answers_alone, embed, forward, logit_difference
from interp.patching.transformer_lens import TransformerLensBackend


def shape(
    hidden: int, mlp: int, *, layers: int, heads: int, kv_heads: int | None = None
) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=mlp,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
    )


SIZES = {
    "tiny": shape(64, 192, layers=2, heads=4),
    "medium": shape(256, 768, layers=4, heads=8),
    "deep": shape(256, 768, layers=8, heads=8),
}

SHAPES = {
    "Qwen2.5-0.5B": shape(896, 4864, layers=24, heads=14, kv_heads=2),
    "Llama-3.2-1B": shape(2048, 8192, layers=16, heads=32, kv_heads=8),
}

TOKENS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="number of timed rounds")
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    print(machine("transformer-lens"))
    times = pd.DataFrame(
        {
            name: compare(model := made(own), made_pair(model, TOKENS), repeats=repeats)
            for name, own in SIZES.items()
        }
    )
    print("\nall edges of a pair\n" + times.T.to_string(float_format="{:.4g}".format))
    memory = pd.DataFrame({name: needs(own, TOKENS) for name, own in SHAPES.items()})
    print("\nMB alive at once, in bf16\n" + memory.T.to_string(float_format="{:.4g}".format))


def compare(model: interp.Model, pair: PatchingPair, *, repeats: int) -> pd.Series:
    """The number of edges, each toolkit's seconds, their ratio, and the largest difference."""
    ours, theirs = estimated(model, pair), transformer_lens_edges(model, pair)
    scores, found = ours(), theirs()
    graph = graph_of(model)
    readers = {reader.name: row for row, reader in enumerate(graph.readers)}
    summed = torch.zeros_like(scores)
    for (u, v), score in found.items():  # one score per token
        summed[readers[_reader(v)], graph.writers.index(_writer(u))] += float(score)
    seconds = timed({"theirs": theirs, "ours": ours}, repeats, min)
    return pd.Series(
        {
            "edges": int(graph.edges.sum()),
            "TransformerLens, s": seconds["theirs"],
            "interp, s": seconds["ours"],
            "x faster": seconds["theirs"] / seconds["ours"],
            "largest difference": float((summed - scores.nan_to_num()).abs().max()),
        }
    )


def estimated(model: interp.Model, pair: PatchingPair) -> Callable[[], EdgeValues]:
    graph, logits = graph_of(model), ExactLogits(model)

    def run() -> EdgeValues:
        with model.measuring(), answers_alone(logits, pair.answers):
            with torch.no_grad():
                streams = PairStreams.of(model, graph, pair)
            return EdgeEstimator(model, graph, "gradient").effects(streams)

    return run


def transformer_lens_edges(model: interp.Model, pair: PatchingPair) -> Callable[[], Any]:
    """The effects of all edges, computed as a user of TransformerLens would."""
    bridge = TransformerLensBackend(model)._bridge
    ids = [torch.tensor([prompt.token_ids]) for prompt in (pair.source, pair.base)]
    (positive,), (negative,) = pair.answers.positive, pair.answers.negative
    config = lens.EdgeAttributionConfig(granularity="edge")

    def metric(logits: torch.Tensor) -> torch.Tensor:
        return logits[0, -1, positive] - logits[0, -1, negative]

    return lambda: lens.attribution_patch(bridge, *ids, metric, config).edge_scores


def _writer(node: Any) -> str:
    own = {"embed": "input", "mlp_out": f"m{node.layer}"}
    return own.get(node.kind, f"a{node.layer}.h{node.head}")


def _reader(node: Any) -> str:
    if node.kind.endswith("_input"):
        site = node.kind[0]
        return f"a{node.layer}.{'h' if site == 'q' else 'kv'}{node.head}.{site}"
    return {"logits": "logits", "mlp_in": f"m{node.layer}"}[node.kind]


def needs(config: LlamaConfig, tokens: int) -> pd.Series:
    """MB for a plain backward pass, for the writers' outputs and for all edges.

    The last entry is edges / (plain + writers).
    """
    model = made(config, torch.bfloat16)
    pair = made_pair(model, tokens)
    vectors = len(graph_of(model).writers) * (len(pair.base) - pair.shared)
    kept = vectors * config.hidden_size * 2 / 1e6
    plain, edges = (
        most_alive(model, run) for run in (plain_backward(model, pair), estimated(model, pair))
    )
    return pd.Series(
        {
            "plain backward": plain,
            "writers": kept,
            "edges": edges,
            "edges / (plain + writers)": edges / (plain + kept),
        }
    )


def plain_backward(model: interp.Model, pair: PatchingPair) -> Callable[[], object]:
    logits = ExactLogits(model)

    def run() -> object:
        with model.measuring(), answers_alone(logits, pair.answers), torch.enable_grad():
            embeddings = embed(model, pair.base.token_ids).detach().requires_grad_()
            passed = forward(model, pair.base, embeddings, start=0, past=[])
            return torch.autograd.grad(logit_difference(passed.logits, 1).sum(), embeddings)

    return run


def most_alive(model: interp.Model, run: Callable[[], object]) -> float:
    """The peak MB of live tensors, not counting tensors that existed before."""
    with _Alive(model) as alive:
        run()
    return alive.most / 1e6


class _Alive(TorchDispatchMode):
    """Counts the bytes of live tensor storages that operations have created."""

    def __init__(self, model: interp.Model) -> None:
        super().__init__()
        self.most = self._now = 0
        held = [*model.hf.parameters(), *model.hf.buffers()]
        self._seen = {tensor.untyped_storage()._cdata for tensor in held}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for made in tree_iter(out):
            if isinstance(made, torch.Tensor):
                self._see(made.untyped_storage())
        return out

    def _see(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata not in self._seen:
            self._seen.add(storage._cdata)
            self._now += storage.nbytes()
            self.most = max(self.most, self._now)
            weakref.finalize(storage, self._gone, storage._cdata, storage.nbytes())

    def _gone(self, place: int, size: int) -> None:
        self._seen.discard(place)
        self._now -= size


def made(config: LlamaConfig, dtype: torch.dtype = torch.float32) -> interp.Model:
    """A model with random weights."""
    torch.manual_seed(0)
    hf = LlamaForCausalLM._from_config(config, dtype=dtype).eval()
    return interp.Model("llama", enlarged(hf, 3.0), made_tokenizer())


if __name__ == "__main__":
    main()
