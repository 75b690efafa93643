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
