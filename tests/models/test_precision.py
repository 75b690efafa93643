"""Gradients through a large vocabulary are as exact as fp32 is, in every target and number of rows.

The reference is the same model in float64.
"""

import numpy as np
import pytest
import torch
from transformers import AutoConfig

import interp
from interp.models.precision import exact_gradients
from tests.support.prompts import some_prompts
from tests.support.tiny import CONFIGS, ids_of, random_model
from tests.support.tokenizers import byte_level

VOCABULARY = 262_144

CLOSE = 5e-6 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 6e-6
"""Largest error relative to the largest number; of the plain product of one row, it is 1e-4. Sums
in the shorter vectors of AVX2 are off by up to 5.4e-6."""


@pytest.fixture(scope="module")
def models():
    """A model in float32, and the same one in float64."""
    made = []
    for dtype in (torch.float32, torch.float64):
        shape = {**CONFIGS["llama"], **ids_of(byte_level()), "vocab_size": VOCABULARY}
        config = AutoConfig.for_model("llama", **shape, tie_word_embeddings=True)
        model = random_model(config, byte_level(), dtype=torch.float32)
        with torch.no_grad():  # a spread as in a trained model: many tokens have a share
            model.hf.lm_head.weight.mul_(0.5)
        made.append(interp.Model("large", model.hf.to(dtype), model.tokenizer))
    return made


def apart(found, expected):
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("answers", ["first", "whole"])
@pytest.mark.parametrize("target", ["predicted", "gold", "contrast", "margin"])
def test_scores_of_every_target_are_those_in_float64(models, target, answers):
    options = {"target": target, "answers": answers, "keep_tokens": True}
    for method in ("input_gradient", "input_x_gradient"):
        found, expected = (
            interp.attribute(model, some_prompts(12)[:1], methods=(method,), **options)
            .table("token_scores")["score"]
            .to_numpy(dtype=float)
            for model in models
        )
        assert apart(found, expected) < CLOSE


@pytest.fixture(params=[1, 2], ids="threads{}".format)
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    "rows", [(1, 1), (2, 1), (1, 2), (3, 1), (1, 3), (1, 4), (5, 2), (2,), (3, 3), (6,), (1, 13)]
)
def test_logits_are_unchanged_and_the_gradient_is_that_in_float64(rows):
    torch.manual_seed(0)
    head = torch.nn.Linear(32, VOCABULARY).requires_grad_(False)
    states = torch.randn(*rows, 32).mul_(3).requires_grad_()
    found = []
    for dtype in (torch.float32, torch.float64):
        own = states.detach().to(dtype).requires_grad_()
        with exact_gradients(head.to(dtype)), exact_gradients(head):
            logits = head(own)
            with torch.no_grad():
                plain = head(own)
        assert logits.shape == (*rows, VOCABULARY)
        torch.testing.assert_close(logits.detach(), plain, rtol=1e-6, atol=1e-6)
        found.append(torch.autograd.grad(logits.logsumexp(-1).sum(), own)[0].double().numpy())
    assert apart(*found) < CLOSE
    assert not head._forward_hooks
    assert not head._forward_pre_hooks
