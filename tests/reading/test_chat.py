import dataclasses
import resource
import signal
import time

import pytest

from interp.errors import UserError
from interp.measurements.specs import Evaluate
from interp.measuring.core import bind
from interp.models import chat_template
from interp.models.loading import ChatFormat
from interp.prompts.prompt import Demonstration, Messages
from interp.prompts.systems import load_prompts
from interp.reading.tokens import tokenize, write_chat
from interp.runs.identity import model_record
from interp.runs.shards import cut
from interp_experiments.rulebreakers.instances import Instance
from interp_experiments.rulebreakers.prompts import to_prompt
from interp_experiments.rulebreakers.templates import PHRASINGS, render
from tests.support.tiny import make_tiny
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
    chat = write_chat(goose, make_tiny("llama", in_style_of(family)))
    assert chat.text == EXPECTED[family]
    assert chat.text[chat.message_start :].startswith(goose.text)
    assert chat.templated


def with_template(template, /, **chat):
    tokenizer = in_style_of("llama")
    tokenizer.chat_template = template
    model = make_tiny("llama", tokenizer)
    return dataclasses.replace(model, chat=ChatFormat(**chat))


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{ messages[0]['content'] | upper }}", r"chat template.*segments"),
        ("{{ messages[0]['content'] ~ messages[0]['content'] }}", r"chat template.*segments"),
        (
            "{{ range(10000) | random }} {{ messages[0]['content'] }}",
            r"chat template.*reproducible",
        ),
        (
            "{{ raise_exception('system\nprompt required') }}",
            r"chat template.*user message: system prompt",
        ),
        ("{{ '\\ud800' }}{{ messages[0]['content'] }}", "a lone surrogate"),
        ("{{ 'x' * 200000 }}{{ messages[0]['content'] }}", r"\b200,000 characters.*\b100,000\b"),
        ("{{ 9 ** 99999999 }}{{ messages[0]['content'] }}", r"chat template.*power"),
        (
            "{{ 'x' * 9_999_999_999 }}{{ messages[0]['content'] }}",
            r"\b9_999_999_999\b.*\b1,000,000\b",
        ),
    ],
)
def test_a_template_whose_messages_cannot_be_located_is_refused(template, problem, goose):
    with pytest.raises(UserError, match=problem):
        write_chat(goose, with_template(template))


def test_a_template_that_takes_for_ever_is_refused(goose, monkeypatch):
    monkeypatch.setattr(chat_template, "RENDER_SECONDS", 0.2)
    loops = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    start = time.process_time()
    with pytest.raises(UserError, match=r"\b0\.2 s\b"):
        write_chat(goose, with_template(loops + "{{ messages[0]['content'] }}"))
    assert time.process_time() - start < 5
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)


def test_a_template_that_was_stopped_is_not_tried_again(goose, monkeypatch):
    monkeypatch.setattr(chat_template, "RENDER_SECONDS", 0.2)
    squares = "{% set n = namespace(x=3) %}{% for i in range(60) %}{% set n.x = n.x * n.x %}"
    model = with_template(squares + "{% endfor %}{{ messages[0]['content'] }}")
    for _ in range(5):
        start = time.process_time()
        with pytest.raises(UserError, match=r"\b0\.2 s\b"):
            write_chat(goose, model)
    assert time.process_time() - start < 0.1


MESSAGE = "{{ messages[0]['content'] }}"
DOUBLING = (
    "{% set n = namespace(x=START) %}"
    "{% for i in range(40) %}{% set n.x = n.x PLUS n.x %}{% endfor %}"
)
GREEDY = {
    "replace": "{% set x='a'*100000 %}{% for i in range(100) %}"
    "{% set y=x.replace('a',x) %}{% endfor %}",
    "width": "{{'%999999999d'|format(1)}}",
    "strings": DOUBLING.replace("START", "'ab'").replace("PLUS", "~"),
    "lists": DOUBLING.replace("START", "[1]").replace("PLUS", "+"),
}


@pytest.mark.parametrize("template", GREEDY)
def test_a_template_that_takes_all_memory_is_refused(template, goose):
    before = resource.getrlimit(resource.RLIMIT_AS)
    start, held = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UserError, match=r"268,435,456 bytes"):
        write_chat(goose, with_template(GREEDY[template] + MESSAGE))
    assert time.process_time() - start < 6
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held
    assert taken < 2**19  # KiB
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_the_check_of_a_template_has_a_limit_too(goose, monkeypatch):
    def spin(template):
        end = time.process_time() + 1.0
        while time.process_time() < end:
            pass

    monkeypatch.setattr(chat_template, "RENDER_SECONDS", 0.2)
    monkeypatch.setattr(chat_template, "_check_operations", spin)
    with pytest.raises(UserError, match=r"0\.2 s"):
        write_chat(goose, with_template(MESSAGE))


def test_a_long_word_is_searched_for_marks_of_thoughts_in_time(goose):
    model = with_template(f"{{# <{'think' * 20_000} #}}{MESSAGE}")
    start = time.process_time()
    assert model.thought_marks is None
    assert time.process_time() - start < 3


def test_a_template_that_treats_one_message_otherwise_fails_that_prompt(goose):
    template = "{{ messages[0]['content'] | replace('goose', 'duck') }}"
    with pytest.raises(UserError, match=rf"chat template.*message.*{goose.id}\b"):
        write_chat(goose, with_template(template))


@pytest.mark.parametrize("text", ["{}\n", " {}", "{} \t"])
def test_white_space_that_a_template_removes_is_told(text, goose):
    model = with_template("{{ messages[0]['content'] | trim }}")
    padded = dataclasses.replace(goose, text=text.format(goose.text), segments={}, roles={})
    with pytest.raises(UserError, match=rf"{goose.id}\b.*white space.*removes"):
        write_chat(padded, model)
    write_chat(goose, model)


def test_the_message_is_found_where_the_template_writes_its_words_too(goose):
    short = dataclasses.replace(goose, text="user", segments={"all": (0, 4)}, roles={})
    model = make_tiny("llama", in_style_of("llama"))
    chat = write_chat(short, model)
    assert chat.text[: chat.message_start].count("user") == 1
    assert chat.text[chat.message_start :].startswith("user<|eot_id|>")
    tokenized = tokenize(model, [short])[0]
    assert tokenized.segments["all"][0] > 3


DATED = "{{ strftime_now('%d %b %Y, %-d/%m/%y %A') }}|{{ messages[0]['content'] }}"
LLAMA32 = (
    "{%- if not date_string is defined %}{%- set date_string = 'none' %}{%- endif %}"
    "{{ date_string }}|{{ messages[0]['content'] }}"
)


def test_templates_are_told_a_date_that_stays(goose):
    assert write_chat(goose, with_template(DATED)).text.partition("|")[0] == (
        "26 Jul 2024, 26/07/24 Friday"
    )
    assert write_chat(goose, with_template(LLAMA32)).text.startswith("26 Jul 2024|")
    later = with_template(DATED, date="2026-02-03")
    assert write_chat(goose, later).text.startswith("03 Feb 2026, 3/02/26 Tuesday|")
    assert write_chat(goose, with_template(LLAMA32, date="2026-02-03")).text.startswith("03 Feb")
    with pytest.raises(UserError, match=r"'yesterday'.* date .*\d{4}-\d\d-\d\d"):
        ChatFormat(date="yesterday")


@pytest.mark.parametrize("first", ["", "\n", "  \n ", "  {% if true %}\n{% endif %}"])
def test_the_date_changes_nothing_of_what_templates_write(first, goose):
    template = first + "{% for m in messages %}\n<u>{{ m['content'] }}\n{% endfor %}"
    model = with_template(template)
    message = [{"role": "user", "content": goose.text}]
    expected = model.tokenizer.apply_chat_template(message, tokenize=False)
    assert write_chat(goose, model).text == expected


SYSTEM = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"


def test_a_system_prompt_stands_before_the_message(goose):
    assert write_chat(goose, with_template(SYSTEM)).text == f"<user>{goose.text}"
    chat = write_chat(goose, with_template(SYSTEM, system="Think."))
    assert chat.text == f"<system>Think.<user>{goose.text}"
    assert chat.text[chat.message_start :] == goose.text
    chat = write_chat(goose, with_template(SYSTEM, template=False))
    assert (chat.text, chat.templated) == (goose.text, False)


def test_a_system_prompt_that_nothing_writes_is_refused(goose):
    with pytest.raises(UserError, match=r"chat template.*system prompt; .*system prompt"):
        write_chat(goose, with_template("{{ messages[-1]['content'] }}", system="Think."))


@pytest.mark.parametrize("template", [True, False])
def test_without_a_template_a_system_prompt_is_a_paragraph_as_that_of_a_row(goose, template):
    plain = make_tiny("llama", byte_level(None if template else SYSTEM))
    shown = (Demonstration("Is grass green?", "Yes"),)
    for messages in (Messages(), Messages(demonstrations=shown)):
        of_option, of_row = (
            write_chat(
                dataclasses.replace(goose, messages=dataclasses.replace(messages, system=own)),
                dataclasses.replace(plain, chat=ChatFormat(template=template, system=system)),
            )
            for own, system in ((None, "Think."), ("Think.", None))
        )
        assert of_option == of_row
        assert of_option.text.startswith("Think.\n\n")
        start, end = of_option.around["system_prompt"]
        assert of_option.text[start:end] == "Think."
    nothing = dataclasses.replace(plain, chat=ChatFormat(template=template, system=" "))
    assert write_chat(goose, nothing).text == goose.text
    both = dataclasses.replace(goose, messages=Messages("Think."))
    with pytest.raises(UserError, match=r"RULEBREAKER_\S+ .*system message.*system prompt"):
        write_chat(both, dataclasses.replace(plain, chat=ChatFormat(system="Guess.")))


def test_what_the_template_writes_is_part_of_a_shards_id(tmp_path):
    prompts = load_prompts(limit=2)

    def ids(after="", /, **chat):
        model = with_template(DATED + after, **chat)
        measurement = bind(Evaluate(), model)
        held = {"origin": {}, "data_hash": "0" * 64, "shards": ["0" * 32], "shard_prompts": 2}
        record = model_record(measurement, **held).chat
        assert record["date"] == model.chat.date
        assert record["before"] == model.chat_frame.before
        return [shard.id for shard in cut(measurement, prompts, tmp_path)]

    assert ids() == ids()
    assert len({*ids(), *ids("<a>"), *ids(date="2024-07-27"), *ids(template=False)}) == 4
