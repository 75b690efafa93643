"""MIB's file against its graph, listed edge by edge, and against a model with separate keys."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from benchmarks.mib import read_importances, write_importances
from interp.circuits.graph import graph_of
from interp.errors import UserError
from interp.models.model import Model
from tests.circuits.test_edges import Pair
from tests.support.other_kinds import classifier
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level

ENDS = ["writer", "reader"]


def some_effects(model, seed=0):
    """A random effect for each edge of a model, in a random order; a quarter is in a circuit."""
    graph, rng = graph_of(model), np.random.default_rng(seed)
    ends = [
        (writer, reader.name)
        for reader in graph.readers
        for writer in graph.writers[: graph.writers_before(reader)]
    ]
    table = pd.DataFrame(ends, columns=ENDS)
    table["effect"] = rng.normal(size=len(table))
    table["in_circuit"] = rng.random(len(table)) < 0.25
    return table.sample(frac=1, random_state=seed)


def edges_of_mib(layers, heads, *, parallel):
    """The names of MIB's edges, from the description of its graph."""
    earlier, names = ["input"], []
    for layer in range(layers):
        own = [f"a{layer}.h{head}" for head in range(heads)]
        names += [f"{u}->{v}<{site}>" for u in earlier for v in own for site in "qkv"]
        names += [f"{u}->m{layer}" for u in ([] if parallel else own) + earlier]
        earlier += [*own, f"m{layer}"]
    return names + [f"{u}->logits" for u in earlier]


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gpt_neox"])
def test_what_is_written_has_the_edges_of_mib_and_is_read_again(kind, tmp_path):
    model, file = tiny_model(kind), tmp_path / "importances.json"
    effects = some_effects(model)
    write_importances(file, model, effects)
    written = json.loads(file.read_text())
    parallel = kind == "gpt_neox"
    assert set(written["edges"]) == set(edges_of_mib(2, 4, parallel=parallel))
    assert written["cfg"] == {
        "n_layers": 2,
        "n_heads": 4,
        "parallel_attn_mlp": parallel,
        "d_model": 32,
    }
    in_graph = [name for name, edge in written["edges"].items() if edge["in_graph"]]
    ends = {end for name in in_graph for end in name.split("<")[0].split("->")}
    assert {name for name, node in written["nodes"].items() if node["in_graph"]} == ends
    assert len(written["nodes"]) == 2 + 2 * 5
    found = read_importances(file, model).set_index(ENDS).sort_index()
    expected = effects.set_index(ENDS).sort_index()
    pd.testing.assert_frame_equal(found, expected, rtol=0, atol=1e-15)


def test_scores_are_means_over_pairs_with_the_opposite_sign(tmp_path):
    model, file = tiny_model("llama"), tmp_path / "importances.json"
    first, second = some_effects(model, 1), some_effects(model, 2)
    write_importances(file, model, pd.concat([first, second]).drop(columns="in_circuit"))
    edges = json.loads(file.read_text())["edges"]
    both = [one.set_index(ENDS)["effect"] for one in (first, second)]

    def mean(writer, reader):
        return sum(float(own[writer, reader]) for own in both) / 2

    assert edges["a0.h3->logits"]["score"] == pytest.approx(-mean("a0.h3", "logits"))
    assert edges["m0->a1.h2<q>"]["score"] == pytest.approx(-mean("m0", "a1.h2.q"))
    # Query heads 2 and 3 share key-value head 1.
    for head in (2, 3):
        name = f"m0->a1.h{head}<v>"
        assert edges[name]["score"] == pytest.approx(-mean("m0", "a1.kv1.v") / 2)
        assert edges[name]["in_graph"]


def test_what_is_read_and_written_has_the_mean_of_each_group(tmp_path):
    model, file = tiny_model("llama"), tmp_path / "importances.json"
    write_importances(file, model, some_effects(model))
    content = json.loads(file.read_text())
    rng = np.random.default_rng(3)
    for edge in content["edges"].values():
        edge |= {"score": float(rng.normal()), "in_graph": False}
    content["edges"]["m0->a1.h1<k>"]["in_graph"] = True
    content["nodes"]["m0"] = True  # as older versions of EAP-IG write it
    file.write_text(json.dumps(content))
    read = read_importances(file, model)
    assert read.loc[read["in_circuit"], ENDS].to_numpy().tolist() == [["m0", "a1.kv0.k"]]
    write_importances(file, model, read)
    again = json.loads(file.read_text())["edges"]
    for name in content["edges"]:
        names = [name]
        if name.endswith(("<k>", "<v>")):
            writer, reader = name.split("->")
            layer, _, end = reader.partition(".h")
            group = int(end[0]) // 2
            names = [f"{writer}->{layer}.h{h}{end[1:]}" for h in (2 * group, 2 * group + 1)]
        mean = np.mean([content["edges"][one]["score"] for one in names])
        assert again[name]["score"] == pytest.approx(mean, abs=1e-12)
    assert again["m0->a1.h0<k>"]["in_graph"]


def separated(model):
    """The same model with a copy of its keys and values for each query head."""
    config = model.hf.config
    heads, groups = config.num_attention_heads, config.num_key_value_heads
    separate = make_tiny(
        config.model_type, byte_level(), dtype=torch.float64, num_key_value_heads=heads
    )
    state = model.hf.state_dict()
    for name, weight in state.items():
        if "k_proj" in name or "v_proj" in name:
            by_head = weight.view(groups, -1, *weight.shape[1:])
            state[name] = by_head.repeat_interleave(heads // groups, 0).flatten(0, 1)
    separate.hf.load_state_dict(state)
    return Model("separate", separate.hf, model.tokenizer)


def gradients(model):
    own = Pair(model)
    values = own.estimates("gradient")
    rows = [
        {
            "writer": own.graph.writers[writer],
            "reader": own.graph.readers[row].name,
            "effect": float(values[row, writer]),
        }
        for row, writer in own.graph.edges.nonzero().tolist()
    ]
    return own, pd.DataFrame(rows)


def test_effects_of_shared_keys_are_the_sums_of_those_of_their_copies(tmp_path):
    """MIB's graph of a model without shared keys, read as that of the model that shares them."""
    model, file = tiny_model("llama", dtype=torch.float64), tmp_path / "importances.json"
    shared, expected = gradients(model)
    copies, effects = gradients(separated(model))
    assert copies.base == pytest.approx(shared.base, abs=1e-6)
    write_importances(file, copies.model, effects)
    found = read_importances(file, model).set_index(ENDS)["effect"]
    expected = expected.set_index(ENDS)["effect"]
    pd.testing.assert_series_equal(found.sort_index(), expected.sort_index(), rtol=0, atol=1e-6)
    assert expected.abs().max() > 1e-2


@pytest.mark.parametrize(
    ("how", "spoil"),
    [
        ("a0.h0->m0", lambda own: own["edges"].pop("a0.h0->m0")),
        ("m1->a0.h0<q>", lambda own: own["edges"].update({"m1->a0.h0<q>": own["edges"]["m0->m1"]})),
        ("n_heads", lambda own: own["cfg"].update(n_heads=8)),
        ("score", lambda own: own["edges"]["m0->logits"].update(score="0.5")),
        ("finite", lambda own: own["edges"]["m0->logits"].update(score=float("inf"))),
        ("cfg", lambda own: own.pop("cfg")),
    ],
)
def test_files_of_other_graphs_and_forms_are_refused(how, spoil, tmp_path):
    model, file = tiny_model("llama"), tmp_path / "importances.json"
    write_importances(file, model, some_effects(model))
    content = json.loads(file.read_text())
    spoil(content)
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match=how):
        read_importances(file, model)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"cfg": NaN}', '{"cfg": 1, "cfg": 2}', "[" * 5000]
)
def test_files_that_are_no_json_of_this_form_are_refused(text, tmp_path):
    file = tmp_path / "importances.json"
    file.write_text(text)
    with pytest.raises(UserError, match=r"importances\.json.*\bMIB"):
        read_importances(file, tiny_model("llama"))
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"importances\.json.*\bMIB"):
        read_importances(file, tiny_model("llama"))
    with pytest.raises(UserError, match=r"other\.json"):
        read_importances(tmp_path / "other.json", tiny_model("llama"))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda own: own.iloc[1:], r"\ba0\.h1 -> a1\.h2\.q\b.*\b82\b"),
        (
            lambda own: pd.concat([own, own.iloc[:1].assign(writer="m9")]),
            r"\bm9 -> a1\.h2\.q\b.*\b82\b",
        ),
        (lambda own: pd.concat([own.assign(method=x) for x in ("gim", "it")]), r"\bgim, it\b"),
        (lambda own: own.drop(columns="writer"), "column writer; .*writer, reader"),
        (lambda own: own.drop(columns="effect"), "column effect; .*writer, reader"),
        (lambda own: own.assign(effect="much"), r"type str\b"),
        (lambda own: own.assign(effect=own["effect"].where(own["effect"] < 1)), "finite"),
    ],
)
def test_other_tables_are_refused(change, problem, tmp_path):
    model, file = tiny_model("llama"), tmp_path / "importances.json"
    effects = some_effects(model)
    with pytest.raises(UserError, match=problem):
        write_importances(file, model, change(effects))
    with pytest.raises(UserError, match="causal language models"):
        write_importances(file, classifier("bert"), effects)
    assert not file.exists()
