import pytest

import interp
from interp.prompts.mixing import donors_of, with_donors
from interp_experiments.rulebreakers.instances import generate
from interp_experiments.rulebreakers.prompts import to_prompt
from interp_experiments.rulebreakers.templates import PHRASINGS, VERBS


def test_a_prompt_is_the_message_of_section_4_2_and_a_pair_has_both_golds():
    instance = generate(0)[22000]
    prompt = to_prompt(instance, PHRASINGS[1])
    assert prompt.text == (
        f"Premises: {instance.premise1} {instance.premise2}\n"
        f"Conclusion: {instance.conclusion}\n"
        "Do the Premises entail the Conclusion? Answer Yes or No only."
    )
    assert prompt.answer.gold == "No"
    assert prompt.side == "rulebreaker"
    all_prompts = interp.load_prompts(limit="all")
    assert len(all_prompts) == 256_000
    rulebreaker, counterpart = all_prompts[7], all_prompts[17]
    assert rulebreaker.pair_id == counterpart.pair_id
    assert (rulebreaker.answer.gold, counterpart.answer.gold) == ("False", "True")
    assert rulebreaker.answer.options[0].forms == ("True", "TRUE", "true")


@pytest.fixture(scope="module")
def given():
    return list(with_donors(interp.load_prompts(limit=48), count=8))


def test_donors_are_the_same_sentences_about_other_entities(given):
    for prompt in given:
        a, b = prompt.factors["entity_a"], prompt.factors["entity_b"]
        donors = donors_of(prompt, "instance")
        assert len(donors) >= 3
        assert len({donor.name for donor in donors}) == len(donors)
        for donor in donors:
            other_a, other_b = donor.name.split("/")
            assert other_a != a
            assert other_b != b
            assert tuple(donor.segments) == ("premise1", "premise2", "conclusion")
            for name, text in donor.segments.items():
                own = prompt.segment_text(name)
                assert prompt.factors["name"] in text
                assert text != own
                if prompt.factors["category"] == "cities":
                    new = {a: other_a, b: other_b}
                    for old in sorted(new, key=len, reverse=True):  # "Mexico City" before "Mexico"
                        own = own.replace(old, "{" + new[old][::-1] + "}")
                    for other in new.values():
                        own = own.replace("{" + other[::-1] + "}", other)
                    assert text == own


def test_entities_are_those_that_take_the_verb_on_this_side(given):
    facts = {(i.entity_a, i.entity_b): i for i in generate(0) if not i.label}
    for prompt in given:
        for donor in donors_of(prompt, "instance"):
            fact = facts.get(tuple(donor.name.split("/")))
            assert (fact is not None) == (prompt.side == "rulebreaker")
            assert fact is None or prompt.factors["verb"] in VERBS[fact.category]


def test_both_sides_of_a_pair_have_donors_of_the_same_b(given):
    geographical = [p for p in given if p.factors["entity_group"] == "geographical"]
    sides = {}
    for prompt in geographical:
        names = [donor.name.split("/")[1] for donor in donors_of(prompt, "instance")]
        sides.setdefault(prompt.pair_id, []).append(set(names))
    # A donor whose A is the prompt's own is passed over on one side.
    assert all(len(one & other) >= 6 for one, other in sides.values())
