"""Two ways of reading a model that thinks, with templates that behave as those of six families."""

import dataclasses
import json
import re

import pytest

import interp
from interp.cli import main
from interp.doctor import inputs
from interp.errors import UserError
from interp.models.loading import ChatFormat, Loading
from interp.models.tokenizer import check_tokenizer
from interp.prompts.prompt import Donor, Messages
from interp.prompts.thought import Thought
from interp.reading.thoughts import after_thought
from interp.reading.tokens import token_roles, token_segments, tokenize, write_chat
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.support.prompts import some_prompts
from tests.support.thinking import FAMILIES, MAGISTRAL, QWEN3, thinking_model
from tests.support.tiny import make_tiny
from tests.support.tokenizers import PLAIN_TEMPLATE, byte_level

SAID = "Paris is in France. So it follows."
WRITE_THOUGHTS = ("Qwen3", "gpt-oss", "GLM-4.5", "Magistral")
"""Families whose templates write the thought of a last assistant turn."""


@pytest.fixture(scope="module")
def prompt():
    return some_prompts(1)[0]


def told(model, prompt, answer=None, *, generation=False, on=False, **thoughts):
    """The conversation as transformers writes it."""
    said = [{"role": "user", "content": prompt.text}]
    if answer is not None:
        said.append({"role": "assistant", "content": answer, **thoughts})
    return model.tokenizer.apply_chat_template(
        said, add_generation_prompt=generation, tokenize=False, enable_thinking=on
    )


def answer_is_read_where_written(model, prompt, whole):
    """Whether the model's next token after the read text is the first of the answer."""
    (read,) = tokenize(model, [prompt])
    before, text, rest = whole.partition(read.chat.text + read.chat.answer_opening)
    option = prompt.answer.options[0]
    assert (before, text != "") == ("", True)
    assert rest.startswith(option.forms[0])
    ids = model.tokenizer(whole, add_special_tokens=False)["input_ids"]
    written = ids[len(model.tokenizer(text, add_special_tokens=False)["input_ids"])]
    return written in AnswerTokenizer(model)(read).of[option.name]


@pytest.mark.parametrize("family", WRITE_THOUGHTS)
def test_on_reads_the_answer_where_the_own_turn_writes_it_after_a_thought(family, prompt):
    model = thinking_model(FAMILIES[family], thinking="on")
    answer = prompt.answer.options[0].forms[0]
    if family == "Magistral":
        parts = [{"type": "thinking", "thinking": [{"type": "text", "text": SAID}]}]
        whole = told(model, prompt, [*parts, {"type": "text", "text": answer}], on=True)
    else:
        whole = told(model, prompt, answer, on=True, reasoning_content=SAID, thinking=SAID)
    thought = model.thought_marks.thought(SAID)
    assert thought.text == SAID
    assert answer_is_read_where_written(model, dataclasses.replace(prompt, thought=thought), whole)
    assert model.thinking_note == ""


@pytest.mark.parametrize("family", ["SmolLM3", "DeepSeek-R1"])
def test_on_reads_the_models_own_thought_where_the_template_writes_none(family, prompt):
    model = thinking_model(FAMILIES[family], thinking="on")
    begun = told(model, prompt, generation=True, on=True)
    opens = "" if family == "DeepSeek-R1" else "<think>\n"
    generated = f"{opens}{SAID}\n</think>\n\nYes, it does."
    thought, rest = model.thought_marks.cut(generated)
    assert (thought.text, rest, thought.before) == (SAID, "Yes, it does.", opens)
    read = write_chat(dataclasses.replace(prompt, thought=thought), model).text
    assert read == f"{begun}{opens}{SAID}\n</think>\n\n"


@pytest.mark.parametrize("family", FAMILIES)
def test_sentences_are_segments_after_the_prompts_own(family, prompt):
    model = thinking_model(FAMILIES[family], thinking="on")
    thought = model.thought_marks.thought(SAID)
    (read,) = tokenize(model, [dataclasses.replace(prompt, thought=thought)])
    assert list(read.segments) == [*prompt.segments, "thought1", "thought2"]
    ids = {name: read.token_ids[slice(*span)] for name, span in read.segments.items()}
    shown = {name: model.tokenizer.decode(own).strip() for name, own in ids.items()}
    assert shown["thought1"] == "Paris is in France."
    assert shown["thought2"] == "So it follows."
    assert shown["premise2"] == prompt.segment_text("premise2").strip()
    marks = [i for i, role in enumerate(token_roles(read)) if role == "end_of_thought"]
    end = model.tokenizer.decode([read.token_ids[i] for i in marks]).strip()
    last = len(read) - 1  # the last token of all is "last"
    assert thought.after.strip().startswith(end) and max([*marks, last]) == last
    assert token_segments(read)[read.segments["thought1"][0]] == "thought1"


def test_a_thought_belongs_to_the_data_and_to_a_models_way_of_reading(prompt):
    thought = Thought("<think>\n", (SAID,), "\n</think>\n\n")
    with pytest.raises(UserError, match=r"RULEBREAKER_\S+ .*thought.*tiny llama"):
        tokenize(thinking_model(QWEN3), [dataclasses.replace(prompt, thought=thought)])
    open_end = dataclasses.replace(thought, ended=False)
    model = thinking_model(QWEN3, thinking="on")
    with pytest.raises(UserError, match=r"tiny llama.*RULEBREAKER_\S+ .*--max-new-tokens"):
        tokenize(model, [dataclasses.replace(prompt, thought=open_end)])
    with pytest.raises(UserError, match=r"tiny llama.*--thinking on\b.*--thoughts"):
        interp.evaluate(model, [prompt])
    some = dataclasses.replace(model, thoughts={"another prompt": (thought,)})
    with pytest.raises(UserError, match=f"thought on prompt {prompt.id};"):
        interp.evaluate(some, [prompt])


def test_a_counterpart_gives_the_sentences_of_its_own_first_thought(prompt):
    model = thinking_model(QWEN3, thinking="on")
    drawn = {
        prompt.id: (SAID, "One. Two."),
        "counterpart": ("London is in England. Then no. Or yes.", "Three. Four."),
    }
    texts = {"premise1": "Anne is in London."}
    names = {"counterpart": "counterpart", "without a thought": "counterpart", "Rome": "instance"}
    own = dataclasses.replace(
        prompt, donors=tuple(Donor(name, kind, texts) for name, kind in names.items())
    )
    thought = model.thought_marks.thought
    thoughts = {id_: tuple(map(thought, draws)) for id_, draws in drawn.items()}
    read = after_thought(dataclasses.replace(model, thoughts=thoughts), own)
    assert read.thought == thought(SAID)
    assert {donor.name: donor.segments for donor in read.donors} == {
        "counterpart": {**texts, "thought1": "London is in England.", "thought2": "Then no."},
        "Rome": {**texts, "thought1": "One.", "thought2": "Two."},
    }


def test_an_answer_prefix_follows_the_thought(prompt):
    model = thinking_model(QWEN3, thinking="on")
    prefixed = dataclasses.replace(prompt, messages=Messages(answer_prefix="Answer:"))
    assert write_chat(prefixed, model).text.endswith("<|im_start|>assistant\n")
    thought = model.thought_marks.thought(SAID)
    read = write_chat(dataclasses.replace(prefixed, thought=thought), model).text
    assert read.endswith(f"<think>\n{SAID}\n</think>\n\nAnswer:")


@pytest.mark.parametrize("template", [PLAIN_TEMPLATE, None])
def test_a_model_without_marks_is_refused_or_gets_a_mark(template, prompt):
    tiny = make_tiny("llama", byte_level(template))
    with pytest.raises(UserError, match=r"\b(tiny llama|m)\b.*--end-of-thought"):
        dataclasses.replace(tiny, chat=ChatFormat(thinking="on"))
    with pytest.raises(
        UserError, match=r"\b(tiny llama|m)\b.*--end-of-thought"
    ):  # without any weights
        check_tokenizer("m", tiny.tokenizer, tiny.hf.config, ChatFormat(thinking="on"))
    format_ = ChatFormat(thinking="on", end_of_thought="So the answer is")
    marks = dataclasses.replace(tiny, chat=format_).thought_marks
    thought, answer = marks.cut(" Paris is in France. So the answer is Yes")
    assert thought.sentences == ("Paris is in France. ",)
    assert thought.written == " Paris is in France. So the answer is "
    assert answer == "Yes"


def test_the_vocabulary_names_marks_that_the_template_does_not():
    model = thinking_model(PLAIN_TEMPLATE, thinking="on")
    assert model.thought_marks.end == "</think>"
    # But a model is not thought to think because its vocabulary has a mark.
    assert thinking_model(PLAIN_TEMPLATE).thinking_note == ""


def test_template_options_reach_the_template(prompt):
    low = thinking_model(FAMILIES["gpt-oss"], options=(("reasoning_effort", "low"),))
    assert "Reasoning: low" in write_chat(prompt, low).text
    unread = thinking_model(QWEN3, options=(("reasoning_effort", "low"),))
    with pytest.raises(UserError, match="option 'reasoning_effort'"):
        write_chat(prompt, unread)
    effort = "{{ '<think>\n' if reasoning_effort != 'none' else '' }}"
    switched = thinking_model(QWEN3.partition("{%- if add_gen")[0] + "<a>" + effort)
    assert switched.chat_frame.after.endswith("<a>") and switched.thinking_note == ""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"template_option": ("enable_thinking=true",)},
            r"template_option.*--thinking on\b",
        ),
        ({"template_option": ("effort",)}, r"'effort'.*\bKEY=VALUE"),
        ({"template_option": ("messages=[]",)}, r"template_option.*conversation"),
        ({"template_option": ("a=1",), "chat_template": False}, r"chat template.*\boff"),
        ({"template_date": "2020-01-01", "chat_template": False}, r"chat template.*\boff"),
        ({"end_of_thought": "</think>"}, r"'</think>'.*thinking"),
        ({"thinking": "maybe"}, "thinking"),
    ],
)
def test_contradictory_options_are_refused(given, message):
    with pytest.raises(UserError, match=message):
        Loading(**given)


def test_values_of_template_options_are_json_or_texts():
    loading = Loading(template_option=("a=1", "b=true", "c=low", 'd="2"'))
    assert loading.chat().options == (("a", 1), ("b", True), ("c", "low"), ("d", "2"))


def test_the_way_of_reading_is_recorded_and_part_of_the_run(tmp_path, capsys):
    model = thinking_model(QWEN3)
    model.hf.save_pretrained(tmp_path / "model")
    model.tokenizer.save_pretrained(tmp_path / "model")
    out = tmp_path / "run"
    given = ["--model", str(tmp_path / "model"), "--device", "cpu", "--limit", "1"]
    command = ["generate", *given, "--max-new-tokens", "2", "--out", str(out)]
    assert main(command) == 0
    (record,) = (json.loads(file.read_text()) for file in (out / "models").glob("*.json"))
    assert (record["chat"]["thinking"], record["chat"]["end_of_thought"]) == ("off", None)
    assert main([*command, "--thinking", "on"]) == 2
    assert re.search("thinking 'off' .*'on'; .*--out", capsys.readouterr().err)


def test_doctor_runs_with_thinking_on(tmp_path, capsys):
    model = thinking_model(QWEN3)
    model.hf.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    given = ["--model", str(tmp_path), "--device", "cpu", "--limit", "1"]
    assert main(["doctor", *given, "--thinking", "on"]) == 0
    shown = capsys.readouterr().out
    assert "thinking: on: a thought begins with" in shown and "cost: not estimated" in shown


def test_doctor_shows_both_ways(prompt):
    off = thinking_model(MAGISTRAL)
    (found,) = (f for f in inputs(off, tokenize(off, [prompt])) if f.about == "thinking")
    assert re.fullmatch(r"off: .* '\[/INST\]\[THINK\]\[/THINK\]'", found.found)
    on = thinking_model(QWEN3, thinking="on")
    (found,) = (f for f in inputs(on, tokenize(on, [prompt])) if f.about == "thinking")
    assert re.fullmatch(r"on: .*'<think>\\n' .*'</think>'", found.found)
