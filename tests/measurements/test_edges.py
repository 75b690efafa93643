"""Edges as a measurement: the tables, the result, and refusals."""

import pandas as pd
import pytest

import interp
from interp.analysis.edge_effects import edge_agreement_table, edge_table
from interp.cli import main
from tests.support.other_kinds import classifier
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model

METHODS = ("gradient", "exact")


@pytest.fixture(scope="module")
def result():
    prompts = some_prompts(12)
    return interp.edges(tiny_model("llama"), prompts, methods=METHODS)


def test_each_pair_has_each_edge_by_each_method(result):
    counts = result.edges.groupby(["pair_id", "method"], sort=False).size()
    assert set(counts) == {82}
    assert len(counts) == len(METHODS) * len(result.pairs)
    assert set(result.pairs["direction"]) == {"noising"}
    assert set(result.pairs["cells"]) == {82}


def test_the_table_averages_over_pairs(result):
    table, edges = result.summary(), result.edges
    every = result.derived()["edge_table"]
    assert len(every) == 82 * len(METHODS)
    assert len(table) == 20
    means = edges.groupby(["method", "writer", "reader"])["effect"].mean()
    for row in every.itertuples():
        assert row.effect == pytest.approx(means[row.method, row.writer, row.reader], abs=1e-12)
        assert row.effect_low - 1e-12 <= row.effect <= row.effect_high + 1e-12
    for _, rows in every.groupby("method"):
        assert rows["effect"].abs().is_monotonic_decreasing


def test_estimates_are_compared_with_exact_effects(result):
    (row,) = result.derived()["edge_agreement_table"].itertuples()
    assert row.method == "gradient"
    assert 0.5 < row.rank_correlation < 1
    assert 0 < row.recall_10 <= 1


def test_pairs_of_a_cluster_count_together():
    edges = pd.DataFrame(
        [
            {"model": "m", "method": "exact", "pair_id": pair, "writer": "input", "reader": r,
             "effect": effect}
            for pair, effects in {"a": (1.0, 0.0), "b": (1.0, 0.5), "c": (-2.0, 1.0)}.items()
            for r, effect in zip(("m0", "logits"), effects, strict=True)
        ]
    )  # fmt: skip
    table = edge_table(edges, {"a": "x", "b": "x", "c": "y"}).set_index("reader")
    assert table.loc["logits", "effect"] == pytest.approx(0.5)
    assert table.loc["m0", "same_sign"] == 0.0  # the mean is zero, no effect is
    # Resamples hold the cluster x twice, y twice, or both.
    assert table.loc["m0", "effect_low"] == pytest.approx(-2.0)
    assert table.loc["m0", "effect_high"] == pytest.approx(1.0)
    assert set(table["clusters"]) == {2}
    assert edge_agreement_table(table.reset_index()).empty


def test_the_command_writes_tables_and_a_page(tmp_path, capsys):
    given = ["--model", "organism/llama-shallow", "--limit", "2", "--out", str(tmp_path)]
    assert main(["edges", *given, "--methods", "gradient"]) == 0
    assert "Largest edges, organism/llama-shallow, gradient" in capsys.readouterr().out
    assert (tmp_path / "edge_table.csv").is_file()
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 0
    assert "Edges" in (tmp_path / "page.html").read_text()


def test_encoders_are_refused():
    with pytest.raises(interp.UserError, match="edges are defined for causal language models"):
        interp.edges(classifier("bert"), some_prompts(4))


def test_an_unknown_method_is_refused(capsys):
    assert main(["edges", "--methods", "gradients"]) == 2
    assert "unknown method 'gradients'; did you mean gradient?" in capsys.readouterr().err
