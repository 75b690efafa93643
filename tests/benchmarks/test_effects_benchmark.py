import pytest

from benchmarks.effects import METHODS, backward, compare, prompts_of
from benchmarks.side_by_side import random_llama


def test_the_benchmark_of_effects_measures_both_parts():
    model = random_llama(64, 1)
    prompts = prompts_of(1)[:1]
    assert len(prompts) == 1
    found = compare(model, prompts, repeats=1)
    assert found["largest difference, in logits"] == pytest.approx(0, abs=1e-4)
    assert found["bound by token counts"] > 2
    assert list(backward(model, prompts, 1)) == list(METHODS)
