"""Edges to whole answers: against plain hooks, and circuits against a model written by hand."""

import dataclasses
from functools import partial

import pytest
import torch

import interp
from interp.analysis.cautions.caution import WHOLE
from interp.errors import UserError
from interp.prompts.answers import Choice
from tests.circuits.test_circuits import equal_pairs, names
from tests.circuits.test_edges import Pair
from tests.patching.test_whole_answers import whole_metric, whole_pair
from tests.scoring.test_whole_answers import CITIES, plain_tokens, prompts_with
from tests.support.gpt2_by_hand import ByHand
from tests.support.hooks import hooked
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model


def written(read, head, output):
    """A projection's output over a prompt and what follows, with one head's over the prompt set."""
    patched = output.clone()
    patched[:, : read.shape[1], head] = read
    return patched


@torch.no_grad()
def test_exact_edges_equal_plain_hooks():
    """The change of the embeddings, as one head of one projection reads it through the norm."""
    model = tiny_model("llama")
    own = Pair(model, make=whole_pair)
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
        with hooked(module, "out", partial(written, read[..., head], head)):
            expected = float(whole_metric(model, own.pair)) - own.base
        assert float(exact[number, 0]) == pytest.approx(expected, abs=1e-5)


def test_any_circuit_is_the_hand_written_model_behind_which_transformers_reads_the_answers():
    own = Pair(tiny_model("gpt2", dtype=torch.float64), make=whole_pair)
    by_hand, pair, edges = ByHand(own.model), own.pair, own.graph.edges
    options = [
        [plain_tokens(own.model, pair.base.prompt, form)[1] for form in option.forms]
        for option in CITIES
    ]
    chance = torch.Generator().manual_seed(0)
    drawn = [edges & (torch.rand(edges.shape, generator=chance) < p) for p in (0.2, 0.5, 0.8)]
    lower = edges.clone()
    lower[own.graph.mlp_reader(0) + 1 : -1] = False  # layer 1 has its source output
    circuits = [edges, torch.zeros_like(edges), lower, *drawn]
    found = own.metrics(circuits)
    for circuit, metric in zip(circuits, found, strict=True):
        kept = names(own.graph, circuit)
        with torch.no_grad():
            expected = by_hand.whole_metric(
                pair.base.token_ids,
                pair.source.token_ids,
                options,
                lambda w, r, kept=kept: (w, r) in kept,
            )
        assert metric == pytest.approx(expected, abs=1e-6)
    assert len({round(metric, 4) for metric in found}) == len(found)


def test_circuits_of_options_that_begin_alike():
    model = tiny_model("llama")
    prompts = prompts_with(*CITIES, contrast=("New York", "New Jersey"))
    result = interp.find_circuits(model, prompts)
    assert result.pairs["whole"].all()
    assert not (result.pairs["error"].fillna("") != "").any()
    assert WHOLE in [caution.kind for caution in result.cautions]
    full = result.circuits[result.circuits["share"] == 1]
    means = result.pairs.set_index("pair_id")["base_metric"]
    assert full["metric"].tolist() == pytest.approx(
        [means[pair_id] for pair_id in full["pair_id"]], abs=1e-5
    )


def test_f_is_relative_to_the_measured_empty_circuit():
    """Behind a clean prompt of another length, options attend to less than the corrupt prompt."""
    model = tiny_model("llama", dtype=torch.float64)
    answer = Choice(CITIES, "New York", ("New York", "New Jersey"))
    some = [*equal_pairs(model)[0], *some_prompts(3)]
    prompts = [dataclasses.replace(prompt, answer=answer) for prompt in some]
    result = interp.find_circuits(model, prompts)
    pairs = result.pairs.set_index("pair_id")
    lengths = pairs["base_tokens"] == pairs["source_tokens"]
    gap = (pairs["empty_metric"] - pairs["source_metric"]).abs()
    assert lengths.nunique() == 2
    assert gap[lengths].max() < 1e-6
    assert gap[~lengths].max() > 1e-3
    table = result.derived()["circuit_table"]
    assert (table.loc[table["edges"] == 0, "f"] == 0).all()
    assert (table["edges"] == 0).any()
    full, empty = pairs["base_metric"].mean(), pairs["empty_metric"].mean()
    means = result.circuits.groupby(["method", "choice", "share"])["metric"].mean()
    found = table.set_index(["method", "choice", "share"])["f"]
    expected = (means - empty) / (full - empty)
    assert found.loc[means.index].tolist() == pytest.approx(expected.tolist(), abs=1e-4)


def test_softmax_refuses_whole_answers():
    model = tiny_model("llama")
    prompts = prompts_with(*CITIES, contrast=("New York", "New Jersey"))
    with pytest.raises(UserError, match="softmax"):
        interp.edges(model, prompts, methods=["softmax"], answers="whole")
    with pytest.raises(UserError, match=r"'New York'.*'New Jersey'.*'N'"):
        interp.edges(model, prompts, methods=["softmax"])
    with pytest.raises(UserError, match="softmax"):
        interp.find_circuits(model, prompts, methods=["softmax"], answers="whole")
