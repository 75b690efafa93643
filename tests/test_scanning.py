import numpy as np
import pytest
import torch

import interp
from interp.prompts.own.braces import marked

PROMPT = "{If it rains, it is wet.} {premise: It rains.} Is it wet? Answer Yes or No."


@pytest.fixture(scope="module")
def model():
    return interp.load_model("organism/llama-shallow", device="cpu")


def test_effects_are_those_of_plain_passes(model):
    report = interp.scan(model, PROMPT, ["Yes", "No"])
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
    report = interp.scan(model, PROMPT, ["Yes", "No"])
    (table,) = (item.frame for item in report.items if item.name == "lens")
    (effects,) = (item.frame for item in report.sections[-1].items)
    last = table[(table["group"] == "last") & (table["layer"] == table["layer"].max())]
    assert set(last["method"]) == {"own", "logit"}
    np.testing.assert_allclose(last["difference"], effects["log_odds"].iloc[0], atol=1e-4)


def test_the_page_says_first_that_nothing_is_tested(model):
    glance = interp.scan(model, PROMPT, ["Yes", "No"]).glance
    assert [caution.kind for caution in glance.cautions] == ["not tested"]


def test_options_that_the_model_does_not_say(model, capsys):
    glance = interp.scan(model, PROMPT, ["in", "not"]).glance
    kinds = [caution.kind for caution in glance.cautions]
    assert kinds == ["replies outside the options", "not tested"]
    # Nobody said which option is correct, so nothing is told about right, wrong or accuracy.
    told = capsys.readouterr().err
    assert "1/1" in told
    assert not any(word in told for word in ("wrong", "accuracy"))


def test_options_with_bars_and_yes_or_no_by_default(model):
    shown = [interp.scan(model, PROMPT), interp.scan(model, PROMPT, "Yes|No")]
    first, second = (report.items[0].frame for report in shown)
    assert first["option"].tolist() == ["Yes", "No"]
    assert first.equals(second)
