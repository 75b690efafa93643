"""A model within `measuring`: its state, and errors of its forward passes."""

import pytest
import torch
from torch._inductor.exc import InductorError, InvalidCxxCompiler

from interp.errors import UserError
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level


@pytest.fixture(scope="module")
def model():
    return make_tiny("llama", byte_level())


def test_it_shows_itself_in_one_line(model):
    shown = repr(model)
    assert shown.startswith(f"Model({model.name!r}, {type(model.hf).__name__}, ")
    assert shown.endswith(f"{model.hf.num_parameters():,} parameters, float32 on cpu)")


def test_training_mode_and_gradients_come_back(model):
    model.hf.train()
    with model.measuring():
        assert not model.hf.training
        assert not any(parameter.requires_grad for parameter in model.hf.parameters())
    assert model.hf.training
    assert all(parameter.requires_grad for parameter in model.hf.parameters())


def test_a_kernel_that_cannot_be_compiled_is_told_in_words(model):
    uncompiled = InductorError(InvalidCxxCompiler(), None)
    with (
        pytest.raises(UserError, match="give another --attn-implementation, such as sdpa"),
        model.measuring(),
    ):
        raise uncompiled
    assert all(parameter.requires_grad for parameter in model.hf.parameters())


def test_other_errors_stay_what_they_are(model):
    with pytest.raises(torch.OutOfMemoryError), model.measuring():
        raise torch.OutOfMemoryError("CUDA out of memory")
