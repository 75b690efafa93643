"""Edges as a measurement: the tables, the result, and refusals."""

import re

import numpy as np
import pandas as pd
import pytest

import interp
from interp.cli import main
from interp.estimates.compute import estimate
from interp.measurements.edges.show import EDGES, edge_agreement_table, edge_trials
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model

METHODS = ("gradient", "exact")


@pytest.fixture(scope="module")
def result():
    prompts = some_prompts(12)
    return interp.edges(tiny_model("llama"), prompts, methods=METHODS)


def test_each_pair_has_each_edge_by_each_method_and_tables_are_about_them(result):
    counts = result.edges.groupby(["pair_id", "method"], sort=False).size()
    assert set(counts) == set(result.pairs["cells"]) == {82}
    assert len(counts) == len(METHODS) * len(result.pairs)
    assert set(result.pairs["direction"]) == {"noising"}
    tables, by = result.derived(), ["method", "writer", "reader"]
    every = tables["edge_table"]
    assert (len(every), len(result.summary())) == (82 * len(METHODS), 20)
    means = result.edges.groupby(by)["effect"].mean()
    found = every.set_index(by)["effect"]
    np.testing.assert_allclose(found, means[found.index], atol=1e-12)
    for _, effects in found.groupby("method"):
        assert effects.abs().is_monotonic_decreasing
    (row,) = tables["edge_agreement_table"].itertuples()
    assert row.method == "gradient"
    assert 0.5 < row.rank_correlation < 1
    assert 0 < row.recall_10 <= 1
    varies = tables["component_table"].query("sd > 0")
    assert set(varies["method"]) == set(METHODS)
    parts = varies[["phrasing", "side", "phrasing_by_side", "instance"]].sum(axis="columns")
    assert parts.tolist() == pytest.approx([1] * len(varies))


def edge_table(edges, clusters):
    return estimate(EDGES, edge_trials(edges.assign(cluster=edges["pair_id"].map(clusters))))


def test_few_clusters_have_no_interval_and_no_exact_effects_no_comparison():
    key = {"model": "m", "direction": "noising", "method": "exact", "writer": "input"}
    effects = pd.DataFrame({"pair_id": ["a", "b"], "effect": [1.0, -3.0], "reader": "m0", **key})
    table = edge_table(effects, {"a": "x", "b": "y"})
    assert table[["effect", "same_sign"]].to_numpy().tolist() == [[-1.0, 0.5]]
    assert table[["effect_low", "effect_high"]].isna().all(axis=None)
    assert edge_agreement_table(table).empty


def test_the_command_writes_tables_and_a_page(tmp_path, capsys):
    given = ["--model", "organism/llama-shallow", "--limit", "2", "--out", str(tmp_path)]
    assert main(["edges", *given, "--methods", "gradient"]) == 0
    assert "organism/llama-shallow, noising, gradient" in capsys.readouterr().out
    assert (tmp_path / "edge_table.csv").is_file()
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 0
    assert "Edges" in (tmp_path / "page.html").read_text()


def test_each_direction_runs_one_side():
    model, prompts = tiny_model("llama"), some_prompts(12)[:4]
    both = interp.edges(
        model, prompts, methods=["exact"], directions=["noising", "denoising"]
    ).edges
    turned = [prompt for pair in (prompts[:2], prompts[2:]) for prompt in reversed(list(pair))]
    other = interp.edges(model, turned, methods=["exact"], clean=turned[0].side).edges
    own = both[both["direction"] == "denoising"]
    assert own["effect"].tolist() == pytest.approx(other["effect"].tolist(), abs=1e-6)
    assert set(both["direction"]) == {"noising", "denoising"}
    table = edge_table(both, {pair: pair for pair in both["pair_id"]})
    assert table.groupby("direction")["effect"].size().tolist() == [82, 82]


def test_a_sample_runs_the_same_edges_of_each_kind_in_all_pairs():
    model, prompts = tiny_model("llama"), some_prompts(12)[:4]
    sampled = interp.edges(model, prompts, methods=["gradient", "exact"], sample=4)
    exact = sampled.edges[sampled.edges["method"] == "exact"]
    ends = exact.groupby("pair_id")[["writer", "reader"]].apply(
        lambda rows: sorted(map(tuple, rows.to_numpy()))
    )
    assert ends.iloc[0] == ends.iloc[1]
    kinds = pd.Series([reader for _, reader in ends.iloc[0]]).str.extract(
        r"(?:\.|^)(q|k|v|m|logits)(?:\d|$)"
    )[0]
    assert kinds.value_counts().to_dict() == {"q": 4, "k": 4, "v": 4, "m": 4, "logits": 4}
    every = interp.edges(model, prompts, methods=["exact"]).edges
    joined = exact.merge(every, on=["pair_id", "writer", "reader"])
    assert joined["effect_x"].tolist() == pytest.approx(joined["effect_y"].tolist(), abs=1e-6)
    (agreement,) = sampled.derived()["edge_agreement_table"].itertuples()
    assert agreement.edges == 20


@pytest.mark.slow
@pytest.mark.parametrize("sample", [None, 3])
def test_a_guarantee_bounds_the_excess_of_effects_over_estimates(sample):
    model, prompts = tiny_model("llama"), some_prompts(24)
    options = {"guarantee": 0.5, "checked": 0.5, "sample": sample}
    result = interp.edges(model, prompts, methods=["gradient"], **options)
    pairs, edges = result.pairs.set_index("pair_id"), result.edges
    checked = edges["pair_id"].map(pairs["checked"])
    exact = edges[edges["method"] == "exact"]
    assert set(exact["pair_id"]) == set(pairs.index[pairs["checked"]])
    assert exact.groupby("pair_id").size().tolist() == [sample * 5 if sample else 82] * len(
        set(exact["pair_id"])
    )
    table = result.derived()["guarantee_table"].set_index("site")
    key = ["pair_id", "writer", "reader"]
    both = exact.merge(edges[edges["method"] == "gradient"], on=key)
    into_logits = both[both["reader"] == "logits"]
    excess = into_logits["effect_x"].abs() - into_logits["effect_y"].abs()
    scores = sorted(excess.groupby(into_logits["pair_id"]).max())
    rank = -(-(len(scores) + 1) // 2)
    assert table.loc["logits", "margin"] == pytest.approx(scores[rank - 1])
    estimates = edges[(edges["method"] == "gradient") & ~checked & (edges["reader"] == "logits")]
    assert table.loc["logits", "largest_estimate"] == pytest.approx(estimates["effect"].abs().max())
    assert set(table.index) == {"q", "k", "v", "mlp", "logits"}
    assert set(result.derived()["edge_table"]["method"]) == {"gradient"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--methods", "exact", "--guarantee", "0.9"], "exact leaves nothing to estimate"),
        (["--methods", "gradients"], r"method 'gradients'; .*\bgradient\b"),
        (["--sample", "5"], "a sample selects the edges to run exactly, but no edges"),
        (["--sample", "0"], "sample is 0"),
        (["--directions", "up"], "unknown direction 'up'"),
    ],
)
def test_options_that_contradict_each_other_are_refused(given, message, capsys):
    assert main(["edges", "--limit", "2", *given]) == 2
    assert re.search(message, capsys.readouterr().err)
