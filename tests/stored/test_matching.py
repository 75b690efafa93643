"""Stored texts find their prompts by id and text; what does not fit is counted and named."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from interp.stored.matching import Matcher
from interp.stored.output import Output
from tests.support.prompts import some_prompts

PROMPTS = some_prompts(3)
FIRST, SECOND = PROMPTS[:2]


def match(*outputs, prompts=PROMPTS):
    return Matcher(prompts).match(outputs)


def test_an_id_must_have_its_text():
    found = match(
        Output("a", "1", prompt_id=FIRST.id),
        Output("b", "2", prompt_id=SECOND.id, prompt=SECOND.text + "\n"),
        Output("c", "3", prompt_id=PROMPTS[2].id, prompt=FIRST.text),
        Output("d", "4", prompt_id=PROMPTS[3].id, prompt=f"Q: {PROMPTS[3].text} A:", rendered=True),
        Output("e", "5", prompt_id=PROMPTS[4].id, prompt="Q: something else", rendered=True),
        Output("f", "6", prompt_id="nobody's"),
    )
    texts = {id_: own[0].text for id_, own in found.outputs.items()}
    assert texts == {FIRST.id: "1", SECOND.id: "2", PROMPTS[3].id: "4"}
    assert [line[0] for line in found.wrong["differing"]] == ["c", "e"]
    assert found.wrong["strange"] == ['f (id "nobody\'s")']
    assert found.lacking == tuple(PROMPTS[n].id for n in (2, 4, 5))
    assert len(found.problems()) == 3


def test_a_text_without_an_id_is_found_if_one_prompt_has_it():
    twin = replace(SECOND, id="twin")
    found = match(
        Output("a", "1", prompt=f" {FIRST.text}"),
        Output("b", "2", prompt=SECOND.text),
        Output("c", "3", prompt_id=SECOND.id, prompt=SECOND.text),
        Output("d", "4", prompt_id=PROMPTS[3].text.replace("\n", "\r\n")),
        prompts=[*PROMPTS, twin],
    )
    texts = {id_: own[0].text for id_, own in found.outputs.items()}
    assert texts == {FIRST.id: "1", SECOND.id: "3", PROMPTS[3].id: "4"}
    assert [line[0] for line in found.wrong["unclear"]] == ["b"]


def test_the_last_prompt_in_what_a_model_read_is_its_prompt():
    read = f"user\n{SECOND.text}\nassistant\nYes\nuser\n{FIRST.text}\nassistant\n"
    (own,) = match(Output("a", "1", prompt=read, rendered=True)).outputs
    assert own == FIRST.id


def test_the_longest_of_prompts_that_end_alike_is_taken():
    longer = replace(FIRST, id="longer", text=f"Consider this. {FIRST.text}")
    for read in (longer.text, f"<user>{longer.text}<end>"):
        (own,) = match(
            Output("a", "1", prompt=read, rendered=True), prompts=[FIRST, longer]
        ).outputs
        assert own == "longer"


def test_draws_are_in_order_and_failures_last():
    found = match(
        Output("a", "second", prompt_id=FIRST.id, draw=1),
        Output("b", "", prompt_id=FIRST.id, error="the request failed: busy"),
        Output("c", "first", prompt_id=FIRST.id, draw=0),
    )
    assert [own.text for own in found.outputs[FIRST.id]] == ["first", "second", ""]
    assert found.draws == 2
    assert found.wrong["failed"] == ["b (busy; repeated with success)"]


@given(before=st.text(max_size=20), after=st.text(max_size=20))
def test_every_prompt_is_found_within_one_template(before, after):
    reads = [Output(p.id, "", prompt=before + p.text + after, rendered=True) for p in PROMPTS]
    found = match(*reads)
    assert {id_: own[0].where for id_, own in found.outputs.items()} == {
        p.id: p.id for p in PROMPTS
    }


def test_many_texts_of_other_prompts_take_no_search_each():
    matcher = Matcher(PROMPTS)
    strange = [Output(f"{n}", "", prompt=f"{n}?", rendered=True) for n in range(1000)]
    assert len(matcher.match(strange).wrong["strange"]) == 1000
    assert matcher._searched == 64
