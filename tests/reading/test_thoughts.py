"""Templates that know thoughts: left out where there is a switch, told of where there is none.

The templates are of the layouts of published families, in short.
"""

import copy
import re

import pytest

import interp
from interp.cli import main
from interp.doctor import loaded
from interp.reading.tokens import tokenize, write_chat
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny
from tests.support.tokenizers import PLAIN_TEMPLATE, byte_level

TURN = "<u>{{ m.role }}\n{{ m.content }}</u>\n"


def family(generation, *, user=TURN, assistant=TURN, first=""):
    """A template of turns, the last of which the model is to write."""
    turn = f"{{% if m.role == 'assistant' %}}{assistant}{{% else %}}{user}{{% endif %}}"
    return (
        f"{first}{{% for m in messages %}}{turn}{{% endfor %}}"
        f"{{% if add_generation_prompt %}}{generation}{{% endif %}}"
    )


OFF = "{% if enable_thinking is defined and not enable_thinking %}"
EMPTY = "<think>\n\n</think>\n\n"
ANSWERED = f"<a>\n{EMPTY}{{{{ m.content }}}}</u>\n"
SWITCHED = {
    # qwen3: nothing by default; the model opens its thought itself
    "writes an empty thought": family(f"<a>\n{OFF}{EMPTY}{{% endif %}}", assistant=ANSWERED),
    # qwen3.5
    "opens or closes one": family(
        f"<a>\n{OFF}{EMPTY}{{% else %}}<think>\n{{% endif %}}", assistant=ANSWERED
    ),
    # smollm3
    "says so in the system message": family(
        "<a>\n{% if not enable_thinking %}<think>\n\n</think>\n{% endif %}",
        assistant="<a>\n{% if not enable_thinking %}<think>\n\n</think>\n{% endif %}"
        "{{ m.content }}</u>\n",
        first="{% if enable_thinking is not defined %}{% set enable_thinking = true %}{% endif %}"
        "<u>system\nReasoning: {{ '/think' if enable_thinking else '/no_think' }}</u>\n",
    ),
    # glm-4.5
    "says so behind the message": family(
        "<a>{{ '\n<think></think>' if enable_thinking is false }}",
        user=f"<u>{{{{ m.content }}}}{OFF}/nothink{{% endif %}}",
        assistant="<a>\n<think></think>\n{{ m.content }}",
    ),
    # deepseek-v3.1
    "is called thinking": family(
        "<a>{{ '<think>' if thinking else '</think>' }}", assistant="<a></think>{{ m.content }}</u>"
    ),
    # granite 3.3
    "writes nothing in the turn": family(
        "<a>\n",
        assistant="<a>\n{{ m.content }}</u>\n",
        first="{% if thinking %}<u>system\nWrite <think>...</think>.</u>\n{% endif %}",
    ),
}
WITHOUT_SWITCH = {
    # deepseek-r1
    "opens a thought": (
        family("<a><think>\n", assistant="<a>{{ m.content }}</u>"),
        "\n</think>\n\n",
    ),
    # its first distillations
    "drops thoughts that were": (
        family("<a>", assistant="<a>{{ m.content.split('</think>')[-1] }}</u>"),
        EMPTY,
    ),
    # gpt-oss
    "answers in a channel": (
        family("<a>", assistant="<a><|channel|>final<|message|>{{ m.content }}</u>"),
        "<|channel|>final<|message|>",
    ),
    # magistral
    "asks for a thought first": (
        family("<a>", first="<u>Draft your thoughts: [THINK]...[/THINK]</u>\n"),
        "[THINK][/THINK]",
    ),
    # a switch that does not close what is opened
    "opens one in any case": (
        family("<a><think>\n", first="{% if enable_thinking %}<u>Think.</u>{% endif %}"),
        "\n</think>\n\n",
    ),
}


def with_template(template):
    tokenizer = copy.deepcopy(byte_level(None))
    tokenizer.chat_template = template
    return make_tiny("llama", tokenizer)


@pytest.fixture(scope="module")
def prompt():
    return some_prompts(1)[0]


@pytest.mark.parametrize("template", SWITCHED)
def test_a_template_with_a_switch_leaves_thoughts_out(template, prompt):
    model = with_template(SWITCHED[template])
    asked = {"role": "user", "content": prompt.text}
    off = {"enable_thinking": False, "thinking": False, "tokenize": False}
    chat = write_chat(prompt, model)
    assert chat.text == model.tokenizer.apply_chat_template(
        [asked], add_generation_prompt=True, **off
    )
    assert model.thinking_note == ""


@pytest.mark.parametrize("template", SWITCHED)
def test_the_answer_is_read_where_the_templates_own_turn_writes_it(template, prompt):
    model = with_template(SWITCHED[template])
    option = prompt.answer.options[0]
    said = [
        {"role": "user", "content": prompt.text},
        {"role": "assistant", "content": option.forms[0]},
    ]
    told = model.tokenizer.apply_chat_template(
        said, tokenize=False, enable_thinking=False, thinking=False
    )
    (tokenized,) = tokenize(model, [prompt])
    before, written, rest = told.partition(tokenized.chat.text)
    assert (before, written) == ("", tokenized.chat.text)
    assert rest.lstrip().startswith(option.forms[0])
    own = model.tokenizer(told, add_special_tokens=False, return_offsets_mapping=True)
    starts = [start for start, _ in own["offset_mapping"]]
    place = starts.index(told.rindex(option.forms[0]))
    assert own["input_ids"][place] in AnswerTokenizer(model)(tokenized).of[option.name]


@pytest.mark.parametrize("template", WITHOUT_SWITCH)
def test_a_model_that_may_think_is_told_of_when_it_is_loaded(template, tmp_path, capsys):
    text, direct = WITHOUT_SWITCH[template]
    model = with_template(text)
    assert model.chat_frame.direct == direct
    model.hf.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    found = interp.load_model(str(tmp_path), device="cpu")
    told = "may think before it answers, and its chat template has no switch"
    assert told in capsys.readouterr().err
    assert any(told in finding.note for finding in loaded(found))
    plain = interp.load_model(str(tmp_path), device="cpu", chat_template=False)
    assert plain.thinking_note == capsys.readouterr().err == ""


def test_every_command_tells_it(tmp_path, capsys):
    model = with_template(WITHOUT_SWITCH["opens a thought"][0])
    model.hf.save_pretrained(tmp_path / "model")
    model.tokenizer.save_pretrained(tmp_path / "model")
    given = ["--model", str(tmp_path / "model"), "--device", "cpu", "--limit", "1"]
    for command in (["evaluate", *given, "--out", str(tmp_path / "run")], ["doctor", *given]):
        assert main(command) == 0
        captured = capsys.readouterr()
        assert captured.err.count("may think before it answers") == 1
    assert "may think before it answers" in re.sub(r"\s+", " ", captured.out)


@pytest.mark.parametrize("template", [PLAIN_TEMPLATE, None, family("<a>\n")])
def test_nothing_is_said_of_templates_that_know_no_thoughts(template):
    assert with_template(template).thinking_note == ""
