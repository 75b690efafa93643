import pytest


def test_the_benchmark_of_attribution_measures_and_prints_its_rates(capsys):
    pytest.importorskip("inseq", reason="the peer that this benchmark measures")
    from benchmarks.attribution import compare

    compare(64, 1, pairs=2, repeats=1)
    printed = capsys.readouterr().out
    assert "hidden 64, 1 layers, 4 prompts of" in printed
    assert "interp against inseq" in printed
