import logging

import pytest

import interp
from interp.errors import UserError
from interp.measurements.core import bind, collect
from interp.measurements.specs import SoftScore
from tests.support.placed import place
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import byte_level

PLACES = {
    "one layer on disk": lambda layer: "disk" if layer == 1 else "cpu",
    "all on disk": lambda layer: "disk",
    "all on the CPU, with hooks": lambda layer: "cpu",
}


@pytest.fixture(params=PLACES)
def where(request, caplog):
    # accelerate tells that some weights are offloaded.
    caplog.set_level(logging.ERROR, logger="accelerate")
    return PLACES[request.param]


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_placed_model_gives_the_same_numbers(kind, where, tmp_path, prompts):
    plain = tiny_model(kind)
    placed = place(make_tiny(kind, byte_level()), where, tmp_path)
    assert str(placed.device) == "cpu"
    expected, got = interp.attribute(plain, prompts), interp.attribute(placed, prompts)
    assert got.answers.equals(expected.answers)
    assert got.segment_scores.equals(expected.segment_scores)
    scored = interp.evaluate(placed, prompts).answers
    assert scored.equals(interp.evaluate(plain, prompts).answers)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2"])
def test_perplexity_of_a_placed_model_is_the_same(kind, where, tmp_path, prompts):
    plain = tiny_model(kind)
    placed = place(make_tiny(kind, byte_level()), where, tmp_path)
    expected, got = (collect(bind(SoftScore(), model), prompts) for model in (plain, placed))
    assert got["soft_answers"].equals(expected["soft_answers"])


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2"])
def test_identity_does_not_depend_on_the_place(kind, where, tmp_path):
    placed = place(make_tiny(kind, byte_level()), where, tmp_path)
    assert placed.identity == tiny_model(kind).identity


def test_patching_is_the_same_with_a_layer_offloaded(tmp_path, prompts):
    placed = place(make_tiny("llama", byte_level()), PLACES["one layer on disk"], tmp_path)
    pair = prompts[:2]
    expected, got = (
        interp.patch(model, pair, sites=["resid_pre", "z"])
        for model in (tiny_model("llama"), placed)
    )
    assert got.patches.equals(expected.patches)


def test_patching_refuses_an_offloaded_unembedding(tmp_path, prompts):
    placed = place(make_tiny("llama", byte_level()), PLACES["all on disk"], tmp_path)
    with pytest.raises(UserError, match="is offloaded"):
        interp.patch(placed, prompts[:2], sites=["resid_pre"])
