from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import interp

NAME = "SmolLM2-135M-Instruct"


def pytest_addoption(parser):
    parser.addoption("--real", metavar="FILE", help=f"{NAME} as GGUF, which make real brings")


@pytest.fixture(scope="session")
def file(request) -> Path:
    """The model's file."""
    given = request.config.getoption("--real", default=None)
    if not given:
        pytest.skip("run by make test-real")
    if not Path(given).is_file():
        pytest.skip(f"there is no {given}: make real could not bring it")
    return Path(given).resolve()


@pytest.fixture(scope="session")
def model(file) -> interp.Model:
    return interp.load_model(f"{NAME}={file}", device="cpu")


@pytest.fixture(scope="session")
def plain(file):
    """The model and its tokenizer as transformers alone loads them."""
    given = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    hf = AutoModelForCausalLM.from_pretrained(**given, dtype=torch.float32)
    return hf.eval(), AutoTokenizer.from_pretrained(**given)
