import pytest

from interp.patching.cells import groups
from interp.reading.tokens import token_roles, tokenize
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model


@pytest.mark.parametrize("granularity", ["role", "segment", "position", "all"])
def test_groups_divide_the_prompt(granularity):
    (prompt,) = tokenize(tiny_model("llama"), some_prompts(1)[:1])
    chosen = list(groups(prompt, granularity))
    positions = [position for group in chosen for position in group.positions]
    assert sorted(positions) == list(range(len(prompt)))
    assert all(group.alone == (granularity == "position") for group in chosen)
    by_name = {group.role: group.positions for group in chosen}
    if granularity == "segment":
        assert by_name["premise1"] == tuple(range(*prompt.segments["premise1"]))
    if granularity in ("role", "segment"):
        assert by_name["last"] == (len(prompt) - 1,)
    if granularity == "role":
        roles = token_roles(prompt)
        assert all({roles[p] for p in group.positions} == {group.role} for group in chosen)
