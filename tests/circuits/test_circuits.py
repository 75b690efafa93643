"""Circuits: chosen, pruned, run, and measured, each against a second way."""

import random
from itertools import pairwise

import pandas as pd
import pytest
import torch

import interp
from interp.circuits.choice import (
    CHOICES,
    SHARES,
    chosen_circuits,
    first_edges,
    greedy_order,
    half_of,
    pruned,
    top_order,
)
from interp.circuits.exact import LayerRuns
from interp.circuits.graph import Graph, Shape
from interp.errors import UserError
from interp.patching.pairs import contrast_of
from interp.reading.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.circuits.test_edges import Pair
from tests.support.gpt2_by_hand import ByHand
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model

GRAPHS = [
    Graph((Shape(heads=4, shared=2),) * 2),
    Graph((Shape(heads=2, shared=2, parallel=True),) * 3),
]

MIXED = Graph((Shape(heads=0, shared=0), Shape(heads=4, shared=1), Shape(0, 0, mlp=False)))
"""A layer whose mixer is one node, one with heads, and one that is only a mixer."""


def random_scores(graph, seed):
    scores = torch.randn(graph.edges.shape, generator=torch.Generator().manual_seed(seed)).double()
    return scores.where(graph.edges, torch.nan)


def names(graph, circuit):
    return {(graph.writers[w], graph.readers[r].name) for r, w in circuit.nonzero().tolist()}


def on_a_path(edges, group):
    """The edges on a path from the input to the logits, found by walking from both ends."""

    def feeds(edge, after):
        """Whether an edge enters a component from which another one leaves."""
        reader, writer = edge[1], after[0]
        if ".kv" not in reader:
            return reader.removesuffix(".q") == writer
        layer, kv = reader.split(".")[:2]
        head = writer.removeprefix(f"{layer}.h")
        return head.isdigit() and int(head) // group == int(kv[2:])

    def walked(found, follows):
        while new := {e for e in edges - found if any(follows(e, other) for other in found)}:
            found = found | new
        return found

    down = walked({e for e in edges if e[0] == "input"}, lambda e, other: feeds(other, e))
    up = walked({e for e in edges if e[1] == "logits"}, feeds)
    return down & up


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("choice", CHOICES)
def test_pruned_edges_are_those_on_a_path_from_the_input_to_the_logits(graph, choice):
    group = graph.heads_per_key
    for seed in range(6):
        circuit = first_edges(graph, CHOICES[choice](graph, random_scores(graph, seed)), 25)
        expected = on_a_path(names(graph, circuit), group)
        assert names(graph, pruned(graph, circuit)) == expected


@pytest.mark.parametrize("graph", GRAPHS)
def test_circuits_grow_with_their_share_to_the_whole_graph(graph):
    circuits = list(chosen_circuits(graph, {"exact": random_scores(graph, 0)}))
    assert len(circuits) == (2 + 5) * len(SHARES)
    for one, other in pairwise(circuits):
        if one.share < other.share:
            assert bool((one.circuit <= other.circuit).all())
        else:
            assert torch.equal(one.circuit, graph.edges)
    assert not bool(circuits[0].circuit.any())


@pytest.mark.parametrize("graph", [*GRAPHS, MIXED])
def test_a_graph_is_known_by_its_edges(graph):
    edges = {*graph.named_edges()}
    assert len(edges) == int(graph.edges.sum())
    assert Graph.of_edges(edges) == graph
    with pytest.raises(UserError, match=r"edges.*model.*edge"):
        Graph.of_edges(edges - {("input", "logits")})


def test_a_mixer_without_heads_is_one_node():
    assert MIXED.writers == ["input", "a0", "m0", "a1.h0", "a1.h1", "a1.h2", "a1.h3", "m1", "a2"]
    names = [reader.name for reader in MIXED.readers]
    assert names[:2] == ["a0", "m0"]
    assert names[2:9] == [*(f"a1.h{head}.q" for head in range(4)), "a1.kv0.k", "a1.kv0.v", "m1"]
    assert names[9:] == ["a2", "logits"]
    assert list(MIXED.fed_by(MIXED.readers[0])) == [1]
    assert list(MIXED.fed_by(MIXED.readers[6])) == [3, 4, 5, 6]
    assert MIXED.writers_before(MIXED.readers[1]) == 2
    with pytest.raises(UserError, match="layer 0"):
        MIXED.check_heads("circuits")


def test_greedy_takes_the_largest_edge_into_what_is_read_and_top_the_largest():
    graph, scores = GRAPHS[0], random_scores(GRAPHS[0], 3)
    order = scores.abs().nan_to_num(-1).flatten().argsort(descending=True)
    assert torch.equal(
        first_edges(graph, top_order(graph, scores), 9).flatten().nonzero()[:, 0],
        order[:9].sort().values,
    )
    read = {len(graph.readers) - 1}
    taken = set()
    for size in range(1, 30):
        waiting = [e for e in map(tuple, graph.edges.nonzero().tolist()) if e[0] in read]
        best = max({*waiting} - taken, key=lambda e: abs(float(scores[e])))
        taken.add(best)
        read |= {r for r, own in enumerate(graph.readers) if best[1] in graph.fed_by(own)}
        found = set(
            map(tuple, first_edges(graph, greedy_order(graph, scores), size).nonzero().tolist())
        )
        assert found == taken


def test_any_circuit_is_the_hand_written_model_with_its_edges():
    own = Pair(tiny_model("gpt2", dtype=torch.float64))
    by_hand = ByHand(own.model)
    ids = own.pair.base.token_ids, own.pair.source.token_ids
    edges = own.graph.edges
    chance = torch.Generator().manual_seed(0)
    drawn = [edges & (torch.rand(edges.shape, generator=chance) < p) for p in (0.2, 0.5, 0.8)]
    circuits = [edges, torch.zeros_like(edges), *drawn]
    for circuit, metric in zip(circuits, own.metrics(circuits), strict=True):
        kept = names(own.graph, circuit)
        expected = by_hand.metric(*ids, own.pair.answers, lambda w, r, kept=kept: (w, r) in kept)
        assert metric == pytest.approx(expected, abs=1e-6)
    assert own.metrics(circuits)[0] == pytest.approx(own.base, abs=1e-6)
    assert abs(own.base - own.source) > 1e-3


def test_a_layer_is_run_twice_for_all_circuits_and_only_if_one_has_an_edge_into_it(monkeypatch):
    own = Pair(tiny_model("llama"))
    runs = []
    original = LayerRuns._run

    def counted(self, layer, *given):
        runs.append(layer)
        return original(self, layer, *given)

    monkeypatch.setattr(LayerRuns, "_run", counted)
    edges, last = own.graph.edges, own.graph.layers - 1
    lower = edges.clone()
    lower[own.graph.attention_readers(last - 1).stop + 1 : -1] = False
    straight = torch.zeros_like(edges)
    straight[-1, 0] = True
    own.metrics([edges, lower, straight], tokens=10_000)
    assert runs == [*sorted([*range(own.graph.layers)] * 2), own.graph.layers]
    runs.clear()
    own.metrics([lower])
    assert last not in runs
    runs.clear()
    own.metrics([straight])
    assert runs == [own.graph.layers]


def equal_pairs(model):
    found = []
    prompts = some_prompts(24)
    for pair_id in dict.fromkeys(prompt.pair_id for prompt in prompts):
        pair = [prompt for prompt in prompts if prompt.pair_id == pair_id]
        lengths = {len(prompt) for prompt in tokenize(model, pair)}
        found += [pair] if len(lengths) == 1 else []
    return found


def test_f_and_its_areas_are_those_by_hand():
    model = tiny_model("gpt2", dtype=torch.float64)
    # Two pairs whose differences have the same sign, so that their mean is far from zero.
    pairs = equal_pairs(model)[2:6:2]
    prompts = [prompt for pair in pairs for prompt in pair]
    effects = interp.edges(model, prompts, methods=["exact"])
    result = interp.find_circuits(model, prompts, effects=effects)
    by_hand, graph = ByHand(model), Graph((Shape(4, 4),) * 2)

    def metrics(has_edge):
        return [
            by_hand.metric(
                *(prompt.token_ids for prompt in tokenize(model, pair)),
                answers_of(model, pair),
                has_edge,
            )
            for pair in pairs
        ]

    full, empty = sum(metrics(lambda w, r: True)), sum(metrics(lambda w, r: False))
    assert abs(full - empty) > 1e-2
    means = effects.edges.groupby(["reader", "writer"])["effect"].mean()
    scores = torch.full(graph.edges.shape, torch.nan, dtype=torch.float64)
    for row, reader in enumerate(graph.readers):
        for column in range(graph.writers_before(reader)):
            scores[row, column] = means[reader.name, graph.writers[column]]
    f = []
    for share in SHARES:
        circuit = pruned(graph, first_edges(graph, greedy_order(graph, scores), int(share * 110)))
        kept = names(graph, circuit)
        f.append((sum(metrics(lambda w, r, kept=kept: (w, r) in kept)) - empty) / (full - empty))
    table = result.derived()["circuit_table"]
    found = table[(table["method"] == "exact") & (table["choice"] == "greedy")]
    assert found["f"].tolist() == pytest.approx(f, abs=1e-5)
    assert found["f"].iloc[[0, -1]].tolist() == pytest.approx([0, 1], abs=1e-5)
    cmd = cpr = 0.0
    for i in range(1, len(SHARES)):
        width = SHARES[i] - SHARES[i - 1]
        cmd += width * (abs(1 - f[i]) + abs(1 - f[i - 1])) / 2
        cpr += width * (min(f[i], 1) + min(f[i - 1], 1)) / 2
    areas = result.summary()
    (own,) = areas[(areas["method"] == "exact") & (areas["choice"] == "greedy")].itertuples()
    assert (own.cmd, own.cpr) == pytest.approx((cmd, cpr), abs=1e-5)
    assert areas["cmd"].is_monotonic_increasing
    assert pd.isna(own.cmd_low)  # two clusters have no interval


def answers_of(model, pair):
    tokenized = tokenize(model, pair)
    return AnswerTokenizer(model)(tokenized[0]).contrast(*contrast_of(*pair))


def test_exact_circuits_are_better_than_random_ones():
    result = interp.find_circuits(
        tiny_model("llama"), some_prompts(12)[:8], methods=["exact", "gradient"]
    )
    cmd = result.summary().groupby("method")["cmd"].min()
    assert cmd["exact"] < cmd["random"]
    assert set(result.circuits["method"]) == {"exact", "gradient", "random"}


def test_half_of_the_values_is_always_the_same_half():
    values = [f"phrasing {number}" for number in range(10)]
    shuffled = random.Random(1).sample(values, 10)
    assert half_of(values, "phrasing") == half_of(shuffled, "phrasing")
    assert len(half_of(values, "phrasing")) == 5
    assert len(half_of(values[:9], "phrasing")) == 5
