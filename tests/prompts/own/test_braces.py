import pytest
from hypothesis import given
from hypothesis import strategies as st

import interp
from interp.prompts.own.braces import marked, options_of

PROMPT = "{If it rains, it is wet.} {premise: It rains.} Is it wet? Answer Yes or No."

WORDS = st.text(alphabet="abc ,.?", min_size=1).filter(str.strip)


def test_braces_mark_segments():
    text, segments = marked(PROMPT)
    assert text == "If it rains, it is wet. It rains. Is it wet? Answer Yes or No."
    found = {name: text[slice(*span)] for name, span in segments.items()}
    assert found == {"part1": "If it rains, it is wet.", "premise": "It rains."}
    assert marked("<rule>It rains.</rule> Is it wet?")[1] == {"rule": (0, 9)}


@given(st.lists(WORDS, min_size=1, max_size=4), WORDS)
def test_segments_are_what_stood_in_the_braces(parts, between):
    text, segments = marked(between.join("{" + part + "}" for part in parts))
    assert [text[slice(*span)] for span in segments.values()] == [part.strip() for part in parts]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Is it wet?", "Is it wet"),
        (" ", "' ', a str"),
        (3, "3, an int"),
        ("{It {rains}.} Is it wet?", r"'{' in '{It {rains}.} Is it wet\?'"),
        ("{It rains.} Is it} wet? {Yes.}", "'}' in '{It rains.} Is it} wet"),
        ("{It rains. Is it wet?", "'{'"),
        ("{} Is it wet?", "part1"),
        ("{a: It rains.} {a: It snows.}", r"\ba\b"),
        ("{template: It rains.} Is it wet?", "template"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_a_text_that_is_not_marked_correctly(text, fact):
    with pytest.raises(interp.UserError, match=fact):
        marked(text)


@pytest.mark.parametrize(
    "given", ["Mary|Tom", ["Mary|Tom"], ["Mary", "Tom"], (" Mary ", "Tom"), ["Mary | Tom"]]
)
def test_options_are_several_texts_or_one_with_bars(given):
    assert options_of(given) == ("Mary", "Tom")


@pytest.mark.parametrize(
    ("problem", "given"),
    [
        *((r"two different.*Paris\|Rome", own) for own in ("Mary", [], "Mary|", ["Mary", "Mary"])),
        *((r"two different.*Paris\|Rome", own) for own in ("", ["a|b", "a"], ["|"])),
        *((r"options is .*texts", own) for own in (3, None, [3, "a"], {"a": 1})),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_other_options_are_refused(problem, given):
    with pytest.raises(interp.UserError, match=problem):
        options_of(given)
