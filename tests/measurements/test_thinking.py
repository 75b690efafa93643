"""Thoughts that models with a script generate, and everything that reads them."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

import interp
from interp.cli import main
from interp.errors import UserError
from interp.reading.tokens import tokenize
from interp.runs.folder import RunFolder
from tests.support.prompts import some_prompts
from tests.support.thinking import DEEPSEEK_R1, GPT_OSS, MAGISTRAL, QWEN3, follow, thinking_model

BEGUN = "Ċ"
"""The last token of the generation prompt of Qwen3 and DeepSeek-R1, as the tokenizer spells it."""
SCRIPT = {
    BEGUN: ["<think>"],
    "<think>": ["Paris", "London"],
    "Paris": ["."],
    "London": ["."],
    ".": ["</think>"],
    "</think>": ["Yes"],
    "Yes": ["</s>"],
}


def scripted(template, script, **chat):
    model = thinking_model(template, thinking="on", **chat)
    words = {word for own in script.values() for word in own} - model.tokenizer.get_vocab().keys()
    model.tokenizer.add_tokens(sorted(words))
    model.hf.resize_token_embeddings(len(model.tokenizer), mean_resizing=False)
    follow(model, script)
    return model


@pytest.fixture(scope="module")
def model():
    return scripted(QWEN3, SCRIPT)


@pytest.fixture(scope="module")
def prompts():
    return [prompt for prompt in some_prompts(6) if prompt.answer.options[0].name == "Yes"][:6]


def test_thoughts_are_cut_at_the_mark(model, prompts):
    found = interp.generate(model, prompts, max_new_tokens=12)
    thoughts = found.table("thoughts")
    assert list(thoughts["prompt_id"]) == [prompt.id for prompt in prompts]
    for row in thoughts.itertuples():
        assert row.before == "<think>"
        assert list(row.sentences) in (["Paris."], ["London."])
        assert (row.after, row.finished, row.forced) == ("</think>\n\n", "marker", False)
        assert (row.tokens, row.same_tokens, row.draw) == (4, True, 0)
        assert model.tokenizer.decode(row.token_ids) == f"<think>{row.sentences[0]}</think>"
        assert (row.completion, row.answer, row.outcome) == ("Yes", "Yes", "answered")
    assert (found.completions["completion"] == "Yes").all()
    assert (found.completions["tokens"] == 5).all()


def test_draws_follow_the_models_distribution(model, prompts):
    spec = {"max_new_tokens": 12, "temperature": 1.0}
    thoughts = interp.generate(model, prompts, draws=40, **spec).table("thoughts")
    counts = Counter(sentences[0] for sentences in thoughts["sentences"])
    assert sum(counts.values()) == 240 and set(counts) == {"Paris.", "London."}
    assert abs(counts["Paris."] - 120) < 4 * np.sqrt(60)  # four standard deviations of Binomial
    few = interp.generate(model, prompts[2:4], draws=3, **spec).table("thoughts")
    same = thoughts.merge(few, on=["prompt_id", "draw"])
    assert len(same) == 6  # neither batch nor number of draws changes a draw
    assert [*map(list, same["sentences_x"])] == [*map(list, same["sentences_y"])]


def test_the_answer_is_read_where_the_model_itself_writes_it(model, prompts):
    found = interp.generate(model, prompts, max_new_tokens=12)
    thinking = interp.with_thoughts(model, found.table("thoughts"))
    scores = interp.evaluate(thinking, prompts)
    assert (scores.answers["error"] == "").all()
    thought = thinking.thoughts[prompts[0].id][0]
    (read,) = tokenize(thinking, [dataclasses.replace(prompts[0], thought=thought)])
    text = model.tokenizer.apply_chat_template(
        [{"role": "user", "content": prompts[0].text}], add_generation_prompt=True, tokenize=False
    )
    assert read.chat.text == f"{text}<think>{thought.text}</think>\n\n"


ENDLESS = {**SCRIPT, ".": ["Paris"]}
ENDED = {**SCRIPT, ".": ["</s>"]}


def test_a_thought_without_an_end_is_a_class_of_its_own(prompts):
    model = scripted(QWEN3, ENDLESS)
    found = interp.generate(model, prompts, max_new_tokens=12)
    thoughts = found.table("thoughts")
    assert set(thoughts["finished"]) == {"length"} and not thoughts["forced"].any()
    assert set(thoughts["outcome"]) == {"unparsed"} and set(thoughts["after"]) == {""}
    shown = found.derived()["thought_table"]
    assert shown[["thoughts", "ended", "too_long"]].to_numpy().tolist() == [[6, 0, 6]]
    with pytest.raises(UserError, match=r"has no end, .* --force-end"):
        interp.evaluate(interp.with_thoughts(model, thoughts), prompts)
    eos = interp.generate(scripted(QWEN3, ENDED), prompts, max_new_tokens=12).table("thoughts")
    assert set(eos["finished"]) == {"eos"}


def test_an_end_can_be_forced_and_is_recorded(prompts):
    endless = {"[/INST]": ["[THINK]"], "[THINK]": ["Paris"], "Paris": ["."], ".": ["Paris"]}
    model = scripted(MAGISTRAL, {**endless, "[/THINK]": ["No"], "No": ["</s>"]})
    found = interp.generate(model, prompts, max_new_tokens=12, force_end=True)
    thoughts = found.table("thoughts")
    assert thoughts["forced"].all() and set(thoughts["finished"]) == {"length"}
    assert set(thoughts["after"]) == {"[/THINK]"} and set(thoughts["tokens"]) == {12}
    # The answer that is generated there is the one that is read there.
    scores = interp.evaluate(interp.with_thoughts(model, thoughts), prompts)
    assert set(scores.answers["answer"]) == set(thoughts["answer"]) == {"No"}
    assert found.derived()["thought_table"]["forced"].tolist() == [len(prompts)]


def test_the_template_may_open_the_thought_or_answers_have_a_channel(prompts):
    opened = {key: own for key, own in SCRIPT.items() if key != BEGUN} | {BEGUN: ["Paris"]}
    thoughts = interp.generate(scripted(DEEPSEEK_R1, opened), prompts).table("thoughts")
    assert set(thoughts["before"]) == {""} and set(thoughts["after"]) == {"</think>"}
    marks = thinking_model(GPT_OSS, thinking="on").thought_marks
    thought, answer = marks.cut(
        "<|channel|>analysis<|message|>Paris is in France.<|end|><|start|>assistant<|channel|>final"
        "<|message|>Yes"
    )
    assert (thought.text, answer) == ("Paris is in France.", "Yes")
    assert thought.before == "<|channel|>analysis<|message|>"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 2}, "would all be the same text"),
        ({"stop": ("x",)}, "would end thoughts too"),
    ],
)
def test_options_that_contradict_thinking_are_refused(model, prompts, options, message):
    with pytest.raises(UserError, match=message):
        interp.generate(model, prompts, **options)


def test_options_of_thoughts_need_thinking(prompts):
    off = thinking_model(QWEN3)
    for options in ({"draws": 2, "temperature": 1.0}, {"force_end": True}):
        with pytest.raises(UserError, match="turn thinking on"):
            interp.generate(off, prompts, **options)
    with pytest.raises(UserError, match="reads answers without them"):
        interp.with_thoughts(off, interp.generate(off, prompts).completions)


def test_commands_generate_resume_and_read_thoughts(model, tmp_path, capsys):
    model.hf.save_pretrained(tmp_path / "model")
    model.tokenizer.save_pretrained(tmp_path / "model")
    given = ["--model", str(tmp_path / "model"), "--device", "cpu", "--limit", "40"]
    given += ["--thinking", "on"]
    out = tmp_path / "thoughts"
    command = ["generate", *given, "--draws", "2", "--temperature", "1", "--max-new-tokens", "12"]
    command += ["--out", str(out)]
    assert main(command) == 0
    run = RunFolder.read(out)
    name = run.record.models[0]
    shards = run.done(name)
    assert len(shards) == 2
    before = run.table("thoughts")
    for file in shards[0].iterdir():
        file.unlink()
    shards[0].rmdir()
    assert main(command) == 0
    assert "thought_table" in {file.stem for file in out.glob("*.csv")}
    assert RunFolder.read(out).table("thoughts").equals(before)
    read = ["--thoughts", str(out), "--out", str(tmp_path / "answers")]
    assert main(["evaluate", *given, *read]) == 0
    assert RunFolder.read(tmp_path / "answers").table("answers")["error"].eq("").all()
    capsys.readouterr()
    assert main(["evaluate", *given, "--out", str(tmp_path / "none")]) == 2
    assert "has no thoughts yet" in capsys.readouterr().err
    other = ["--out", str(tmp_path / "other")]
    assert main(["evaluate", *given, "--thoughts", str(tmp_path / "answers"), *other]) == 2
    assert "holds no thoughts" in capsys.readouterr().err


def test_other_thoughts_are_other_shards(model, prompts, tmp_path):
    from interp.measurements.core import bind
    from interp.measurements.specs import Evaluate
    from interp.prompts.prompt_set import PromptSet
    from interp.runs.shards import cut

    marks = model.thought_marks
    ids = {
        cut(
            bind(Evaluate(), dataclasses.replace(model, thoughts={prompts[0].id: (thought,)})),
            PromptSet.of(prompts),
            tmp_path,
        )[0].id
        for thought in (marks.thought("Paris."), marks.thought("London."))
    }
    assert len(ids) == 2
