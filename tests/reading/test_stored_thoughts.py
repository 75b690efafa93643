"""Thoughts in stored texts, cut as the template of the model that reads them writes them."""

import pandas as pd
import pytest

import interp
from interp.errors import UserError
from interp.reading.stored_thoughts import stored_thought
from interp.reading.thoughts import marks_of
from interp.stored.output import Output
from tests.support.prompts import some_prompts
from tests.support.stored import WRITERS, lines
from tests.support.thinking import DEEPSEEK_R1, FAMILIES, QWEN3, thinking_model

TEXT = "Let me see. Paris is in France."
PROMPTS = some_prompts(2)


@pytest.mark.parametrize("template", FAMILIES.values(), ids=FAMILIES)
def test_a_thought_held_apart_and_one_in_the_text_are_the_same(template):
    marks = marks_of(thinking_model(template, thinking="on"))
    expected = marks.thought(TEXT)
    apart = Output("a", "Yes", thought=f"\n{TEXT}\n")
    whole = Output("b", f"{expected.written}Yes")
    for own in (apart, whole):
        found = stored_thought(marks, own)
        assert found.ended and found.written == expected.written
        assert [*found.segments] == ["thought1", "thought2"]


@pytest.mark.parametrize(
    ("template", "mark"),
    [
        (DEEPSEEK_R1, "<think>\n"),  # which the prompt already has
        (QWEN3, ""),  # which the file lacks
    ],
)
def test_a_mark_is_read_once_whoever_wrote_it(template, mark):
    marks = marks_of(thinking_model(template, thinking="on"))
    assert bool(marks.begin) == (template == QWEN3)
    found = stored_thought(marks, Output("a", f"{mark}{TEXT}\n</think>\n\nYes"))
    assert found.written == marks.thought(TEXT).written
    assert stored_thought(marks, Output("a", "Yes")) is None


@pytest.mark.parametrize(
    "own",
    [
        Output("a", "", thought=TEXT, finished="length"),
        Output("a", f"<think>\n{TEXT}", finished="length"),
        Output("a", f"<think>\n{TEXT}"),
        Output("a", TEXT, finished="length"),
    ],
)
def test_a_thought_without_an_end_has_not_ended(own):
    found = stored_thought(marks_of(thinking_model(QWEN3, thinking="on")), own)
    assert not found.ended and found.text == TEXT and not found.after


@pytest.fixture(scope="module")
def model():
    return thinking_model(QWEN3, thinking="on")


def test_draws_and_what_does_not_fit(model, tmp_path):
    rows = [{"prompt": p.id, "thought": f"{TEXT} {n}", "draw": n} for p in PROMPTS for n in (1, 0)]
    rows += [{"prompt": PROMPTS[0].id, "answer": "Yes"}, {"prompt": "nobody's", "thought": "?"}]
    file = lines(tmp_path / "a.jsonl", rows)
    found = interp.with_thoughts(model, file, prompts=[*PROMPTS, PROMPTS[0]])
    for prompt in PROMPTS:
        assert [own.text for own in found.thoughts[prompt.id]] == [f"{TEXT} 0", f"{TEXT} 1"]
    about = found.thought_texts
    assert (about.file, about.texts, about.draws) == ("a.jsonl", 10, 3)
    first, second = about.problems
    assert first.startswith("1 of 10 texts match no prompt") and "nobody" in first
    assert second.startswith("1 of 10 texts have no thought")


def test_of_several_models_those_of_the_same_name_are_read(model, tmp_path):
    rows = [
        {"prompt": PROMPTS[0].id, "thought": name, "model": name} for name in ("other", model.name)
    ]
    file = lines(tmp_path / "a.jsonl", rows)
    found = interp.with_thoughts(model, file, prompts=PROMPTS)
    assert [own.text for own in found.thoughts[PROMPTS[0].id]] == [model.name]
    rows[1]["model"] = "third"
    with pytest.raises(UserError, match=r"has no texts of .*; it has texts of other, third"):
        interp.with_thoughts(model, lines(file, rows), prompts=PROMPTS)


def test_what_holds_no_thoughts_is_refused(model, tmp_path):
    file = WRITERS["batch.jsonl"](tmp_path / "a", [(prompt, "Yes", None) for prompt in PROMPTS])
    with pytest.raises(UserError, match="hold no thoughts; expected a field such as"):
        interp.with_thoughts(model, file, prompts=PROMPTS)
    with pytest.raises(UserError, match="pass the prompts"):
        interp.with_thoughts(model, file)
    with pytest.raises(UserError, match="holds no run"):
        interp.with_thoughts(model, tmp_path / "none")
    with pytest.raises(UserError, match="no thoughts of"):
        table = pd.DataFrame({"model": ["other"], "error": [""]})
        interp.with_thoughts(model, table)
