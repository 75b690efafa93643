import pytest


def test_the_benchmark_of_attribution_measures_and_prints_its_rates():
    pytest.importorskip("inseq", reason="the peer that this benchmark measures")
    from benchmarks.attribution import compare
    from benchmarks.side_by_side import random_llama

    printed = compare(random_llama(64, 1), pairs=2, repeats=1)
    assert "llama 64x1, 4 prompts of" in printed
    assert "interp against inseq" in printed
