import dataclasses
import logging
import re
from inspect import signature
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from transformers import BitsAndBytesConfig, LlamaConfig

import interp
from interp.cli import main
from interp.errors import UserError
from interp.measurements.specs import SoftScore
from interp.measuring.core import bind, collect
from interp.models import quantized
from interp.models.find import find_model
from interp.models.kinds import CAUSAL
from interp.models.loading import Loading
from interp.models.organisms import DEFAULT
from interp.models.quantized import quantization_of
from interp.models.weights import check_device
from interp.runs.options import ComputeOptions
from interp.runs.plan import load_for_run
from tests.models.conftest import configure, load, needs_bitsandbytes, refused
from tests.support.placed import place
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import byte_level

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

    monkeypatch.setattr(quantized, "find_spec", lambda name: SimpleNamespace(name=name))
    monkeypatch.setattr(CAUSAL.auto, "from_pretrained", from_pretrained)
    return options


@pytest.mark.parametrize(
    ("quantization", "options", "compute"),
    [
        ("4bit", {}, torch.float32),
        ("4bit", {"dtype": "bfloat16"}, torch.bfloat16),
        ("4bit", {"device": None, "device_map": "auto"}, torch.float16),  # as it was saved
        ("8bit", {}, None),
        (None, {}, None),
    ],
)
def test_quantization_is_passed_on_and_multiplies_in_the_models_type(
    asked, quantization, options, compute
):
    load(DEFAULT, quantization=quantization, **options)
    config = asked.get("quantization_config")
    assert asked["device_map"] == options.get("device_map", "cpu")
    assert (config is None) == (quantization is None)
    if config is not None:
        assert (config.load_in_8bit, config.load_in_4bit) == (compute is None, compute is not None)
    if compute is not None:
        assert (config.bnb_4bit_quant_type, config.bnb_4bit_compute_dtype) == ("nf4", compute)


def test_missing_bitsandbytes_is_named(monkeypatch):
    monkeypatch.setattr(quantized, "find_spec", lambda name: None)
    refused("pip install bitsandbytes", DEFAULT, quantization="4bit")


def test_a_quantized_checkpoint_is_not_quantized_again(asked, saved):
    configure(saved, quantization_config={"quant_method": "gptq", "bits": 4})
    refused(r"\(gptq\).*'4bit'", saved, quantization="4bit")


@pytest.mark.parametrize(
    ("own", "text"),
    [
        (None, None),
        (BitsAndBytesConfig(load_in_8bit=True), "bitsandbytes 8bit"),
        ({"quant_method": "awq", "bits": 4}, "awq"),
        ({"load_in_4bit": True}, "unknown method 4bit fp4"),
    ],
)
def test_the_quantization_is_told_in_words(own, text):
    config = LlamaConfig()
    if own is not None:
        config.quantization_config = own
    assert quantization_of(config) == text


def test_the_command_line_says_so_once(monkeypatch, capsys, caplog):
    model = make_tiny("llama", byte_level())
    model.hf.config.quantization_config = BitsAndBytesConfig(load_in_8bit=True)
    model = dataclasses.replace(model, name="some/model")
    monkeypatch.setattr("interp.runs.plan.load_found", lambda found, loading: model)
    loading = Loading()
    assert load_for_run(find_model(DEFAULT, loading), loading, ComputeOptions(threads=1)) is model
    logging.getLogger("bitsandbytes.autograd").warning("inputs will be cast")
    assert re.fullmatch(r".*some/model.*: bitsandbytes 8bit\n", capsys.readouterr().err)
    assert not caplog.records


@needs_bitsandbytes
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method")
def test_the_gradient_of_4bit_layers_is_that_of_the_weights_they_stand_for(prompts):
    from bitsandbytes.functional import dequantize_4bit

    model = load(DEFAULT, quantization="4bit")
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
def test_rows_of_no_whole_block_are_refused_in_4_bits_on_a_cpu(saved):
    refused(r"\b64: .*q_proj.*\b32\b.*\b8bit\b", saved, quantization="4bit")
    load(saved, quantization="8bit")


PLACES = {
    "one layer on disk": lambda layer: "disk" if layer == 1 else "cpu",
    "all on disk": lambda layer: "disk",
    "all on the CPU, with hooks": lambda layer: "cpu",
}


def numbers(model, prompts):
    run = interp.attribute(model, prompts)
    yield from (run.answers, run.segment_scores, interp.evaluate(model, prompts).answers)
    yield collect(bind(SoftScore(), model), prompts)["soft_answers"]


@pytest.mark.quick(6)
@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("where", PLACES)
def test_a_placed_model_gives_the_same_numbers(kind, where, tmp_path, prompts, caplog):
    # accelerate tells that some weights are offloaded.
    caplog.set_level(logging.ERROR, logger="accelerate")
    plain = tiny_model(kind)
    placed = place(make_tiny(kind, byte_level()), PLACES[where], tmp_path)
    assert str(placed.device) == "cpu"
    assert placed.identity == plain.identity
    for got, expected in zip(numbers(placed, prompts), numbers(plain, prompts), strict=True):
        assert got.equals(expected)
    sites, pair = ["resid_pre", "z"], prompts[:2]
    if where == "all on disk":
        with pytest.raises(UserError, match=rf"tiny {kind}.*offloaded.*--quantization"):
            interp.patch(placed, pair, sites=sites)
    elif kind == "llama":
        expected = interp.patch(plain, pair, sites=sites).patches
        assert interp.patch(placed, pair, sites=sites).patches.equals(expected)


WITHOUT_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


@pytest.mark.parametrize("device", ["meta", "gpu", "", pytest.param("cuda", marks=WITHOUT_GPU)])
def test_devices_that_there_are_not(device):
    with pytest.raises(UserError, match=rf"device '{device}'.*\bcpu.*cuda:1\b") as error:
        check_device(device)
    assert len(str(error.value)) < 300
    check_device("cpu")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "meta"}, r"device 'meta'.*\bcpu, cuda, mps, xpu\b"),
        ({"device": ""}, r"device ''.*\bcpu, cuda, mps, xpu\b"),
        pytest.param({"device": "gpu"}, r"device 'cuda'.*\bcpu.*cuda:1\b", marks=WITHOUT_GPU),
        ({"device_map": "everywhere"}, r"device map 'everywhere'.*auto, balanced"),
        ({"device": "cpu", "device_map": "auto"}, r"device 'cpu'.*device_map 'auto'"),
        ({"quantization": "2bit"}, r"quantization '2bit'.*\b8bit, 4bit\b"),
        ({"dtype": "int8"}, r"dtype 'int8'.*float32, bfloat16\b"),
        ({"speed": 2}, r"option 'speed'.*device, dtype"),
    ],
)
def test_a_model_is_not_loaded_in_ways_that_there_are_not(options, message):
    assert len(refused(message, DEFAULT, **{"device": None, **options})) < 300


def test_what_load_model_takes_is_documented():
    parameters = signature(interp.load_model).parameters
    assert list(parameters) == ["name", *Loading.model_fields]
    assert parameters["dtype"].default == "auto"
    arguments, _, errors = interp.load_model.__doc__.partition("\n\nRaises:")
    assert "name: hub name" in arguments
    assert "float32, bfloat16, float16, float64" in arguments
    assert "**options" not in arguments
    assert "UserError" in errors


def test_a_command_refuses_a_device_before_it_looks_for_models(capsys):
    assert main(["evaluate", "--device", "xpu", "--model", "./none"]) == 2
    assert re.search("device 'xpu'", capsys.readouterr().err)


def test_number_types_have_short_names():
    full = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "auto": "auto"}
    assert {short: Loading(dtype=short).dtype for short in full} == full
