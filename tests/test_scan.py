import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import interp
from interp.scan import marked, scanned

PROMPT = "{If it rains, it is wet.} {premise: It rains.} Is it wet? Answer Yes or No."

WORDS = st.text(alphabet="abc ,.?", min_size=1).filter(str.strip)


@pytest.fixture(scope="module")
def model():
    return interp.load_model("organism/llama-shallow", device="cpu")


def test_braces_mark_segments():
    text, segments = marked(PROMPT)
    assert text == "If it rains, it is wet. It rains. Is it wet? Answer Yes or No."
    found = {name: text[slice(*span)] for name, span in segments.items()}
    assert found == {"part1": "If it rains, it is wet.", "premise": "It rains."}


def test_marks_of_files_work_too():
    assert marked("<rule>It rains.</rule> Is it wet?")[1] == {"rule": (0, 9)}


@given(st.lists(WORDS, min_size=1, max_size=4), WORDS)
def test_segments_are_what_stood_in_the_braces(parts, between):
    text, segments = marked(between.join("{" + part + "}" for part in parts))
    assert [text[slice(*span)] for span in segments.values()] == [part.strip() for part in parts]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Is it wet?", "Is it wet"),
        (" ", "empty"),
        ("{It {rains}.} Is it wet?", r"'{' in '{It {rains}.} Is it wet\?'"),
        ("{It rains.} Is it} wet? {Yes.}", "'}' in '{It rains.} Is it} wet"),
        ("{It rains. Is it wet?", "'{'"),
        ("{} Is it wet?", "part1"),
        ("{a: It rains.} {a: It snows.}", r"\ba\b"),
        ("{template: It rains.} Is it wet?", "template"),
    ],
)
def test_a_text_that_is_not_marked_correctly(text, fact):
    with pytest.raises(interp.UserError, match=fact):
        marked(text)


def test_effects_are_those_of_plain_passes(model):
    report = scanned(model, PROMPT, ["Yes", "No"])
    (effects,) = (item.frame for item in report.sections[-1].items)
    text, segments = marked(PROMPT)

    def log_odds(text):
        turns = [{"role": "user", "content": text}]
        ids = model.tokenizer.apply_chat_template(
            turns, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )["input_ids"]
        with torch.no_grad():
            logits = model.hf(ids).logits[0, -1].double()
        yes, no = (model.tokenizer.encode(word, add_special_tokens=False) for word in ("Yes", "No"))
        return float(logits[yes[0]] - logits[no[0]])

    assert effects["segment"].tolist() == list(segments)
    without = ["It rains. Is it wet? Answer Yes or No.", "If it rains, it is wet. Is it wet? "]
    without[1] += "Answer Yes or No."
    expected = [log_odds(text) - log_odds(own) for own in without]
    np.testing.assert_allclose(effects["effect"], expected, atol=1e-5)


def test_the_last_layer_reads_the_answer(model):
    report = scanned(model, PROMPT, ["Yes", "No"])
    (table,) = (item.frame for item in report.items if item.name == "lens")
    (effects,) = (item.frame for item in report.sections[-1].items)
    last = table[(table["group"] == "last") & (table["layer"] == table["layer"].max())]
    assert set(last["method"]) == {"own", "logit"}
    np.testing.assert_allclose(last["difference"], effects["log_odds"].iloc[0], atol=1e-4)


def test_the_page_says_first_that_nothing_is_tested(model):
    glance = scanned(model, PROMPT, ["Yes", "No"]).glance
    assert [caution.kind for caution in glance.cautions] == ["not tested"]


def test_options_that_the_model_does_not_say(model, capsys):
    glance = scanned(model, PROMPT, ["in", "not"]).glance
    kinds = [caution.kind for caution in glance.cautions]
    assert kinds == ["replies outside the options", "not tested"]
    # Nobody said which option is correct, so nothing is told about right, wrong or accuracy.
    told = capsys.readouterr().err
    assert "1/1" in told
    assert not any(word in told for word in ("wrong", "accuracy"))


def test_one_option_is_too_few(model):
    with pytest.raises(interp.UserError, match="Yes"):
        scanned(model, PROMPT, ["Yes"])
