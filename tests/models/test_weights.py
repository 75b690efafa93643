import dataclasses
import logging
import re
from importlib.util import find_spec
from inspect import signature
from types import SimpleNamespace
from typing import get_args

import pytest
import torch
from torch import nn
from transformers import BitsAndBytesConfig, LlamaConfig

import interp
from interp.choices import Quantization
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
from tests.models.conftest import configure
from tests.support.placed import place
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
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

    monkeypatch.setattr(quantized, "find_spec", lambda name: SimpleNamespace(name=name))
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
    assert "quantization_config" not in asked


def test_missing_bitsandbytes_is_named(monkeypatch):
    monkeypatch.setattr(quantized, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install bitsandbytes"):
        interp.load_model(DEFAULT, device="cpu", quantization="4bit")


def test_a_quantized_checkpoint_is_not_quantized_again(asked, saved):
    configure(saved, quantization_config={"quant_method": "gptq", "bits": 4})
    with pytest.raises(UserError, match=r"\(gptq\).*'4bit'"):
        interp.load_model(str(saved), device="cpu", quantization="4bit")


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


@pytest.mark.slow
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
def test_rows_of_no_whole_block_are_refused_in_4_bits_on_a_cpu(saved):
    with pytest.raises(UserError, match=r"\b64: .*q_proj.*\b32\b.*\b8bit\b"):
        interp.load_model(str(saved), device="cpu", quantization="4bit")
    interp.load_model(str(saved), device="cpu", quantization="8bit")


PLACES = {
    "one layer on disk": lambda layer: "disk" if layer == 1 else "cpu",
    "all on disk": lambda layer: "disk",
    "all on the CPU, with hooks": lambda layer: "cpu",
}


@pytest.fixture(params=PLACES)
def where(request, caplog):
    # accelerate tells that some weights are offloaded.
    caplog.set_level(logging.ERROR, logger="accelerate")
    return PLACES[request.param]


@pytest.mark.quick(6)
@pytest.mark.parametrize("kind", CONFIGS)
def test_a_placed_model_gives_the_same_numbers(kind, where, tmp_path, prompts):
    plain = tiny_model(kind)
    placed = place(make_tiny(kind, byte_level()), where, tmp_path)
    assert str(placed.device) == "cpu"
    expected, got = interp.attribute(plain, prompts), interp.attribute(placed, prompts)
    assert got.answers.equals(expected.answers)
    assert got.segment_scores.equals(expected.segment_scores)
    scored = interp.evaluate(placed, prompts).answers
    assert scored.equals(interp.evaluate(plain, prompts).answers)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2"])
def test_perplexity_of_a_placed_model_is_the_same(kind, where, tmp_path, prompts):
    plain = tiny_model(kind)
    placed = place(make_tiny(kind, byte_level()), where, tmp_path)
    expected, got = (collect(bind(SoftScore(), model), prompts) for model in (plain, placed))
    assert got["soft_answers"].equals(expected["soft_answers"])


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2"])
def test_identity_does_not_depend_on_the_place(kind, where, tmp_path):
    placed = place(make_tiny(kind, byte_level()), where, tmp_path)
    assert placed.identity == tiny_model(kind).identity


@pytest.mark.slow
def test_patching_is_the_same_with_a_layer_offloaded(tmp_path, prompts):
    placed = place(make_tiny("llama", byte_level()), PLACES["one layer on disk"], tmp_path)
    pair = prompts[:2]
    expected, got = (
        interp.patch(model, pair, sites=["resid_pre", "z"])
        for model in (tiny_model("llama"), placed)
    )
    assert got.patches.equals(expected.patches)


def test_patching_refuses_an_offloaded_unembedding(tmp_path, prompts):
    placed = place(make_tiny("llama", byte_level()), PLACES["all on disk"], tmp_path)
    with pytest.raises(UserError, match=r"tiny llama.*offloaded.*--quantization"):
        interp.patch(placed, prompts[:2], sites=["resid_pre"])


WITHOUT_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("meta", r"device 'meta'.*\bcpu.*cuda:1\b"),
        ("gpu", r"device 'gpu'.*\bcpu.*cuda:1\b"),
        ("", r"device ''.*\bcpu.*cuda:1\b"),
        pytest.param("cuda", r"device 'cuda'.*\bcpu.*cuda:1\b", marks=WITHOUT_GPU),
    ],
)
def test_devices_that_there_are_not(device, message):
    with pytest.raises(UserError, match=message) as error:
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
    with pytest.raises(UserError, match=message) as error:
        interp.load_model(DEFAULT, **options)
    assert len(str(error.value)) < 300


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


@pytest.mark.parametrize(
    ("short", "full"),
    [("bf16", "bfloat16"), ("fp16", "float16"), ("fp32", "float32"), ("auto", "auto")],
)
def test_number_types_have_short_names(short, full):
    assert Loading(dtype=short).dtype == full
