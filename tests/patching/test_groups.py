import pytest

from interp.patching.cells import groups
from interp.reading.tokens import token_roles, tokenize
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model


def tokenized(rule):
    prompt = next(prompt for prompt in some_prompts(12) if prompt.factors["rule"] == rule)
    return tokenize(tiny_model("llama"), [prompt])[0]


@pytest.mark.parametrize("granularity", ["role", "segment", "position", "all"])
def test_groups_divide_the_prompt(granularity):
    prompt = tokenized("mt")
    chosen = list(groups(prompt, granularity))
    positions = [position for group in chosen for position in group.positions]
    assert sorted(positions) == list(range(len(prompt)))
    assert all(group.alone == (granularity == "position") for group in chosen)


def test_segments_hold_their_roles_but_not_the_last_token():
    prompt = tokenized("mt")
    by_name = {group.role: group.positions for group in groups(prompt, "segment")}
    start, end = prompt.segments["premise1"]
    assert by_name["premise1"] == tuple(range(start, end))
    assert by_name["last"] == (len(prompt) - 1,)


def test_roles_are_those_of_the_tokens():
    prompt = tokenized("ds")
    roles = token_roles(prompt)
    for group in groups(prompt, "role"):
        assert {roles[position] for position in group.positions} == {group.role}
