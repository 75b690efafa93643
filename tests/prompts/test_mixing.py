from dataclasses import replace

import pytest

import interp
from interp.errors import UserError
from interp.prompts.mixing import donors_of, mixed, with_donors
from interp.prompts.prompt import Donor, Prompt, compose
from interp.prompts.prompt_set import prompt_record
from tests.support.answers import yes_no
from tests.support.systems import three_options

PARTS = [
    (None, "Given: "),
    ("first", "Ann runs."),
    ("second", "Bob sits."),
    (None, "\n"),
    ("question", "Does Ann run?"),
]
DONOR = Donor("Eve", "instance", {"first": "Eve is asleep.", "second": "Kim is."})


def a_prompt(**changes):
    text, segments = compose(PARTS)
    roles = {"who": (7, 10), "asked": (text.rindex("Ann"), text.rindex("Ann") + 3)}
    fields = {"roles": roles, "donors": (DONOR,), **changes}
    return Prompt("1", text, segments, yes_no(), "p", "side", {}, **fields)


@pytest.mark.parametrize(
    ("kept", "text"),
    [
        ((), "Given: Eve is asleep.Kim is.\nDoes Ann run?"),
        (("first",), "Given: Ann runs.Kim is.\nDoes Ann run?"),
        (("second",), "Given: Eve is asleep.Bob sits.\nDoes Ann run?"),
        (("first", "second"), "Given: Ann runs.Bob sits.\nDoes Ann run?"),
    ],
)
def test_spans_move_with_what_is_replaced(kept, text):
    found = mixed(a_prompt(), DONOR, kept=kept)
    assert found.text == text
    own = {name: text for name, text in PARTS if name}
    own |= {name: text for name, text in DONOR.segments.items() if name not in kept}
    assert {name: found.segment_text(name) for name in own} == own
    roles = {name: text[slice(*span)] for name, span in found.roles.items()}
    assert roles == ({"who": "Ann"} if "first" in kept else {}) | {"asked": "Ann"}
    assert found.donors == ()


@pytest.mark.parametrize(("kept", "who"), [((), "Eve"), (("first",), "Ann")])
def test_a_donors_roles_take_the_place_of_those_that_it_replaces(kept, who):
    donor = replace(DONOR, roles={"first": {"who": (0, 3)}, "second": {"other": (0, 3)}})
    found = mixed(a_prompt(), donor, kept=kept)
    roles = {name: found.text[slice(*span)] for name, span in found.roles.items()}
    assert roles == {"who": who, "other": "Kim", "asked": "Ann"}


@pytest.mark.slow
@pytest.mark.parametrize("system", ["rulebreakers", "logical-forms"])
def test_a_prompt_with_all_of_a_donors_segments_has_the_roles_of_its_own(system):
    for prompt in with_donors(interp.load_prompts(system, limit=4), count=1):
        donor, counterpart = prompt.donors
        for given in (mixed(prompt, donor), mixed(prompt, counterpart)):
            assert set(given.roles) == set(prompt.roles)
        given = mixed(prompt, donor)
        named = {given.text[slice(*span)] for span in given.roles.values()}
        if system == "rulebreakers":
            assert named == set(donor.name.split("/"))


def test_segments_can_be_chosen_and_those_that_overlap_or_lack_are_refused():
    (narrow,) = with_donors([a_prompt()], count=8, segments=["second"])
    assert narrow.donors[0].segments == {"second": "Kim is."}
    with pytest.raises(UserError, match=r"\b1\b.*segment 'third'.*first, second"):
        with_donors([a_prompt()], count=8, segments=["third"])
    prompt = a_prompt(donors=())
    with pytest.raises(UserError, match=r"prompt 1.*donors"):
        donors_of(prompt, "instance")
    with pytest.raises(UserError, match=r"prompts.*three-options.*donors"):
        with_donors(three_options.prompts(seed=0, data=None), count=8)
    odd = Prompt("1", prompt.text, {"first": (0, 9), "second": (8, 12)}, yes_no(), "p", "side", {})
    with pytest.raises(UserError, match=r"donors replace overlapping segments.*prompt 1\b"):
        mixed(odd, DONOR)
    with pytest.raises(UserError, match=r"\b1\b.*segment 'second'"):
        mixed(Prompt("1", "text", {"first": (0, 4)}, yes_no(), "p", "side", {}), DONOR)


def test_donors_are_part_of_the_data_and_nothing_changes_without():
    assert prompt_record(a_prompt()) != prompt_record(a_prompt(donors=()))
    assert '"Eve"' in prompt_record(a_prompt())
    prompts = interp.load_prompts(limit=2)
    assert prompts.content_hash() != with_donors(prompts, count=2).content_hash()
    assert with_donors(prompts, count=2).content_hash() == (
        with_donors(interp.load_prompts(limit=2), count=2).content_hash()
    )


@pytest.mark.quick(1)
@pytest.mark.parametrize("system", ["rulebreakers", "logical-forms"])
def test_donors_depend_on_neither_limit_nor_place_nor_number(system):
    few, many = (interp.load_prompts(system, limit=limit) for limit in (2, 5))
    given = {prompt.id: prompt.donors for prompt in with_donors(many, count=4)}
    assert all(len(donors) == 5 for donors in given.values())
    for prompt in with_donors(few, count=4):
        assert prompt.donors == given[prompt.id]
    # A single pair, as a shard may hold it, counted less.
    for prompt in with_donors(many[6:8], count=3):
        *instances, counterpart = prompt.donors
        assert tuple(instances) == given[prompt.id][:3]
        assert counterpart == given[prompt.id][4]
    other = with_donors(interp.load_prompts(system, limit=5, seed=1), count=4)
    assert not any(prompt.donors in given.values() for prompt in other)


@pytest.mark.slow
def test_the_other_side_gives_what_it_has():
    one, other = with_donors(interp.load_prompts(limit=1), count=1)
    (donor,) = donors_of(one, "counterpart")
    assert donor.name == other.id
    assert mixed(one, donor).text == other.text
    alone = with_donors(interp.load_prompts(limit=1)[:1], count=1)[0]
    assert donors_of(alone, "counterpart") == ()
    assert donors_of(alone, "instance") == donors_of(one, "instance")
