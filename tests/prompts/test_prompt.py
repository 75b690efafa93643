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


def a_prompt(**changes):
    fields = {"id": "1", "text": "text", "segments": {"premise1": (0, 4)}, "answer": yes_no()}
    return Prompt(**{**fields, "pair_id": "p", "side": "side", "factors": {}, **changes})


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": ""}, r"\bid.*''.*str.*non-empty string"),
        ({"id": 7}, r"prompt '7': id.*7.*int\b"),
        ({"pair_id": None}, r"'1'.*pair_id.*None"),
        ({"side": True}, r"'1'.*side.*True"),
        ({"text": b"text"}, r"'1'.*text.*b'text'.*bytes"),
        ({"answer": "Yes"}, r"'1'.*answer.*'Yes'.*str.*Choice.*Label"),
        ({"answer": None}, r"'1'.*answer.*None.*NoneType"),
        ({"segments": {"premise1": (0, 5)}}, r"'1'.*segments.*spans.*4 characters"),
        ({"segments": {"premise1": (-1, 2)}}, r"'1'.*segments.*spans.*\b4\b"),
        ({"segments": {"premise1": (3, 2)}}, r"'1'.*segments.*spans.*\b4\b"),
        ({"segments": {"premise1": 3}}, r"'1'.*segments.*spans.*\b4\b"),
        ({"segments": {"premise1": "ab"}}, r"'1'.*segments.*spans.*\b4\b"),
        ({"segments": [(0, 4)]}, r"'1'.*segments.*list.*spans.*\b4\b"),
        ({"roles": {"entity": (2, 9)}}, r"'1'.*roles.*spans.*\b4\b"),
    ],
)
def test_what_would_be_measured_wrongly_is_refused(changes, message):
    assert a_prompt().segment_text("premise1") == "text"
    with pytest.raises(UserError, match=r"\b1\b.*segment 'premise3'.*premise1\b"):
        a_prompt().segment_text("premise3")
    with pytest.raises(UserError, match=message):
        a_prompt(**changes)


def test_a_prompt_is_shown_on_a_short_line():
    prompt = a_prompt(text="It rains. " * 99)
    assert len(repr(prompt)) < 320
    for shown in ("'1'", "side: side", "gold: Yes", "segments: premise1"):
        assert shown in repr(prompt)
