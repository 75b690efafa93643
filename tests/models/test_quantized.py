import re
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch._dynamo.utils import counters
from transformers import AutoModelForCausalLM

import interp
from interp.errors import UserError
from interp.models.quantized import keep_unpacked
from interp.models.weights import weights_of
from interp.training.start import start
from tests.models.conftest import (
    FP8,
    GPTQ,
    IDS,
    configure,
    in_fp8,
    load,
    needs_bitsandbytes,
    refused,
    rewrite,
    save_quantized,
)
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script_method")


def plain(folder):
    hf = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, device_map="cpu")
    keep_unpacked(hf)
    return hf


@needs_bitsandbytes
def test_4_bit_layers_compute_alike_before_and_after_a_pass_without_gradients(
    wide, tmp_path, monkeypatch
):
    save_quantized(wide, tmp_path, load_in_4bit=True, bnb_4bit_quant_type="nf4")
    # As on a processor with bfloat16 instructions, wherever this runs.
    monkeypatch.setattr("bitsandbytes.nn.modules.has_avx512bf16", lambda: True)
    model = load(tmp_path)
    rows = model.hf.get_input_embeddings()(IDS).detach().requires_grad_()
    first = model.hf(inputs_embeds=rows).logits
    with torch.no_grad():
        second = model.hf(IDS).logits
    assert torch.equal(first, second)
    assert torch.autograd.grad(model.hf(inputs_embeds=rows).logits.sum(), rows)[0].any()


@needs_bitsandbytes
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "bitsandbytes 4bit nf4"),
        ({"load_in_4bit": True, "bnb_4bit_quant_type": "fp4"}, "bitsandbytes 4bit fp4"),
        (
            {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
            "bitsandbytes 4bit nf4",
        ),
        ({"load_in_8bit": True}, "bitsandbytes 8bit"),
    ],
)
def test_a_saved_quantized_model_loads_as_in_transformers(settings, words, wide, tmp_path, prompts):
    save_quantized(wide, tmp_path, **settings)
    model = load(tmp_path)
    assert (model.quantization, model.notes) == (words, ())
    assert torch.equal(model.hf(IDS).logits, plain(tmp_path)(IDS).logits)
    assert not torch.equal(model.hf(IDS).logits, plain(wide)(IDS).logits)
    scores = interp.attribute(model, prompts[:2], methods=("input_gradient",))
    assert (scores.segment_scores["error"] == "").all()


def test_weights_that_transformers_dequantizes_are_noted(saved):
    rewrite(saved, in_fp8)
    configure(saved, quantization_config=FP8)
    model = load(saved)
    stored = load_file(saved / "model.safetensors")
    name = "model.layers.0.mlp.down_proj.weight"
    scale = stored[f"{name}_scale_inv"].repeat_interleave(16, 0).repeat_interleave(16, 1)
    assert torch.equal(model.hf.state_dict()[name], stored[name].float() * scale)
    assert model.quantization is None
    assert model.source["dequantized"] == "fp8"
    assert re.search(r"dequantized.*\bfp8\b", model.notes[0])


def packed(weights):
    """Names and types of tensors as GPTQ stores them; the values mean nothing."""
    name = "model.layers.0.mlp.down_proj"
    qweight = torch.zeros(8, 32, dtype=torch.int32)
    return {k: v for k, v in weights.items() if name not in k} | {f"{name}.qweight": qweight}


@pytest.mark.skipif(find_spec("gptqmodel") is not None, reason="needs a missing package")
def test_a_format_whose_package_is_missing_is_named_with_it(saved):
    rewrite(saved, packed)
    configure(saved, quantization_config=GPTQ)
    refused(r"(?s)gptq.*pip install", saved)


@pytest.mark.parametrize(
    "settings",
    [
        GPTQ,
        {"quant_method": "awq", "bits": 4, "version": "gemm"},
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
        {"quant_method": "bitsandbytes", "load_in_8bit": True},
        {"load_in_8bit": True},
        {"quant_method": "fp8", "weight_block_size": [128, 128]},
        {"quant_method": "mxfp4"},
        {"quant_method": "gguf"},
    ],
)
def test_settings_beside_ordinary_weights_are_not_ignored(saved, settings):
    configure(saved, quantization_config=settings)
    refused(r"quantization_config .*\(F32\)", saved)


def test_weights_that_are_quantized_in_the_forward_pass_are_ordinary(saved):
    settings = {"linear_class": "autobitlinear", "quantization_mode": "online"}
    configure(saved, quantization_config={"quant_method": "bitnet", **settings})
    # transformers compiles these layers, and torch.compile raises a warning of its own.
    with torch.compiler.set_stance("force_eager"):
        model = load(saved)
    counters.clear()
    own = model.hf(IDS).logits
    assert not counters["frames"]  # nothing was compiled
    with torch.compiler.set_stance("force_eager"):
        assert torch.equal(own, plain(saved)(IDS).logits)


def nested(depth):
    return nested(depth - 1) if depth == 0 else {"a": [nested(depth - 1)]} if depth > 1 else {}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ("4bit", "'4bit'"),
        (4, "4, an int"),
        ([], r"\[\], a list"),
        (True, "True"),
        ({}, "quant_method"),
        ({"bits": 4}, "None"),
        ({"quant_method": "nosuch"}, "'nosuch'"),
        ({"quant_method": "gptqq"}, "gptq"),
        ({"quant_method": "bitsandbytes"}, "bitsandbytes"),
        ({"quant_method": ["awq"]}, "awq"),
        ({"quant_method": {"a": 1}}, "a"),
        ({"quant_method": 7, "load_in_4bit": True}, "7"),
        ({"quant_method": "gptq", "bits": "four"}, "gptq"),
        ({"quant_method": "gptq", "bits": {"a": [nested(30)]}}, "gptq"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": "yes"}, "4bit"),
        ({"load_in_8bit": True, "llm_int8_threshold": "six"}, "8bit"),
        ({"quant_method": "fp8", "modules_to_not_convert": [r"(\w+)+!"]}, "pattern"),
        ({"quant_method": "awq", "modules_to_not_convert": [".*.*.*.*.*.*x"]}, "pattern"),
    ],
)
def test_hostile_settings_end_in_a_message(saved, settings, named):
    configure(saved, quantization_config=settings)
    refused(rf"quantization_config.*{named}", saved)
    configure(saved, quantization_config=None, text_config={"quantization_config": settings})
    refused(rf"quantization_config.*{named}", saved)


@pytest.mark.parametrize(("method", "helps"), [("mxfp4", True), ("gptq", False)])
def test_gradients_need_a_format_with_a_backward_pass(prompts, method, helps):
    model, few = make_tiny("llama", byte_level()), prompts[:2]
    model.hf.config.quantization_config = {"quant_method": method}
    model.hf.hf_quantizer = SimpleNamespace(is_trainable=False)
    calls = [
        *(
            (name, partial(interp.attribute, methods=(name,)))
            for name in ("input_gradient", "integrated_gradients", "gim")
        ),
        *((name, partial(interp.patch, estimate=name)) for name in ("gradient", "integrated")),
        ("gradient", partial(interp.edges, methods=("gradient",))),
    ]
    for name, call in calls:
        with pytest.raises(UserError, match=f"{name}.* .*{method}") as error:
            call(model, few)
        assert ("--dequantize" in str(error.value)) == helps
    scores = interp.attribute(model, few, methods=("attention",))
    assert (scores.segment_scores["error"] == "").all()


def test_quantized_weights_are_not_trained(saved, prompts):
    rewrite(saved, packed)
    configure(saved, quantization_config=GPTQ)
    with pytest.raises(UserError, match="gptq"):
        start(
            str(saved), interp.models.loading.Loading(), from_scratch=False, seed=0, prompts=prompts
        )


class _Pair(torch.Tensor):
    """A tensor made of two, as torchao's quantized tensors are."""

    @staticmethod
    def __new__(cls, codes, scale):
        made = torch.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=torch.float32)
        made.codes, made.scale = codes, scale
        return made

    def __tensor_flatten__(self):
        return ["codes", "scale"], None

    @staticmethod
    def __tensor_unflatten__(parts, context, size, stride):
        return _Pair(parts["codes"], parts["scale"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return args[0]


def test_a_tensor_made_of_several_is_identified_by_all(monkeypatch):
    layer = nn.Linear(2, 2, bias=False)
    codes, scale = torch.ones(2, 2, dtype=torch.int8), torch.ones(2)
    monkeypatch.setattr(layer, "state_dict", lambda: {"weight": _Pair(codes, scale)})
    assert {name: value.dtype for name, value in weights_of(layer)} == {
        "weight.codes": torch.int8,
        "weight.scale": torch.float32,
    }
