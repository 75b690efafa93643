import dataclasses
from itertools import chain

import pytest

from interp.errors import UserError
from interp.reading.tokens import token_roles, token_segments, tokenize, tokens_of
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model


def tokenized(rule="mt", **changes):
    prompt = next(prompt for prompt in some_prompts(12) if prompt.factors["rule"] == rule)
    return tokenize(tiny_model("llama"), [dataclasses.replace(prompt, **changes)])[0]


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


def test_segments_hold_their_roles_and_the_last_token():
    prompt = tokenized()
    segments = token_segments(prompt)
    for name, (start, end) in prompt.segments.items():
        assert set(segments[start:end]) == {name}
        assert segments.count(name) == end - start
    assert set(segments) == {*prompt.segments, "template"}


def test_of_nested_segments_the_inner_one_counts_whatever_their_order():
    start, end = tokenized().prompt.segments["premise1"]
    spans = {"premise1": (start, end), "inner": (start, start + 12)}
    for segments in (spans, dict(reversed(spans.items()))):
        prompt = tokenized(segments=segments, roles={})
        labels = token_segments(prompt)
        first, behind = prompt.segments["inner"]
        assert set(labels[first:behind]) == {"inner"}
        assert set(labels[behind : prompt.segments["premise1"][1]]) == {"premise1"}


@pytest.mark.parametrize("name", ["template", "last", "all"])
def test_names_that_every_prompt_has_are_reserved(name):
    with pytest.raises(UserError, match=f"has a segment or role '{name}'"):
        token_segments(tokenized(segments={name: (0, 9)}, roles={}))


def test_the_tokens_of_a_segment_are_all_of_it_and_those_of_a_role_its_own():
    prompt = tokenized()
    assert tokens_of(prompt, "premise2") == list(range(*prompt.segments["premise2"]))
    role = "premise2_entity_b"
    assert tokens_of(prompt, role) == list(range(*prompt.roles[role]))
    assert set(tokens_of(prompt, role)) < set(tokens_of(prompt, "premise2"))
    assert tokens_of(prompt, "last") == [len(prompt) - 1]
    assert tokens_of(prompt, "all") == list(range(len(prompt)))
    named = [tokens_of(prompt, name) for name in ("template", *prompt.segments)]
    assert sorted(chain.from_iterable(named)) == tokens_of(prompt, "all")


def test_what_a_prompt_lacks_has_no_tokens():
    assert tokens_of(tokenized(), "premise9") == tokens_of(tokenized(), "pooled") == []
