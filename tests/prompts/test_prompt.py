import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.errors import UserError
from interp.prompts.prompt import Prompt, compose
from tests.support.answers import yes_no


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=8)), max_size=8))
def test_composed_spans_cover_their_parts(parts):
    named = [(f"part{i}" if has_name else None, text) for i, (has_name, text) in enumerate(parts)]
    text, spans = compose(named)
    assert text == "".join(part for _, part in named)
    assert {name: text[start:end] for name, (start, end) in spans.items()} == {
        name: part for name, part in named if name
    }


def test_an_unknown_segment_is_refused():
    prompt = a_prompt()
    assert prompt.segment_text("premise1") == "text"
    with pytest.raises(UserError, match="has no segment 'premise3'; it has premise1"):
        prompt.segment_text("premise3")


def a_prompt(**changes):
    fields = {"id": "1", "text": "text", "segments": {"premise1": (0, 4)}, "answer": yes_no()}
    return Prompt(**{**fields, "pair_id": "p", "side": "side", "factors": {}, **changes})


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": ""}, "id is '', a str; expected a non-empty string"),
        ({"id": 7}, "prompt '7': id is 7, an int"),
        ({"pair_id": None}, "pair_id is None"),
        ({"side": True}, "side is True"),
        ({"text": b"text"}, "text is b'text', a bytes"),
        ({"answer": "Yes"}, "answer is 'Yes', a str; expected a Choice, a Label"),
        ({"answer": None}, "answer is None, a NoneType"),
        ({"segments": {"premise1": (0, 5)}}, "segments is .*; expected spans .* 4 characters"),
        ({"segments": {"premise1": (-1, 2)}}, "segments is .*; expected spans"),
        ({"segments": {"premise1": (3, 2)}}, "segments is .*; expected spans"),
        ({"segments": {"premise1": 3}}, "segments is .*; expected spans"),
        ({"segments": {"premise1": "ab"}}, "segments is .*; expected spans"),
        ({"segments": [(0, 4)]}, "segments is .*a list; expected spans"),
        ({"roles": {"entity": (2, 9)}}, "roles is .*; expected spans"),
    ],
)
def test_what_would_be_measured_wrongly_is_refused(changes, message):
    assert a_prompt().answer.gold == "Yes"
    with pytest.raises(UserError, match=message):
        a_prompt(**changes)


def test_a_prompt_is_shown_on_a_short_line():
    prompt = Prompt("1/a", "It rains. " * 99, {"rule": (0, 9)}, yes_no(), "1", "a", {})
    assert len(repr(prompt)) < 320
    for shown in ("'1/a'", "side: a", "gold: Yes", "segments: rule"):
        assert shown in repr(prompt)
