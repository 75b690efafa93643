"""The same numbers on a GPU as on a CPU; skipped where there is none."""

from importlib.util import find_spec
from typing import get_args

import numpy as np
import pytest
import torch

import interp
from interp.choices import Quantization
from interp.measurements.specs import SoftScore
from interp.measuring.core import bind, collect
from interp.models.organisms import DEFAULT
from tests.support.organisms import DECODERS
from tests.support.placed import place
from tests.support.prompts import some_prompts

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("name", DECODERS)
def test_attribution_is_the_same_on_a_gpu(name, prompts):
    on_cpu = interp.attribute(interp.load_model(name, device="cpu"), prompts)
    on_gpu = interp.attribute(interp.load_model(name, device="cuda", dtype="float32"), prompts)
    assert (on_cpu.answers["answer"] == on_gpu.answers["answer"]).all()
    np.testing.assert_allclose(on_cpu.ratios()["ratio"], on_gpu.ratios()["ratio"], rtol=1e-3)


def test_half_precision_on_a_gpu_gives_the_same_answers(prompts):
    model = interp.load_model(DEFAULT, device="cuda")
    assert model.dtype == "float16"
    half = interp.attribute(model, prompts)
    full = interp.attribute(interp.load_model(DEFAULT, device="cpu"), prompts)
    assert (half.answers["answer"] == full.answers["answer"]).all()
    assert (half.to_frame()["error"] == "").all()
    np.testing.assert_allclose(half.ratios()["ratio"], full.ratios()["ratio"], rtol=0.1)


@pytest.mark.parametrize("name", ["organism/llama-deep", "organism/phi3-deep"])
def test_models_with_one_key_head_are_right_at_every_width(name):
    """Padded batches of a width of 1 modulo 32 went wrong once; see `safe_width`."""
    prompts = some_prompts(480)
    on_cpu = interp.evaluate(interp.load_model(name, device="cpu"), prompts).option_probabilities
    on_gpu = interp.load_model(name, device="cuda", dtype="float32")
    for batch_tokens in (1024, 2048, 32768):
        options = interp.evaluate(on_gpu, prompts, batch_tokens=batch_tokens).option_probabilities
        np.testing.assert_allclose(options["probability"], on_cpu["probability"], atol=1e-4)


PLACES = {
    "a layer offloaded to the CPU": lambda layer: "cpu" if layer == 1 else 0,
    "layers of two GPUs in turn": lambda layer: 0 if layer is None else layer % 2,
}


@pytest.mark.parametrize(
    "where",
    [
        "a layer offloaded to the CPU",
        pytest.param(
            "layers of two GPUs in turn",
            marks=pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs"),
        ),
    ],
)
@pytest.mark.parametrize("name", ["organism/llama-shallow", "organism/gemma2"])
def test_a_model_in_several_places_gives_the_same_numbers(name, where, tmp_path, prompts):
    on_cpu = interp.load_model(name, device="cpu")
    placed = place(interp.load_model(name, device="cpu"), PLACES[where], tmp_path)
    assert placed.device.type == "cuda"
    assert placed.identity == on_cpu.identity
    expected, got = (interp.attribute(model, prompts) for model in (on_cpu, placed))
    np.testing.assert_allclose(expected.ratios()["ratio"], got.ratios()["ratio"], rtol=1e-3)
    expected, got = (collect(bind(SoftScore(), model), prompts) for model in (on_cpu, placed))
    for table, column in (("option_probabilities", "probability"), ("soft_answers", "perplexity")):
        np.testing.assert_allclose(expected[table][column], got[table][column], rtol=1e-3)


@pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="needs bitsandbytes")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method")
@pytest.mark.parametrize("quantization", get_args(Quantization))
def test_quantized_models_are_attributed_on_a_gpu(quantization, organism, prompts):
    model = interp.load_model(DEFAULT, device="cuda", quantization=quantization)
    assert model.device.type == "cuda"
    expected, got = interp.attribute(organism, prompts), interp.attribute(model, prompts)
    assert (got.to_frame()["error"] == "").all()
    assert (got.answers["answer"] == expected.answers["answer"]).mean() > 0.9
