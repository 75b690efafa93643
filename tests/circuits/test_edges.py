"""Edges against each other, finite differences, TransformerLens, and the residual stream itself."""

import numpy as np
import pytest
import torch

import interp
from interp.circuits import estimates
from interp.circuits.estimates import EdgeEstimator, first_order
from interp.circuits.exact import ExactEdges
from interp.circuits.graph import Graph, Shape, graph_of
from interp.circuits.running import circuit_metrics
from interp.circuits.streams import PairStreams
from interp.errors import UserError
from interp.models.unembedding import ExactLogits
from interp.patching.estimates import embeddings_of
from interp.patching.passes import answers_alone, run_pair
from interp.reading.budget import TokenBudget
from tests.support.other_kinds import classifier
from tests.support.other_models import other_model
from tests.support.pairs import EQUAL, UNEQUAL, some_pair
from tests.support.prompts import some_prompts
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import byte_level

OTHERS = ("gemma3_text", "olmo2", "glm4", "granite", "cohere", "phi", "bloom")
"""Architectures with norms after blocks, scaled blocks, parallel blocks, and blocks that return the
stream."""


def models():
    """Every mapped architecture, and some that are not in the list of `tiny`."""
    return [*CONFIGS, *OTHERS]


def model_of(kind):
    if kind in CONFIGS:
        return tiny_model(kind, dtype=torch.float64)
    return other_model(kind, dtype=torch.float64)


class Pair:
    """A pair of one model that was run, with all that measures its edges."""

    def __init__(self, model, kind=EQUAL):
        self.model, self.pair = model, some_pair(model, kind)
        self.graph = graph_of(model)
        with self.reading(), torch.no_grad():
            self.streams = PairStreams.of(model, self.graph, self.pair)
        self.base, self.source = self.streams.passes.metrics

    def reading(self):
        return answers_alone(ExactLogits(self.model), self.pair.answers)

    def estimates(self, name, **options):
        with self.reading(), self.model.measuring():
            return EdgeEstimator(self.model, self.graph, name, **options).effects(self.streams)

    def exact(self, step=1.0, only=None):
        with self.reading():
            own = ExactEdges(self.model, self.graph, budget=TokenBudget(700))
            return own.effects(self.streams, step=step, only=only)

    def metrics(self, circuits, tokens=700):
        with self.reading():
            budget = TokenBudget(tokens)
            return circuit_metrics(self.model, self.graph, self.streams, circuits, budget=budget)


@pytest.mark.quick(5)
@pytest.mark.parametrize("lengths", [EQUAL, UNEQUAL])
@pytest.mark.parametrize("kind", models())
def test_circuits_join_base_and_source_and_exact_edges(kind, lengths):
    own = Pair(model_of(kind), lengths)
    edges = own.graph.edges
    # HF's norms compute in fp32, so sums of more than one output round there.
    tolerance = 1e-6
    full, empty = own.metrics([edges, torch.zeros_like(edges)])
    assert full == pytest.approx(own.base, abs=tolerance)
    assert empty == pytest.approx(own.source, abs=tolerance)
    effects = own.exact()
    assert torch.equal(effects.isnan(), ~edges)
    left_out = edges.nonzero().tolist()[::19]
    circuits = []
    for reader, writer in left_out:
        circuits.append(edges.clone())
        circuits[-1][reader, writer] = False
    for (reader, writer), metric in zip(left_out, own.metrics(circuits), strict=True):
        assert metric - own.base == pytest.approx(float(effects[reader, writer]), abs=tolerance)


@pytest.mark.quick(4)
@pytest.mark.parametrize("kind", models())
def test_first_order_scores_are_the_slopes_of_exact_edges(kind):
    own = Pair(model_of(kind), UNEQUAL)
    scores, step = own.estimates("gradient"), 1e-2
    slopes = (own.exact(step) - own.exact(-step)) / (2 * step)
    difference = (scores - slopes)[own.graph.edges].abs().max()
    assert float(difference) < 1e-4
    assert float(scores[own.graph.edges].abs().max()) > 3e-3


@pytest.mark.parametrize("kind", ["llama", "granite", "gpt_neox", "cohere"])
def test_writers_add_up_to_the_residual_stream(kind):
    own = Pair(model_of(kind))
    last = ("resid_post", own.graph.layers - 1)
    with own.reading(), torch.no_grad():
        passes = run_pair(own.model, own.pair, [last])
    base, source = (run.values[last][0] for run in (passes.base, passes.source))
    torch.testing.assert_close(own.streams.differences.sum(0), source - base, rtol=0, atol=1e-12)
    # All edges into the logits at once are the source's stream, to first order.
    changed = own.metrics([_without(own.graph, reader=-1)])[0]
    assert changed == pytest.approx(own.source, abs=1e-6)


def _without(graph, *, reader):
    circuit = graph.edges.clone()
    circuit[reader] = False
    return circuit


@pytest.mark.parametrize("name", ["integrated", "activations", "softmax"])
def test_costlier_estimates_are_closer_to_exact_edges(name):
    own = Pair(tiny_model("qwen2", dtype=torch.float64))
    exact, edges = own.exact(), own.graph.edges

    def error(estimate):
        return float((own.estimates(estimate) - exact)[edges].pow(2).sum())

    assert error(name) < error("gradient")


def test_integrated_scores_are_means_over_as_many_points_as_asked_for():
    own = Pair(tiny_model("llama", dtype=torch.float64))
    base, written = embeddings_of(own.model, own.pair)
    shared = own.pair.shared
    for steps in (1, 3):
        at = [
            torch.lerp(base, written, (2 * n + 1) / (2 * steps))[:, shared:] for n in range(steps)
        ]
        with own.reading(), own.model.measuring():
            scores = [first_order(own.model, own.graph, own.streams, point) for point in at]
        expected = torch.stack(scores).mean(0)
        found = own.estimates("integrated", steps=steps)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12, equal_nan=True)
    default = own.estimates("integrated")
    assert torch.equal(default.nan_to_num(), own.estimates("integrated", steps=5).nan_to_num())
    assert not torch.equal(default.nan_to_num(), found.nan_to_num())


def test_edges_by_several_variants_of_a_method_stand_side_by_side():
    model, labels = tiny_model("llama"), ["integrated", "integrated:steps=9", "activations:steps=2"]
    prompts = some_prompts(2)
    table = interp.edges(model, prompts, methods=labels).edges
    assert list(table["method"].unique()) == labels
    alone = interp.edges(model, prompts, methods={"integrated": {"steps": 9}}).edges
    own = table[table["method"] == labels[1]]
    np.testing.assert_array_equal(own["effect"], alone["effect"])
    assert not np.allclose(own["effect"], table.loc[table["method"] == labels[0], "effect"])


@pytest.mark.parametrize("kind", ["llama", "gemma2"])
def test_vectors_multiplied_in_parts_give_the_same_scores(kind, monkeypatch):
    own = Pair(model_of(kind), UNEQUAL)
    whole = own.estimates("gradient")
    monkeypatch.setattr(estimates, "AT_ONCE", 1)  # then a thirty-second of the writers
    parts = own.estimates("gradient")
    torch.testing.assert_close(parts, whole, rtol=0, atol=1e-12, equal_nan=True)


def test_softmax_changes_only_queries_and_keys():
    own = Pair(tiny_model("llama", dtype=torch.float64))
    difference = (own.estimates("softmax") - own.estimates("gradient")).round(decimals=6)
    for row, reader in enumerate(own.graph.readers):
        writers = own.graph.writers_before(reader)
        assert bool((difference[row, :writers] != 0).any()) == (reader.site in ("q", "k"))


def test_gim_scores_are_the_gradients_of_its_rules():
    """At the logits GIM only freezes the last norm, which is worth no more than a factor there."""
    own = Pair(tiny_model("llama", dtype=torch.float64))
    gim, plain = own.estimates("gim"), own.estimates("gradient")
    assert not torch.equal(gim[-1], plain[-1])
    assert torch.isfinite(gim[own.graph.edges]).all()


@pytest.mark.parametrize("kind", ["gpt2", "gpt_neox", "llama"])
def test_scores_are_those_of_transformer_lens(kind):
    pytest.importorskip("transformer_lens", reason="the extra transformer-lens is not installed")
    from transformer_lens.tools.analysis import attribution_patching as theirs

    from interp.patching.transformer_lens import TransformerLensBackend

    # TransformerLens takes no grouped queries.
    changes = {"num_key_value_heads": 4} if kind == "llama" else {}
    own = Pair(make_tiny(kind, byte_level(), **changes))
    bridge = TransformerLensBackend(own.model)._bridge
    positive, negative = list(own.pair.answers.positive), list(own.pair.answers.negative)
    ids = [torch.tensor([p.token_ids]) for p in (own.pair.source, own.pair.base)]
    found = theirs.attribution_patch(
        bridge,
        *ids,
        lambda logits: logits[0, -1, positive].logsumexp(0) - logits[0, -1, negative].logsumexp(0),
        theirs.EdgeAttributionConfig(granularity="edge"),
    )
    summed = torch.zeros(own.graph.edges.shape, dtype=torch.float64)
    for (writer, reader), score in found.edge_scores.items():
        summed[_reader(own.graph, reader), _writer(own.graph, writer)] += float(score)
    ours = own.estimates("gradient").nan_to_num()
    assert float((ours - summed).abs().max()) < 1e-5
    assert float(ours.abs().max()) > 1e-3


def _writer(graph, node):
    names = {"embed": "input", "mlp_out": f"m{node.layer}"}
    return graph.writers.index(names.get(node.kind, f"a{node.layer}.h{node.head}"))


def _reader(graph, node):
    names = {
        "logits": "logits",
        "mlp_in": f"m{node.layer}",
        "q_input": f"a{node.layer}.h{node.head}.q",
        "k_input": f"a{node.layer}.kv{node.head}.k",
        "v_input": f"a{node.layer}.kv{node.head}.v",
    }
    return [reader.name for reader in graph.readers].index(names[node.kind])


def test_numbers_of_edges():
    # GPT-2 small has 32,491 edges, as counted in MIB.
    graph = Graph((Shape(heads=12, shared=12),) * 12)
    assert int(graph.edges.sum()) == 32_491


def test_encoders_are_refused():
    with pytest.raises(UserError, match=r"tiny bert .*edges .*causal"):
        graph_of(classifier("bert"))
