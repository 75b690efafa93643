"""Edges to whole answers: against plain hooks, and estimates against slopes of exact effects."""

from functools import partial

import pytest
import torch

import interp
from interp.circuits.graph import graph_of
from interp.circuits.streams import PairStreams
from interp.errors import UserError
from tests.circuits.test_edges import Pair
from tests.patching.test_whole_answers import whole_metric, whole_pair
from tests.scoring.test_whole_answers import CITIES, prompts_with
from tests.support.tiny import tiny_model


class WholePair(Pair):
    def __init__(self, model):
        self.model, self.pair = model, whole_pair(model)
        self.graph = graph_of(model)
        with self.reading(), torch.no_grad():
            self.streams = PairStreams.of(model, self.graph, self.pair)
        self.base, self.source = self.streams.passes.metrics


@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt_neox"])
def test_first_order_scores_are_the_slopes_of_exact_edges(kind):
    own = WholePair(tiny_model(kind, dtype=torch.float64))
    scores, step = own.estimates("gradient"), 1e-2
    slopes = (own.exact(step) - own.exact(-step)) / (2 * step)
    # HF's norms compute in fp32, which the step divides.
    assert float((scores - slopes)[own.graph.edges].abs().max()) < 1e-3
    assert float(scores[own.graph.edges].abs().max()) > 3e-3


def written(read, head, module, args, output):
    """A projection's output over a prompt and what follows, with one head's over the prompt set."""
    patched = output.clone()
    patched[:, : read.shape[1], head] = read
    return patched


@torch.no_grad()
def test_exact_edges_equal_plain_hooks():
    """The change of the embeddings, as one head of one projection reads it through the norm."""
    model = tiny_model("llama")
    own = WholePair(model)
    exact = own.exact()
    base, source = (
        model.hf.get_input_embeddings()(torch.tensor([prompt.token_ids]))
        for prompt in (own.pair.base, own.pair.source)
    )
    streams = model.hf.model(
        torch.tensor([own.pair.base.token_ids]), use_cache=False, output_hidden_states=True
    ).hidden_states
    for number, reader in enumerate(own.graph.readers):
        if reader.site not in ("q", "k", "v"):
            continue
        layer = model.hf.model.layers[reader.layer]
        module = getattr(layer.self_attn, f"{reader.site}_proj")
        read = module(layer.input_layernorm(streams[reader.layer] + source - base))
        head = slice(8 * reader.head, 8 * reader.head + 8)
        handle = module.register_forward_hook(partial(written, read[..., head], head))
        expected = float(whole_metric(model, own.pair)) - own.base
        handle.remove()
        assert float(exact[number, 0]) == pytest.approx(expected, abs=1e-5)


def test_softmax_and_circuits_refuse_whole_answers():
    model = tiny_model("llama")
    prompts = prompts_with(*CITIES, contrast=("New York", "New Jersey"))
    with pytest.raises(UserError, match="softmax"):
        interp.edges(model, prompts, methods=["softmax"], answers="whole")
    with pytest.raises(UserError, match="both begin with the token"):
        interp.edges(model, prompts, methods=["softmax"])
    with pytest.raises(UserError, match="both begin with the token"):
        interp.find_circuits(model, prompts)
