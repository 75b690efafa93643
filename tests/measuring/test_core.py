"""Measurements: memory that ends, prompts that cannot be read, whatever is measured."""

import dataclasses
import re

import pytest
import torch

import interp
from interp.errors import UserError
from interp.measurements.specs import Attribute, Evaluate, Patch, SoftScore, Steer
from interp.measuring.core import bind
from interp.patching.pairs import in_pairs
from interp.prompts.answers import AnswerOption, Choice
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level


def error_of_a_cpu():
    """What PyTorch raises where a CPU's memory ends: no address space holds a pebibyte."""
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**50, dtype=torch.uint8)
    return caught.value


def fits(measurement, *, prompts, error=None):
    """The measurement on a device on which no more than so many prompts of a batch fit."""
    sizes = []

    def measure_batch(batch):
        sizes.append(len(batch.prompts))
        if len(batch.prompts) > prompts:
            raise error or torch.OutOfMemoryError("CUDA out of memory")
        return measurement.measure_batch(batch)

    return dataclasses.replace(measurement, measure_batch=measure_batch), sizes


@pytest.mark.quick(1)
@pytest.mark.parametrize("error", [None, error_of_a_cpu()])
def test_memory_that_ends_halves_the_batches_and_goes_on(prompts, error):
    whole = bind(Evaluate(), tiny_model("llama"))(prompts)
    measurement, sizes = fits(bind(Evaluate(), tiny_model("llama")), prompts=5, error=error)
    told = []
    halved = measurement(prompts, done=told.append)
    assert [row["prompt_id"] for row in halved["answers"]] == [prompt.id for prompt in prompts]
    for one, other in zip(
        whole["option_probabilities"], halved["option_probabilities"], strict=True
    ):
        assert one["probability"] == pytest.approx(other["probability"], abs=1e-6)
    assert max(sizes) > 5
    assert sum(told) == len(prompts)
    assert measurement.budget.shrunk
    # The smaller budget stays: what did not fit is not tried again.
    sizes.clear()
    measurement(prompts)
    assert max(sizes) <= 5


def test_another_error_is_not_taken_for_a_lack_of_memory(prompts):
    measurement, _ = fits(
        bind(Evaluate(), tiny_model("llama")), prompts=0, error=RuntimeError("a bug")
    )
    with pytest.raises(RuntimeError, match="a bug"):
        measurement(prompts[:2])


def test_a_prompt_that_does_not_fit_alone_fails_alone(prompts):
    measurement, _ = fits(bind(Evaluate(), tiny_model("llama")), prompts=0)
    measured = measurement.attempt(prompts[:3])
    assert set(measured.errors) == {prompt.id for prompt in prompts[:3]}
    assert all(re.search(r"\(1, \d+\).*\bcpu", row["error"]) for row in measured.rows["answers"])
    with pytest.raises(UserError, match=r"\(\d+, \d+\).*\bcpu.*--device-map\b"):
        measurement(prompts[:3])


def test_a_prompt_that_cannot_be_read_fails_alone(prompts):
    model = tiny_model("llama")
    long = dataclasses.replace(prompts[1], text=prompts[1].text + " word" * 1000)
    measured = bind(Attribute(), model).attempt([prompts[0], long, prompts[2]])
    assert list(measured.errors) == [long.id]
    assert measured.units == 3
    answers = measured.rows["answers"]
    assert [row["prompt_id"] for row in answers] == [prompts[0].id, long.id, prompts[2].id]
    assert answers[1]["correct"] is None
    assert re.search(r"\b3100\b.*tiny llama.*\b512\b", answers[1]["error"])
    # Segment scores have one row per method, and none for prompts that were not measured.
    assert {row["prompt_id"] for row in measured.rows["segment_scores"]} == {
        prompts[0].id,
        prompts[2].id,
    }
    with pytest.raises(UserError, match=r"\b3100\b.*tiny llama.*\b512\b"):
        bind(Attribute(), model)([prompts[0], long])


UNREADABLE = Choice.between(AnswerOption("Yes", ("Yes",)), AnswerOption("No", (" ",)), gold=True)
"""Answers of which one encodes to nothing."""


@pytest.mark.parametrize("measuring", [Evaluate(), SoftScore(), Attribute()])
def test_a_prompt_whose_answers_cannot_be_read_fails_alone(measuring, prompts):
    model, some = tiny_model("llama"), list(prompts[:6])
    some[2] = dataclasses.replace(some[2], answer=UNREADABLE)
    told = []
    measured = bind(measuring, model).attempt(some, done=told.append)
    assert list(measured.errors) == [some[2].id]
    assert sum(told) == len(some)
    answers = measured.rows["answers"]
    assert [row["prompt_id"] for row in answers] == [prompt.id for prompt in some]
    assert re.search(r"'No'.*tiny llama.*' '", answers[2]["error"])
    whole = bind(measuring, model)([*some[:2], *some[3:]])["option_probabilities"]
    for one, other in zip(whole, measured.rows["option_probabilities"], strict=True):
        assert one["prompt_id"] == other["prompt_id"]
        assert one["probability"] == pytest.approx(other["probability"], abs=1e-6)
    with pytest.raises(UserError, match=r"'No'.*tiny llama.*' '"):
        bind(measuring, model)(some)


def test_a_prompt_whose_segment_has_a_reserved_name_fails_alone(prompts):
    some = list(prompts[:4])
    segments = {**some[1].segments, "template": (0, 5)}
    some[1] = dataclasses.replace(some[1], segments=segments)
    measured = bind(Attribute(), tiny_model("llama")).attempt(some)
    assert list(measured.errors) == [some[1].id]
    assert "'template'" in measured.errors[some[1].id]
    assert [row["error"] != "" for row in measured.rows["answers"]] == [False, True, False, False]


def test_a_prompt_without_a_premise_is_measured_like_any_other(prompts):
    some = list(prompts[:2])
    segments = {name: span for name, span in some[1].segments.items() if name != "premise1"}
    some[1] = dataclasses.replace(some[1], segments=segments)
    rows = bind(Attribute(), tiny_model("llama"))(some)["segment_scores"]
    names = {(row["prompt_id"], row["segment"]) for row in rows}
    assert (some[0].id, "premise1") in names
    assert (some[1].id, "premise1") not in names
    assert (some[1].id, "premise2") in names


def test_a_pair_whose_answers_cannot_be_read_fails_alone():
    pairs = list(in_pairs(some_prompts(2)))
    pairs[:2] = [dataclasses.replace(prompt, answer=UNREADABLE) for prompt in pairs[:2]]
    measured = bind(Patch(), tiny_model("llama")).attempt(pairs)
    assert list(measured.errors) == [pairs[0].pair_id]
    assert [row["error"] != "" for row in measured.rows["pairs"]] == [True, False]


def test_a_pair_of_which_one_prompt_cannot_be_read_fails_as_one():
    model = tiny_model("llama")
    pairs = list(in_pairs(some_prompts(2)))
    pairs[1] = dataclasses.replace(pairs[1], text=pairs[1].text + " word" * 1000)
    measured = bind(Patch(), model).attempt(pairs)
    assert list(measured.errors) == [pairs[0].pair_id]
    assert measured.units == 2
    failed, good = measured.rows["pairs"]
    assert (failed["pair_id"], failed["direction"]) == (pairs[0].pair_id, "denoising")
    assert re.search(r"\b3100\b.*tiny llama.*\b512\b", failed["error"])
    assert (good["pair_id"], good["error"]) == (pairs[2].pair_id, "")
    assert {row["pair_id"] for row in measured.rows["patches"]} == {pairs[2].pair_id}


def test_both_sides_of_a_pair_that_fail_are_one_failure():
    model = make_tiny("llama", byte_level())
    with torch.no_grad():
        model.hf.model.layers[-1].mlp.down_proj.weight.fill_(float("nan"))
    pairs = list(in_pairs(some_prompts(2)))
    measured = bind(Steer(directions=("logit",)), model).attempt(pairs)
    assert measured.units == 2
    assert len(measured.rows["steered"]) == 4
    assert [*measured.errors] == [pairs[0].pair_id, pairs[2].pair_id]


@pytest.mark.slow
def test_a_cell_that_does_not_fit_fails_its_pair_alone(monkeypatch):
    from interp.patching.exact import Grid

    def never(*arguments, **options):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Grid, "_run", never)
    with pytest.raises(interp.UserError, match=r"\(\d+, \d+\).*\bcpu.*--device-map\b"):
        interp.patch(tiny_model("llama"), some_prompts(1))
