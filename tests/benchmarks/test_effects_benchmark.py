import pytest

from benchmarks.effects import backward, compare, prompts_of, table
from benchmarks.side_by_side import random_llama

pytestmark = pytest.mark.slow


def test_the_benchmark_of_effects_measures_and_prints_its_table():
    model = random_llama(64, 1)
    prompts = prompts_of(1)[:1]
    assert len(prompts) == 1
    found = compare(model, prompts, repeats=1)
    assert found.difference == pytest.approx(0, abs=1e-4)
    assert found.bound > 2
    printed = table(found, backward(model, prompts, 1))
    assert "bound by token counts" in printed
    assert "gim" in printed
