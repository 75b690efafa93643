import runpy
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "effects.py"


def test_the_benchmark_of_effects_measures_and_prints_its_table():
    benchmark = runpy.run_path(str(FILE))
    model = benchmark["random_llama"](64, 1)
    prompts = benchmark["prompts_of"](1)[:1]
    assert len(prompts) == 1
    found = benchmark["compare"](model, prompts, repeats=1)
    assert found.difference == pytest.approx(0, abs=1e-4)
    assert found.bound > 2
    printed = benchmark["table"](found, benchmark["backward"](model, prompts, 1))
    assert "bound by token counts" in printed
    assert "gim" in printed
