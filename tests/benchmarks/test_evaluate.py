import pytest

from benchmarks.evaluate import compare
from benchmarks.side_by_side import lines, random_llama


def test_the_benchmark_of_shared_prefixes_measures_and_prints_its_numbers():
    found = compare(random_llama(32, 1), instances=2, repeats=1)
    assert found["prompts"] == 20
    assert 2 < found["bound by token counts"] < 3
    assert found["largest difference of a probability"] == pytest.approx(0, abs=1e-5)
    assert "bound by token counts" in lines("", found)
