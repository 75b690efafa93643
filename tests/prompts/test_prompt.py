import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.errors import UserError
from interp.prompts.prompt import AnswerOption, Prompt, compose


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=8)), max_size=8))
def test_composed_spans_cover_their_parts(parts):
    named = [(f"part{i}" if has_name else None, text) for i, (has_name, text) in enumerate(parts)]
    text, spans = compose(named)
    assert text == "".join(part for _, part in named)
    assert {name: text[start:end] for name, (start, end) in spans.items()} == {
        name: part for name, part in named if name
    }


def test_an_unknown_segment_is_refused():
    yes, no = AnswerOption("Yes", ("Yes",)), AnswerOption("No", ("No",))
    prompt = Prompt("1", "text", {"premise1": (0, 4)}, yes, no, True, "p", "side", {})
    assert prompt.segment_text("premise1") == "text"
    assert prompt.gold_option is yes
    with pytest.raises(UserError, match="has no segment 'premise3'; it has premise1"):
        prompt.segment_text("premise3")


def a_prompt(**changes):
    yes, no = AnswerOption("Yes", ("Yes",)), AnswerOption("No", ("No",))
    fields = {"id": "1", "text": "text", "segments": {"premise1": (0, 4)}, "positive": yes}
    fields |= {"negative": no, "gold": True, "pair_id": "p", "side": "side", "factors": {}}
    return Prompt(**{**fields, **changes})


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gold": "No"}, "prompt '1': gold is 'No', a str; expected True"),
        ({"gold": 1}, "gold is 1, a int; expected True"),
        ({"gold": None}, "gold is None"),
        ({"id": ""}, "id is '', a str; expected a text that is not empty"),
        ({"id": 7}, "prompt '7': id is 7, a int"),
        ({"pair_id": None}, "pair_id is None"),
        ({"side": True}, "side is True"),
        ({"text": b"text"}, "text is b'text', a bytes"),
        ({"positive": "Yes"}, "positive is 'Yes', a str; expected an option, such as"),
        ({"positive": AnswerOption("Yes", ())}, "expected an option with at least one form"),
        ({"negative": ("No",)}, "negative is .*, a tuple; expected an option"),
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
    assert a_prompt().gold is True
    with pytest.raises(UserError, match=message):
        a_prompt(**changes)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("forms", ["Yes", ["Yes"], ("Yes", ""), ("Yes", 1), None, ({},)])
def test_forms_that_are_no_texts_are_refused(forms):
    with pytest.raises(UserError, match="option 'Yes'"):
        AnswerOption("Yes", forms)
