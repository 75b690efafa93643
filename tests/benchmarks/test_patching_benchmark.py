import pytest


def test_the_benchmark_of_patching_measures_each_way():
    pytest.importorskip("transformer_lens", reason="a peer that this benchmark measures")
    pytest.importorskip("nnsight", reason="a peer that this benchmark measures")
    from benchmarks.patching import compare, made, made_pair

    model = made("llama", 1)
    found = compare(model, made_pair(model, 9), repeats=1)
    assert len(found) == 5
    for name in ("nnsight, 32 cells a trace", "interp, exact"):
        assert found.loc[name, "largest difference"] == pytest.approx(0, abs=1e-4)
    # The metric changes between cells, so that equal grids mean something.
    assert found.loc["interp, gradient estimate", "largest difference"] > 1e-3
