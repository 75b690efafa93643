from benchmarks.guarantee import coverage_table, edge_coverage_table, measured
from tests.support.tiny import tiny_model


def test_the_benchmark_of_guarantees_measures_and_counts():
    patches, pairs = measured(tiny_model("llama"), 12)
    table = coverage_table(patches, pairs, splits=5).set_index(["estimate", "level"])
    assert table.loc[("gradient", 0.95), "draws with a bound"] == 0
    known = table.loc[("integrated", 0.8)]
    assert 0 < known["draws with a bound"] <= 5
    assert 0 < known["coverage"] <= 1


def test_the_benchmark_of_guarantees_of_edges_measures_and_counts():
    table = edge_coverage_table(tiny_model("llama"), 12, 5).set_index(
        ["estimate", "level", "edges"]
    )
    assert len(table) == 8
    for edges in ("all", 20):
        known = table.loc[("integrated", 0.8, edges)]
        assert 0 < known["draws with a bound"] <= 1
        assert 0 < known["coverage"] <= 1
