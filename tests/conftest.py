import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import jaxtyping
import pytest
import torch
from hypothesis import settings

import interp
from interp.models.organisms import DEFAULT
from tests.support.prompts import some_prompts

torch.set_num_threads(1)

# The same examples in every run: what is green on one machine is green on all. Search further by
# HYPOTHESIS_PROFILE=default.
settings.register_profile("reproducible", derandomize=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "reproducible"))


@pytest.fixture(scope="session")
def organism() -> interp.Model:
    return interp.load_model(DEFAULT, device="cpu")


@pytest.fixture(scope="session")
def prompts():
    """Both sides of twelve pairs, one of each verb."""
    return some_prompts(12)


@pytest.fixture(scope="session")
def attributions(organism, prompts) -> interp.Attributions:
    """Two pairs, with token scores."""
    return interp.attribute(organism, prompts[:4], keep_tokens=True)


@pytest.fixture
def unchecked_types():
    """Without the tests' type checks: wrong types arrive where they arrive for users."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
