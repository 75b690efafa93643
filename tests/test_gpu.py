"""The same numbers on a GPU as on a CPU; skipped where there is none."""

import numpy as np
import pytest
import torch

import interp
from interp.models.organisms import DEFAULT, organism_names

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("name", organism_names())
def test_attribution_is_the_same_on_a_gpu(name, prompts):
    on_cpu = interp.attribute(interp.load_model(name, device="cpu"), prompts)
    on_gpu = interp.attribute(interp.load_model(name, device="cuda", dtype="float32"), prompts)
    assert (on_cpu.answers["answer"] == on_gpu.answers["answer"]).all()
    np.testing.assert_allclose(on_cpu.to_frame()["ratio"], on_gpu.to_frame()["ratio"], rtol=1e-3)


def test_half_precision_on_a_gpu_gives_the_same_answers(prompts):
    model = interp.load_model(DEFAULT, device="cuda")
    assert model.dtype == "float16"
    half = interp.attribute(model, prompts)
    full = interp.attribute(interp.load_model(DEFAULT, device="cpu"), prompts)
    assert (half.answers["answer"] == full.answers["answer"]).all()
    assert (half.to_frame()["error"] == "").all()
    np.testing.assert_allclose(half.to_frame()["ratio"], full.to_frame()["ratio"], rtol=0.1)
