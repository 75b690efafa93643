import dataclasses

import pytest

from interp.errors import UserError
from interp.prompts.chat import write_chat
from interp_experiments.rulebreakers.instances import Instance
from interp_experiments.rulebreakers.prompts import to_prompt
from interp_experiments.rulebreakers.templates import PHRASINGS, render
from tests.support.tokenizers import byte_level, in_style_of

GOOSE = "If Lv caught some kind of bird, then she did not catch a goose. Lv caught a goose."
MESSAGE = (
    f"Premises: {GOOSE}\nConclusion: Lv did not catch any kind of bird.\n"
    "Do the Premises entail the Conclusion? Answer Yes or No only."
)

# The four texts of the paper's Appendix E. Its typesetting breaks lines and adds blanks around
# special tokens and line breaks; the message itself is what Section 4.2 says.
EXPECTED = {
    "phi3": f"<|user|>\n{MESSAGE}<|end|>\n<|assistant|>\n",
    "llama": (
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n"
        f"{MESSAGE}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
    ),
    "mistral": f"<s>[INST] {MESSAGE}[/INST]",
    "gemma2": (f"<bos><start_of_turn>user\n{MESSAGE}<end_of_turn>\n<start_of_turn>model\n"),
}


@pytest.fixture(scope="module")
def goose():
    parts = {"rule": "mt", "name": "Lv", "pronoun": "she", "verb": "caught"}
    fields = render(**parts, group="bird", entity_a="bird", entity_b="goose")
    instance = Instance(
        id="RULEBREAKER_0000001_rb",
        category="bird",
        entity_a="bird",
        entity_b="goose",
        label=False,
        **parts,
        **fields._asdict(),
    )
    return to_prompt(instance, PHRASINGS[1])


@pytest.mark.parametrize("family", EXPECTED)
def test_the_texts_of_appendix_e(family, goose):
    chat = write_chat(goose, in_style_of(family))
    assert chat.text == EXPECTED[family]
    assert chat.text[chat.message_start :].startswith(goose.text)
    assert chat.templated


def test_a_model_without_a_template_gets_the_plain_message(goose):
    chat = write_chat(goose, byte_level(None))
    assert (chat.text, chat.message_start, chat.templated) == (goose.text, 0, False)
    assert chat.answer_separator == " "


def with_template(template):
    tokenizer = in_style_of("llama")
    tokenizer.chat_template = template
    return tokenizer


def test_a_template_that_changes_the_message_is_refused(goose):
    with pytest.raises(UserError, match="changes the message"):
        write_chat(goose, with_template("{{ messages[0]['content'] | upper }}"))


def test_a_template_that_fails_is_refused(goose):
    with pytest.raises(UserError, match="cannot write a single user message"):
        write_chat(goose, with_template("{{ raise_exception('system prompt required') }}"))


def test_the_message_is_found_where_the_template_repeats_part_of_it(goose):
    short = dataclasses.replace(goose, text="user", segments={"all": (0, 4)}, roles={})
    chat = write_chat(short, in_style_of("mistral"))
    assert chat.text[chat.message_start :].startswith("user")
