import pytest

import interp
from interp_experiments.rulebreakers.instances import generate
from interp_experiments.rulebreakers.prompts import to_prompt
from interp_experiments.rulebreakers.templates import PHRASINGS


@pytest.fixture(scope="module")
def all_prompts():
    return interp.load_prompts(limit="all")


def test_there_are_256_000_prompts_with_unique_ids(all_prompts):
    assert len(all_prompts) == 256_000
    assert len({prompt.id for prompt in all_prompts}) == 256_000


def test_a_prompt_is_the_message_of_section_4_2():
    instance = generate(0)[22000]
    prompt = to_prompt(instance, PHRASINGS[1])
    assert prompt.text == (
        f"Premises: {instance.premise1} {instance.premise2}\n"
        f"Conclusion: {instance.conclusion}\n"
        "Do the Premises entail the Conclusion? Answer Yes or No only."
    )
    assert prompt.answer.gold == "No"
    assert prompt.side == "rulebreaker"


def test_segments_cover_their_texts(all_prompts):
    for index in range(0, len(all_prompts), 4999):
        prompt = all_prompts[index]
        assert prompt.segment_text("premise1").endswith(".")
        assert prompt.text.startswith("Premises: " + prompt.segment_text("premise1"))
        assert "Conclusion: " + prompt.segment_text("conclusion") in prompt.text
        assert prompt.text.endswith(prompt.segment_text("question"))


def test_every_pair_has_a_gold_yes_and_a_gold_no(all_prompts):
    rulebreaker, counterpart = all_prompts[7], all_prompts[17]
    assert rulebreaker.pair_id == counterpart.pair_id
    assert (rulebreaker.answer.gold, counterpart.answer.gold) == ("False", "True")
    assert rulebreaker.answer.options[0].forms == ("True", "TRUE", "true")
