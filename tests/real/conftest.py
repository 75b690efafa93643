from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import interp

NAME = "SmolLM2-135M-Instruct"


def pytest_addoption(parser):
    parser.addoption(
        "--real",
        metavar="FILE",
        action="append",
        default=[],
        help="a real model as GGUF, as make real brings it (several times for several)",
    )


def pytest_generate_tests(metafunc):
    """Let tests that compare numbers run for every file."""
    if "weights" in metafunc.fixturenames:
        files = [Path(given) for given in metafunc.config.getoption("--real", default=[])]
        ids = [file.stem for file in files] or ["none"]
        metafunc.parametrize("weights", files or [None], ids=ids, indirect=True, scope="session")


def present(file: Path | None) -> Path:
    if file is None:
        pytest.skip("run by make test-real")
    if not file.is_file():
        pytest.skip(f"there is no {file}: make real could not bring it")
    return file.resolve()


@pytest.fixture(scope="session")
def weights(request) -> Path:
    """The file of one model of those that are given."""
    return present(request.param)


@pytest.fixture(scope="session")
def file(request) -> Path:
    """SmolLM2's file, about which some tests know more."""
    given = map(Path, request.config.getoption("--real", default=[]))
    return present(next((own for own in given if own.name.startswith(NAME)), None))


@pytest.fixture(scope="session")
def plain(weights):
    """The model and its tokenizer as transformers alone loads them."""
    given = {"pretrained_model_name_or_path": weights.parent, "gguf_file": weights.name}
    hf = AutoModelForCausalLM.from_pretrained(**given, dtype=torch.float32)
    return hf.eval(), AutoTokenizer.from_pretrained(**given)


@pytest.fixture(scope="session")
def model(weights, plain) -> interp.Model:
    """The model as the toolkit loads it, with equal weights, which are then in memory only once."""
    found = interp.load_model(str(weights), device="cpu")
    theirs = dict(plain[0].named_parameters())
    for name, own in found.hf.named_parameters():
        assert torch.equal(own, theirs[name])
        theirs[name].data = own.data
    return found
