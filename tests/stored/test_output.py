"""A thought that is cut off has no answer, as others in its file and the tool tell."""

import pytest

from interp.stored.output import Output, ending, with_cuts

MARKED = Output("m", "Hm.</think>Yes", finished="stop")
APART = Output("a", "Yes", thought="Hm.", finished="stop")
BARE = Output("b", "Yes, at first sight. But wait", finished="stop")


@pytest.mark.parametrize(
    ("others", "text", "finished", "cut"),
    [
        ([], BARE.text, "length", False),
        ([MARKED], BARE.text, "length", True),
        ([MARKED], BARE.text, None, True),
        ([MARKED], "Yes", "stop", False),
        ([APART], BARE.text, "length", True),
        ([APART], "Yes", None, False),
        ([BARE], BARE.text, None, False),
        ([], "", "length", True),
        ([], "<think>Yes, it", "length", True),
        ([], "<think>Yes, it", "stop", True),
        ([], "Hm.</think>Yes, be", "length", False),
    ],
)
def test_a_cut_thought_is_told_by_the_file(others, text, finished, cut):
    own = with_cuts([*others, Output("x", text, finished=finished)])[-1]
    assert own.cut is cut
    assert own.answer == ("" if cut else text.rpartition("</think>")[2])


def test_a_prompt_that_opens_the_thought_tells_that_it_is_cut():
    for prompt, cut in (("Q?<think>\n", True), ("Q?<think></think>\n", False), ("Q?", False)):
        (own,) = with_cuts([Output("x", "Yes, it", prompt=prompt, rendered=True)])
        assert own.cut is cut
    chosen = Output("x", "", prompt="Q?<think>\n", rendered=True, chosen="Yes")
    assert with_cuts([chosen])[0].answer == "Yes"


def test_a_thought_apart_that_has_no_text_is_cut():
    (own,) = with_cuts([Output("x", "", thought="Hm", finished="length")])
    assert own.cut
    failed = Output("x", "", error="busy", finished="length")
    assert not with_cuts([failed])[0].cut


def test_tools_name_the_largest_length_differently():
    names = ("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length")
    assert {ending(name) for name in names} == {"length"}
    assert (ending("stop"), ending("end_turn"), ending(None)) == ("stop", "stop", None)
