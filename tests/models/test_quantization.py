import dataclasses
import json
import logging
from importlib.util import find_spec
from types import SimpleNamespace
from typing import get_args

import pytest
import torch
from torch import nn
from transformers import BitsAndBytesConfig, LlamaConfig

import interp
from interp.choices import Quantization
from interp.errors import UserError
from interp.jobs import Job
from interp.measurements.specs import Evaluate
from interp.models import quantization
from interp.models.kinds import CAUSAL
from interp.models.load import find_model
from interp.models.organisms import DEFAULT
from interp.models.quantization import quantization_of
from interp.runs.running import Running
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

needs_bitsandbytes = pytest.mark.skipif(
    find_spec("bitsandbytes") is None, reason="needs bitsandbytes"
)

COMPLETE = {"missing_keys": set(), "unexpected_keys": set(), "mismatched_keys": set()}


@pytest.fixture
def asked(monkeypatch):
    """What transformers is asked for when a model is loaded as if bitsandbytes were there."""
    options = {}

    def from_pretrained(location, **given):
        options.update(given)
        hf = make_tiny("llama", byte_level()).hf
        hf.resize_token_embeddings(2048)  # as many as the organism's tokenizer has ids
        return hf, COMPLETE

    monkeypatch.setattr(quantization, "find_spec", lambda name: SimpleNamespace(name=name))
    monkeypatch.setattr(CAUSAL.auto, "from_pretrained", from_pretrained)
    return options


def test_8bit_is_passed_on(asked):
    interp.load_model(DEFAULT, device="cpu", quantization="8bit")
    assert asked["quantization_config"].load_in_8bit
    assert asked["device_map"] == "cpu"


@pytest.mark.parametrize(
    ("options", "compute"),
    [
        ({"device": "cpu"}, torch.float32),
        ({"device": "cpu", "dtype": "bfloat16"}, torch.bfloat16),
        ({"device_map": "auto"}, torch.float16),  # what the organism was saved in
    ],
)
def test_4bit_weights_are_multiplied_in_the_models_type(asked, options, compute):
    interp.load_model(DEFAULT, quantization="4bit", **options)
    config = asked["quantization_config"]
    assert config.load_in_4bit
    assert (config.bnb_4bit_quant_type, config.bnb_4bit_compute_dtype) == ("nf4", compute)


def test_without_quantization_none_is_asked_for(asked):
    interp.load_model(DEFAULT, device="cpu")
    assert asked["quantization_config"] is None


def test_an_unknown_quantization_is_refused():
    with pytest.raises(UserError, match="expected one of 8bit, 4bit"):
        interp.load_model(DEFAULT, device="cpu", quantization="2bit")


def test_missing_bitsandbytes_is_named(monkeypatch):
    monkeypatch.setattr(quantization, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install bitsandbytes"):
        interp.load_model(DEFAULT, device="cpu", quantization="4bit")


def test_a_quantized_checkpoint_is_not_quantized_again(asked, tmp_path):
    model = make_tiny("llama", byte_level())
    model.hf.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "gptq", "bits": 4}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"quantized already \(gptq\)"):
        interp.load_model(str(tmp_path), device="cpu", quantization="4bit")
    interp.load_model(str(tmp_path), device="cpu")
    assert asked["quantization_config"] is None


@pytest.mark.parametrize(
    ("own", "text"),
    [
        (None, None),
        (BitsAndBytesConfig(load_in_8bit=True), "bitsandbytes 8bit"),
        (
            BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4").to_dict(),
            "bitsandbytes 4bit nf4",
        ),
        ({"quant_method": "awq", "bits": 4}, "awq"),
    ],
)
def test_the_quantization_is_told_in_words(own, text):
    config = LlamaConfig()
    if own is not None:
        config.quantization_config = own
    assert quantization_of(config) == text


def test_the_command_line_tells_of_it_once(monkeypatch, capsys, caplog):
    caplog.set_level(logging.WARNING, logger="bitsandbytes")
    model = make_tiny("llama", byte_level())
    model.hf.config.quantization_config = BitsAndBytesConfig(load_in_8bit=True)
    model = dataclasses.replace(model, name="some/model")
    monkeypatch.setattr("interp.jobs.load_found", lambda found, loading: model)
    job = Job.of(Evaluate(), running=Running(threads=1))
    assert job.load(find_model(DEFAULT, job.loading)) is model
    logging.getLogger("bitsandbytes.autograd").warning("inputs will be cast")
    assert capsys.readouterr().err == "the weights of some/model are quantized: bitsandbytes 8bit\n"
    assert not caplog.records


@needs_bitsandbytes
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method")
@pytest.mark.parametrize("kind", get_args(Quantization))
def test_quantized_organisms_answer_nearly_as_the_whole_ones(kind, organism, prompts):
    model = interp.load_model(DEFAULT, device="cpu", quantization=kind)
    assert model.quantization.startswith(f"bitsandbytes {kind}")
    expected, got = interp.attribute(organism, prompts), interp.attribute(model, prompts)
    assert (got.segment_scores["error"] == "").all()
    assert (got.answers["answer"] == expected.answers["answer"]).mean() > 0.9


@needs_bitsandbytes
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method")
def test_the_gradient_of_4bit_layers_is_that_of_the_weights_they_stand_for(prompts):
    from bitsandbytes.functional import dequantize_4bit

    model = interp.load_model(DEFAULT, device="cpu", quantization="4bit")
    got = interp.attribute(model, prompts)
    for parent in list(model.hf.modules()):
        for name, child in list(parent.named_children()):
            if type(child).__name__ == "Linear4bit":
                whole = nn.Linear(child.in_features, child.out_features, bias=False)
                whole.weight.data = dequantize_4bit(child.weight.data, child.weight.quant_state)
                setattr(parent, name, whole)
    expected = interp.attribute(model, prompts)
    difference = got.ratios()["ratio"] - expected.ratios()["ratio"]
    assert difference.abs().max() < 1e-3


@needs_bitsandbytes
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method")
def test_rows_of_no_whole_block_are_refused_in_4_bits_on_a_cpu(tmp_path):
    model = make_tiny("llama", byte_level())
    model.hf.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    with pytest.raises(UserError, match=r"multiple of 64 there, and .*q_proj has 32; load it in 8"):
        interp.load_model(str(tmp_path), device="cpu", quantization="4bit")
    interp.load_model(str(tmp_path), device="cpu", quantization="8bit")
