"""Small models of some families in two processes; `python -m tests.zoo.spread` compares all."""

import pytest

from tests.zoo.spread import spread

EQUAL = ("llama", "gemma2", "phi3", "qwen3_moe", "deepseek_v3")


@pytest.mark.slow
def test_logits_and_gradients_are_those_of_one_process():
    assert dict(spread(EQUAL)) == dict.fromkeys(EQUAL, "equal")


def test_types_without_a_plan_or_with_a_wrong_one_are_refused():
    found = dict(spread(["gpt2", "gemma3n_text"]))
    assert "no plan" in found["gpt2"]
    assert "changes the numbers" in found["gemma3n_text"]
