"""Models whose weights, or what they compute, are not finite."""

import math
import re

import pytest
import torch

import interp
from interp.cli import main
from interp.doctor import numbers
from interp.errors import UserError
from interp.measurements.specs import Evaluate
from interp.measuring.core import bind, collect
from interp.prompts.mixing import with_donors
from interp.reading.readers import check_finite
from interp.reading.tokens import tokenize
from interp.results.result import errors_by_model
from tests.support.broken import broken_by
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

PROMPTS = list(with_donors(some_prompts(1), count=2))
SECOND = "model.layers.1.mlp.down_proj.weight"


def damaged(number=math.nan):
    """A model with such a number in its second layer."""
    model = make_tiny("qwen3", byte_level())
    with torch.no_grad():
        model.hf.model.layers[1].mlp.down_proj.weight[0, 0] = number
    return model


CALLS = {
    "interp.evaluate": interp.evaluate,
    "attribute": interp.attribute,
    "patch": interp.patch,
    "gim": lambda model, prompts: interp.attribute(model, prompts, methods=("gim",)),
    "frozen_norms": lambda model, prompts: interp.attribute(
        model, prompts, methods=("frozen_norms",)
    ),
    "evaluate": lambda model, prompts: interp.run(Evaluate(), models=model, prompts=prompts),
    "effects": lambda model, prompts: collect(bind(interp.measurement("effects"), model), prompts),
    "generate": lambda model, prompts: interp.run(
        interp.measurement("generate", max_new_tokens=2), models=model, prompts=prompts
    ),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_every_call_names_the_first_weights_that_are_not_finite(call, number):
    with pytest.raises(UserError, match=rf"weights.*{SECOND}"):
        CALLS[call](damaged(number), PROMPTS)


def test_where_weights_are_finite_the_first_module_is_named():
    model = make_tiny("llama", byte_level())
    with torch.no_grad():
        model.hf.model.layers[1].mlp.up_proj.weight.fill_(3e38)
    first = r"finite.*model\.layers\.1\.mlp\.up_proj \(Linear\)"
    with pytest.raises(UserError, match=first):
        interp.evaluate(model, PROMPTS)


def test_what_float16_cannot_hold_is_said_to_be_its_fault():
    model = make_tiny("llama", byte_level(), dtype=torch.float16)
    with torch.no_grad():
        model.hf.model.layers[0].mlp.up_proj.weight.fill_(6e4)
    with pytest.raises(UserError, match=r"\b65,504\b.*--dtype bfloat16\b.*float32\b"):
        check_finite(model, tokenize(model, PROMPTS[:1])[0])


def test_a_prompt_that_fails_alone_keeps_its_row():
    first = PROMPTS[0]
    model, broken = broken_by(first)
    answers = interp.evaluate(model, [broken, first]).answers
    assert answers["error"].tolist() == ["non-finite", ""]
    assert answers["predicted_probability"].isna().tolist() == [True, False]
    assert not answers["correct"][0]
    with pytest.raises(UserError, match=r"all prompts .*llama .*embed_tokens"):
        interp.evaluate(model, [broken])


@pytest.mark.parametrize("method", ["gim", "frozen_norms"])
def test_frozen_norms_are_found_from_a_prompt_that_is_finite(method):
    first, second = PROMPTS[:2]
    model, broken = broken_by(first, second)
    both = interp.attribute(model, [broken, first], methods=(method,)).segment_scores
    alone = interp.attribute(model, [first], methods=(method,)).segment_scores
    assert (both.loc[both["prompt_id"] == "broken", "error"] == "non-finite").all()
    kept = both.loc[both["prompt_id"] == first.id, "score"].to_numpy()
    assert kept == pytest.approx(alone["score"].to_numpy(), rel=1e-4)


def test_the_command_line_and_the_doctor_name_the_weights(tmp_path, capsys):
    model = damaged()
    model.hf.save_pretrained(tmp_path / "m")
    model.tokenizer.save_pretrained(tmp_path / "m")
    options = ["--model", str(tmp_path / "m"), "--device", "cpu", "--limit", "4"]
    assert main(["evaluate", *options, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert re.search(r"\b8 of 8\b", told)
    assert SECOND in told
    assert main(["doctor", *options]) == 2
    told = capsys.readouterr().err
    assert re.search(rf"{SECOND}; .*\bcopy\b", told)
    assert "dtype" not in told


def test_doctor_names_them_for_a_model_in_memory():
    model = damaged()
    with pytest.raises(UserError, match=SECOND):
        list(numbers(model, tokenize(model, PROMPTS)))


def test_effects_count_a_prompt_that_failed_once(capsys):
    model, broken = broken_by(*PROMPTS)
    effects = bind(interp.measurement("effects"), model)
    rows = collect(effects, [broken, PROMPTS[1]])["segment_effects"]
    assert (rows["error"] == "non-finite").sum() == 2  # a row for each kind of donor
    found = errors_by_model(rows)
    assert found == {"tiny llama": {"errors": {"non-finite": 1}}}
    assert "1 prompt stopped" in capsys.readouterr().err
