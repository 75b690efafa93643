import json

import pytest
from safetensors.torch import load_file, save_file

from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level


@pytest.fixture(scope="session")
def saved_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    model = make_tiny("llama", byte_level())
    model.hf.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def saved(saved_once, tmp_path):
    """A folder with a tiny Llama model that a test may damage."""
    for file in saved_once.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def configure(folder, **settings):
    """Change settings in config.json; None takes one out."""
    file = folder / "config.json"
    config = json.loads(file.read_text()) | settings
    file.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


def rewrite(folder, change):
    """Replace the tensors of a folder by what a function makes of them."""
    file = folder / "model.safetensors"
    save_file(change(load_file(file)), file, metadata={"format": "pt"})
