import pytest

from interp.errors import UserError
from interp.patching.roles import groups, token_roles
from interp.reading.tokens import tokenize
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model


def tokenized(rule):
    prompt = next(prompt for prompt in some_prompts(12) if prompt.factors["rule"] == rule)
    return tokenize(tiny_model("llama"), [prompt])[0]


@pytest.mark.parametrize(
    ("rule", "entities"),
    [
        ("mt", {"premise1_entity_a", "premise1_entity_b", "premise2_entity_b"}),
        ("ds", {"premise1_entity_b", "premise1_entity_a", "premise2_entity_a"}),
    ],
)
def test_tokens_have_the_role_of_the_smallest_span(rule, entities):
    prompt = tokenized(rule)
    roles = token_roles(prompt)
    assert entities < set(roles)
    assert {"template", "premise1", "premise2", "conclusion", "question", "last"} < set(roles)
    assert roles[-1] == "last"
    assert roles.count("last") == 1
    start, end = prompt.roles["premise1_entity_a"]
    assert set(roles[start:end]) == {"premise1_entity_a"}
    assert roles[prompt.segments["premise1"][0]] == "premise1"


@pytest.mark.parametrize("granularity", ["role", "segment", "position", "all"])
def test_groups_divide_the_prompt(granularity):
    prompt = tokenized("mt")
    chosen = list(groups(prompt, granularity))
    positions = [position for group in chosen for position in group.positions]
    assert sorted(positions) == list(range(len(prompt)))
    assert all(group.alone == (granularity == "position") for group in chosen)


def test_segments_hold_their_roles():
    prompt = tokenized("mt")
    by_name = {group.role: group.positions for group in groups(prompt, "segment")}
    start, end = prompt.segments["premise1"]
    assert by_name["premise1"] == tuple(range(start, end))


def test_an_unknown_granularity_is_refused():
    with pytest.raises(UserError, match="expected one of role, segment, position, all"):
        list(groups(tokenized("mt"), "head"))
