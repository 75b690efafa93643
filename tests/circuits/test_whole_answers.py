"""Edges to whole answers: against plain hooks, and estimates against slopes of exact effects."""

import dataclasses
from functools import partial

import pytest
import torch

import interp
from interp.analysis.cautions.caution import WHOLE
from interp.circuits.graph import graph_of
from interp.circuits.streams import PairStreams
from interp.errors import UserError
from interp.prompts.answers import AnswerOption, Choice
from tests.circuits.test_circuits import equal_pairs, names
from tests.circuits.test_edges import Pair, model_of, models
from tests.patching.test_whole_answers import whole_metric, whole_pair
from tests.scoring.test_whole_answers import CITIES, plain_tokens, prompts_with
from tests.support.gpt2_by_hand import ByHand
from tests.support.hooks import hooked
from tests.support.pairs import EQUAL, UNEQUAL
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level


class WholePair(Pair):
    def __init__(self, model, lengths=EQUAL):
        self.model, self.pair = model, whole_pair(model, lengths=lengths)
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


def written(read, head, output):
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
        with hooked(module, "out", partial(written, read[..., head], head)):
            expected = float(whole_metric(model, own.pair)) - own.base
        assert float(exact[number, 0]) == pytest.approx(expected, abs=1e-5)


@pytest.mark.quick(5)
@pytest.mark.parametrize("lengths", [EQUAL, UNEQUAL])
@pytest.mark.parametrize("kind", models())
def test_circuits_join_base_and_source_and_exact_edges(kind, lengths):
    own = WholePair(model_of(kind), lengths)
    edges, tolerance = own.graph.edges, 1e-6
    full, empty = own.metrics([edges, torch.zeros_like(edges)])
    assert full == pytest.approx(own.base, abs=tolerance)
    if lengths == EQUAL:
        assert empty == pytest.approx(own.source, abs=tolerance)
        assert abs(own.base - own.source) > 1e-3
    left_out = edges.nonzero().tolist()[::29]
    only = torch.zeros_like(edges)
    only[tuple(torch.tensor(left_out).T)] = True
    effects = own.exact(only=only)
    circuits = [
        edges & ~(torch.arange(edges.numel()).view(edges.shape) == r * len(edges[0]) + w)
        for r, w in left_out
    ]
    for (reader, writer), metric in zip(left_out, own.metrics(circuits), strict=True):
        assert metric - own.base == pytest.approx(float(effects[reader, writer]), abs=tolerance)


def test_any_circuit_is_the_hand_written_model_behind_which_transformers_reads_the_answers():
    own = WholePair(tiny_model("gpt2", dtype=torch.float64))
    by_hand, pair, edges = ByHand(own.model), own.pair, own.graph.edges
    options = [
        [plain_tokens(own.model, pair.base.prompt, form)[1] for form in option.forms]
        for option in CITIES
    ]
    chance = torch.Generator().manual_seed(0)
    drawn = [edges & (torch.rand(edges.shape, generator=chance) < p) for p in (0.2, 0.5, 0.8)]
    lower = edges.clone()
    lower[own.graph.attention_readers(0).stop + 1 : -1] = False  # layer 1 has its source output
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


def test_circuits_read_single_tokens_alike_as_whole_texts():
    model = make_tiny("llama", byte_level())
    prompts = prompts_with(
        *(AnswerOption(name, (name,)) for name in ("Yes", "No")), contrast=("Yes", "No"), pairs=2
    )
    effects = interp.edges(model, prompts, methods=["integrated"])
    by_first, whole = (
        interp.find_circuits(model, prompts, effects=effects, answers=answers).circuits["metric"]
        for answers in ("first", "whole")
    )
    assert whole.tolist() == pytest.approx(by_first.tolist(), abs=1e-5)


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
