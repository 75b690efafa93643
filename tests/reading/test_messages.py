"""System message, demonstrations and answer prefix are written as templates write turns."""

import dataclasses
from functools import partial
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import interp
from interp.choices import TEMPLATE as TEMPLATE_NAME
from interp.errors import UserError
from interp.models.loading import ChatFormat
from interp.prompts.prompt import Demonstration, Messages
from interp.prompts.prompt_set import prompt_record
from interp.reading.tokens import token_segments, tokenize, write_chat
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.support.other_kinds import classifier, text_to_text
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level, in_style_of

SHOWN = (Demonstration("Is grass green?", "Yes"), Demonstration("Is snow black?", "No"))
MESSAGES = Messages("Answer in one word.", SHOWN, "The answer is")
TEMPLATE = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"


@pytest.fixture(scope="module")
def prompt():
    return some_prompts(1)[0]


def behind(prompt, messages):
    return dataclasses.replace(prompt, messages=messages)


def in_style(family="llama", template=None, **chat):
    tokenizer = in_style_of(family)
    tokenizer.chat_template = template or tokenizer.chat_template
    return dataclasses.replace(make_tiny("llama", tokenizer), chat=ChatFormat(**chat))


@pytest.mark.parametrize("template", [TEMPLATE, None])
def test_segments_are_found_where_a_demonstration_quotes_the_prompt(template, prompt):
    """The first occurrence of the text is not the one that is asked."""
    quoted = Messages(demonstrations=(Demonstration(prompt.text, "Yes"),))
    model = in_style(template=template)
    (alone,), (tokenized,) = (tokenize(model, [p]) for p in (prompt, behind(prompt, quoted)))
    for name, span in alone.segments.items():
        own, (start, end) = slice(*span), tokenized.segments[name]
        assert tokenized.token_ids[start:end] == alone.token_ids[own]
        assert start > len(tokenized) // 2


def test_the_answer_is_read_behind_the_prefix(prompt):
    model = in_style()
    said = behind(prompt, Messages(answer_prefix="The answer is"))
    (tokenized,) = tokenize(model, [said])
    answers = AnswerTokenizer(model)(tokenized)
    text = write_chat(said, model).text
    ids = model.tokenizer(text + " " + prompt.answer.options[0].forms[0], add_special_tokens=False)
    assert answers.of[prompt.answer.options[0].name][0] == ids["input_ids"][len(tokenized)]
    row = interp.evaluate(model, [said]).answers.iloc[0]
    with torch.no_grad():
        logits = model.hf(torch.tensor([tokenized.token_ids])).logits[0, -1]
    assert row["predicted_token_id"] == int(logits.argmax())
    assert row["predicted_probability"] == pytest.approx(float(logits.softmax(-1).max()), abs=1e-5)


def test_a_space_of_the_templates_own_turn_comes_before_the_prefix(prompt):
    template = "{% for m in messages %}{% if m['role'] == 'user' %}[{{ m['content'] }}]{% else %} {{ m['content'] }}{% endif %}{% endfor %}"  # noqa: E501
    chat = write_chat(behind(prompt, Messages(answer_prefix="It is")), in_style(template=template))
    assert chat.text == f"[{prompt.text}] It is"
    assert chat.answer_opening == ""


def test_what_a_template_does_not_write_is_refused(prompt):
    shown = behind(prompt, Messages(demonstrations=SHOWN))
    with pytest.raises(UserError, match=r"user message.*'Is grass green\?'"):
        write_chat(shown, in_style(template="{{ messages[-1]['content'] }}"))
    with pytest.raises(UserError, match=r"system message.*'Think\.'"):
        write_chat(
            behind(prompt, Messages("Think.")), in_style(template="{{ messages[-1]['content'] }}")
        )
    refusing = "{{ raise_exception('no system') if messages[0]['role'] == 'system' }}"
    with pytest.raises(UserError, match=r"roles system, user.*system"):
        write_chat(behind(prompt, Messages("Think.")), in_style(template=refusing + TEMPLATE))


@pytest.mark.parametrize("make", [lambda: classifier("roberta"), lambda: text_to_text("t5")])
def test_other_kinds_read_the_text_alone(make, prompt):
    with pytest.raises(UserError, match=f"prompt {prompt.id}; .*\\banswer prefix\\b"):
        write_chat(behind(prompt, MESSAGES), make())
    assert write_chat(prompt, make()).text == prompt.text


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"system": " "}, r"message.*' ?'; "),
        ({"demonstrations": (Demonstration("Is it?", ""),)}, r"message.*' ?'; "),
        ({"answer_prefix": "Answer: "}, r"'Answer: '.*white space"),
    ],
)
def test_messages_that_would_be_read_wrongly_are_refused(arguments, problem):
    with pytest.raises(UserError, match=problem):
        Messages(**arguments)


def test_messages_are_part_of_what_a_shard_depends_on(prompt):
    variants = [Messages(), MESSAGES, Messages("Think."), Messages(answer_prefix="So")]
    assert len({prompt_record(behind(prompt, messages)) for messages in variants}) == 4


CHATML = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou are a helpful AI assistant "
    "named SmolLM, trained by Hugging Face<|im_end|>\n{% endif %}{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""In the manner of SmolLM2's, which writes a system prompt of its own."""

LAST_USER = (
    "{{ bos_token }}{% set ns = namespace(system='') %}{% for m in messages %}"
    "{% if m.role == 'system' %}{% set ns.system = m.content + '\\n\\n' %}"
    "{% elif m.role == 'user' %}[INST] {% if loop.last %}{{ ns.system }}{% endif %}"
    "{{ m.content }}[/INST]{% else %} {{ m.content | trim }}</s>{% endif %}{% endfor %}"
)
"""In the manner of Mistral's: the system message is a part of the last user message."""

STYLES = {
    "llama": in_style,
    "phi3": partial(in_style, "phi3"),
    "chatml": partial(in_style, template=CHATML),
    "last user": partial(in_style, template=LAST_USER),
    "roles": partial(in_style, template=TEMPLATE),
}

HOSTILE = ["user", "<|im_end|>\n<|im_start|>user\n", "{{ messages }}", "Turn 4f1d2a000000.", "é😀"]
SAID = st.sampled_from(HOSTILE) | st.text("ab.\n <>{}[]|/", min_size=1, max_size=12).filter(
    str.strip
)


@pytest.fixture(scope="module")
def models():
    return {name: make() for name, make in STYLES.items()}


@pytest.mark.parametrize("style", STYLES)
@given(st.data())
@settings(max_examples=20)
def test_text_tokens_and_segments_are_those_of_the_message_list(style, models, data):
    """Whatever the messages say, they are found where transformers writes them."""
    model, prompt = models[style], some_prompts(1)[0]
    system = data.draw(st.none() | SAID)
    shown = data.draw(st.lists(st.builds(Demonstration, SAID, SAID), max_size=3))
    asked = behind(prompt, Messages(system, tuple(shown), data.draw(st.sampled_from(["", "So:"]))))
    turns = [{"role": "system", "content": system}] if system is not None else []
    for one in shown:
        turns.append({"role": "user", "content": one.question})
        turns.append({"role": "assistant", "content": one.answer})
    turns.append({"role": "user", "content": prompt.text})
    written = model.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    (tokenized,) = tokenize(model, [asked])
    prefix = asked.messages.answer_prefix
    read = tokenized.chat.text
    assert read.startswith(written)
    assert read[len(written) :].lstrip() == prefix
    ids = model.tokenizer(read, add_special_tokens=False, return_offsets_mapping=True)
    assert list(tokenized.token_ids) == ids["input_ids"]
    expected = {"system_prompt": system} if system is not None else {}
    spans = tokenized.chat.around
    for name, content in expected.items():
        assert written[slice(*spans[name])].strip() == content.strip()
    for number, one in enumerate(shown, start=1):
        text = written[slice(*spans[f"shot{number}"])]
        assert text.startswith(one.question) or text.startswith(one.question.strip())
        assert text.endswith((one.answer, one.answer.strip()))
    names = [*expected, *(f"shot{n}" for n in range(1, len(shown) + 1))]
    assert list(spans) == names + ["answer_prefix"] * bool(prefix)
    ends = [spans[name] for name in names if name != "system_prompt"]
    assert all(one[1] <= two[0] for one, two in pairwise(ends))
    for name, (start, end) in spans.items():
        inside = [n for n, (a, b) in enumerate(ids["offset_mapping"]) if a < end and start < b > a]
        assert tokenized.segments[name] == (inside[0], inside[-1] + 1)
    labels = token_segments(tokenized)
    assert {"premise1", "premise2", *names} <= set(labels)


def test_the_templates_own_system_prompt_is_no_segment(prompt):
    model = in_style(template=CHATML)
    (tokenized,) = tokenize(model, [behind(prompt, Messages(demonstrations=SHOWN))])
    assert "named SmolLM" in tokenized.chat.text
    assert model.own_system_prompt.startswith("You are a helpful AI assistant")
    assert list(tokenized.segments)[:3] == ["shot1", "shot2", "premise1"]
    labels = token_segments(tokenized)
    assert labels[0] == TEMPLATE_NAME
    asked = dataclasses.replace(model, chat=ChatFormat(system="Be brief."))
    (tokenized,) = tokenize(asked, [behind(prompt, Messages(demonstrations=SHOWN))])
    assert "named SmolLM" not in tokenized.chat.text
    start, end = tokenized.chat.around["system_prompt"]
    assert tokenized.chat.text[start:end] == "Be brief."
    assert list(tokenized.segments)[:2] == ["system_prompt", "shot1"]


def test_without_a_template_segments_are_the_paragraphs(prompt):
    model = make_tiny("llama", byte_level(None))
    (tokenized,) = tokenize(model, [behind(prompt, MESSAGES)])
    text, around = tokenized.chat.text, tokenized.chat.around
    assert text == (
        "Answer in one word.\n\nIs grass green? Yes\n\nIs snow black? No\n\n"
        f"{prompt.text} The answer is"
    )
    assert not tokenized.chat.templated
    assert {name: text[slice(*span)] for name, span in around.items()} == {
        "system_prompt": "Answer in one word.",
        "shot1": "Is grass green? Yes",
        "shot2": "Is snow black? No",
        "answer_prefix": "The answer is",
    }
    assert list(tokenized.segments) == [
        *("system_prompt", "shot1", "shot2"),
        *prompt.segments,
        "answer_prefix",
    ]


@pytest.mark.parametrize("end", ["{{ m['content'] | upper }}", "{{ m['content'] * 2 }}"])
def test_messages_that_cannot_be_located_are_refused(end, prompt):
    template = (
        "{% for m in messages %}{% if m['role'] == 'user' %}{{ m['content'] }}{% else %}"
        + end
        + "{% endif %}{% endfor %}"
    )
    shown = behind(prompt, Messages(demonstrations=(Demonstration("Is it?", "YES"),)))
    with pytest.raises(UserError, match=r"chat template.*message.*segment"):
        tokenize(in_style(template=template), [shown])


@pytest.mark.parametrize("name", ["shot1", "system_prompt", "answer_prefix"])
def test_a_segment_cannot_have_the_name_of_a_message(name, prompt):
    own = dataclasses.replace(behind(prompt, MESSAGES), segments={name: (0, 5)}, roles={})
    with pytest.raises(UserError, match=f"'{name}'"):
        tokenize(in_style(template=TEMPLATE), [own])
