import json
from importlib.util import find_spec

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

import interp
from interp.errors import UserError
from tests.support.tiny import make_tiny, save
from tests.support.tokenizers import byte_level

IDS = torch.arange(5, 25)[None]
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False}
FP8 = {"quant_method": "fp8", "weight_block_size": [16, 16]}
needs_bitsandbytes = pytest.mark.skipif(
    find_spec("bitsandbytes") is None, reason="needs bitsandbytes"
)


def load(place, **options):
    return interp.load_model(str(place), **{"device": "cpu", **options})


def refused(words, place, **options):
    """The message, which has these words, with which a model is refused."""
    with pytest.raises(UserError, match=words) as error:
        load(place, **options)
    return str(error.value)


@pytest.fixture(scope="session")
def saved_once(tmp_path_factory):
    return save(make_tiny("llama", byte_level()), tmp_path_factory.mktemp("saved"))


@pytest.fixture
def saved(saved_once, tmp_path):
    """A folder with a tiny Llama model that a test may damage."""
    for file in saved_once.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


@pytest.fixture(scope="session")
def wide(tmp_path_factory):
    """A folder with a tiny Llama whose rows are whole blocks of 4-bit weights."""
    model = make_tiny("llama", byte_level(), hidden_size=64, intermediate_size=128, head_dim=16)
    return save(model, tmp_path_factory.mktemp("wide"))


def save_quantized(wide, folder, **settings):
    hf = AutoModelForCausalLM.from_pretrained(
        wide, device_map="cpu", quantization_config=BitsAndBytesConfig(**settings)
    )
    hf.save_pretrained(folder)
    byte_level().save_pretrained(folder)


def configure(folder, file="config.json", **settings):
    """Change settings in a file of a model; None takes one out."""
    place = folder / file
    config = (json.loads(place.read_text()) if place.exists() else {}) | settings
    place.unlink(missing_ok=True)  # which may be a link to a file of others
    place.write_text(json.dumps({key: own for key, own in config.items() if own is not None}))


def rewrite(folder, change):
    """Replace the tensors of a folder by what a function makes of them."""
    file = folder / "model.safetensors"
    save_file(change(load_file(file)), file, metadata={"format": "pt"})


def in_fp8(weights, size=16, only=""):
    """Projections in blocks of 8-bit floats, as DeepSeek-V3 is published."""
    stored = {}
    for name, weight in weights.items():
        if "proj" not in name or only not in name:
            stored[name] = weight
            continue
        rows, columns = weight.shape
        blocks = weight.view(rows // size, size, columns // size, size)
        scale = blocks.abs().amax((1, 3)) / 448
        stored[name] = (
            (blocks / scale[:, None, :, None]).view(rows, columns).to(torch.float8_e4m3fn)
        )
        stored[f"{name}_scale_inv"] = scale
    return stored
