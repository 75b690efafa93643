import pytest

from benchmarks.evaluate import compare, table


def test_the_benchmark_of_shared_prefixes_measures_and_prints_its_table():
    found = compare(32, 1, instances=2, repeats=1)
    assert found.prompts == 20
    assert 2 < found.bound < 3
    assert found.difference == pytest.approx(0, abs=1e-5)
    assert f"bound by token counts        {found.bound:9.2f}" in table(found)
