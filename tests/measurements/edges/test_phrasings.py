"""Variance components of edges: planted ones, a second computation, and false findings."""

from itertools import product

import numpy as np
import pytest

import interp
from benchmarks.phrasings import study
from interp.measurements.edges.phrasings import PARTS, component_table
from tests.support.prompts import some_prompts


def variances(table):
    return table[list(PARTS)].to_numpy(float) * table[["sd"]].to_numpy(float) ** 2


@pytest.mark.slow
def test_the_parts_are_those_planted_on_average():
    sizes = (2.0, 0.5, 0.7, 1.5)
    found = [variances(component_table(*study(seed, sizes=sizes, edges=20))) for seed in range(30)]
    means = np.concatenate(found).mean(0)
    assert means == pytest.approx(sizes, rel=0.2)


def test_the_parts_are_mean_products_of_pairs_of_observations():
    edges, pairs, phrasing, cluster = study(3, clusters=4)
    (own,) = variances(component_table(edges, pairs, phrasing, cluster))
    rows = edges.assign(
        y=edges["effect"] * np.where(edges["direction"] == "denoising", 1, -1),
        phrasing=edges["pair_id"].map(phrasing),
        cluster=edges["pair_id"].map(cluster),
    ).to_dict("records")
    products = {key: [] for key in product((True, False), (True, False))}
    for one, other in product(rows, rows):
        same_options = one["phrasing"][-2:] == other["phrasing"][-2:]
        if one["cluster"] != other["cluster"] and same_options:
            key = (one["phrasing"] == other["phrasing"], one["direction"] == other["direction"])
            products[key].append(one["y"] * other["y"])
    m = {key: np.mean(values) for key, values in products.items()}
    expected = (
        m[True, False] - m[False, False],
        m[False, True] - m[False, False],
        m[True, True] - m[True, False] - m[False, True] + m[False, False],
        np.mean([row["y"] ** 2 for row in rows]) - m[True, True],
    )
    assert own == pytest.approx(expected, abs=1e-9)


def test_one_direction_has_phrasing_and_instance_alone():
    edges, pairs, phrasing, cluster = study(4, sizes=(3, 0, 0, 1), directions=1, edges=30)
    table = component_table(edges, pairs, phrasing, cluster)
    assert (table[["side", "phrasing_by_side"]] == 0).all(axis=None)
    assert (table["phrasing"] + table["instance"]).tolist() == pytest.approx([1] * 30)
    assert table["phrasing"].median() > 0.5
    assert (table["phrasing_low"] <= table["phrasing_high"]).all()


def test_a_planted_switch_is_found_among_edges_without_one():
    edges, pairs, phrasing, cluster = study(5, sizes=(0, 0, 0, 1), edges=20)
    switched = edges["pair_id"].map(phrasing).str[0].isin(["a", "b"]) & (edges["reader"] == "m7")
    edges.loc[switched, "effect"] += (
        3 * np.where(edges["direction"] == "denoising", 1, -1)[switched]
    )
    table = component_table(edges, pairs, phrasing, cluster).set_index("reader")
    assert table.index[0] == "m7"
    assert table["p"].drop("m7").min() > 0.05
    assert table.loc["m7", "p"] < 0.01


def test_options_are_no_phrasings_and_few_clusters_have_no_intervals():
    edges, pairs, phrasing, cluster = study(6, sizes=(0, 0, 0, 0.1), edges=5)
    yes = edges["pair_id"].map(phrasing).str.endswith("yn")
    edges.loc[yes, "effect"] *= 10
    assert component_table(edges, pairs, phrasing, cluster)["p"].min() > 0.05
    alone = {pair: name[-2:] for pair, name in phrasing.items()}
    assert component_table(edges, pairs, alone, cluster).empty
    table = component_table(*study(7, clusters=5))
    assert table[["phrasing_low", "instance_high", "p"]].isna().all(axis=None)


@pytest.mark.slow
@pytest.mark.organisms
@pytest.mark.parametrize(("name", "switches"), [("mistral", True), ("llama-shallow", False)])
def test_mistrals_switch_of_phrasings_shows_and_llama_shallow_has_none(name, switches):
    model = interp.load_model(f"organism/{name}")
    prompts = some_prompts(120)
    effects = interp.edges(model, prompts, directions=["noising", "denoising"])
    table = effects.derived()["component_table"]
    found = table[table["p"] < 0.05]
    assert bool(len(found)) == switches
    if switches:
        into_logits = table.set_index(["writer", "reader"]).loc[
            [("m1", "logits"), ("m2", "logits")]
        ]
        # The lower ends of a jackknife; those of a percentile bootstrap, above 0.3, were too high.
        assert (into_logits["phrasing_low"] > 0.2).all() and into_logits["phrasing_low"].max() > 0.5
        assert (into_logits["p"] < 0.01).all()
