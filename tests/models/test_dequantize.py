import json
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM

import interp
from interp.cli import main
from interp.errors import UserError
from interp.models.loading import Loading
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
from tests.support.other_models import other_model
from tests.support.tiny import make_tiny, save
from tests.support.tokenizers import byte_level

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script_method")

NO_PACKAGE = pytest.mark.skipif(
    find_spec("compressed_tensors") is None, reason="needs compressed-tensors"
)


def by_hand(folder, weights):
    """The logits of a model like the folder's, with these weights."""
    config = AutoConfig.from_pretrained(folder)
    del config.quantization_config
    hf = AutoModelForCausalLM.from_config(config).eval()
    hf.load_state_dict(weights, strict=False)
    with torch.no_grad():
        return hf(IDS).logits


def fp4(code):
    """The value of four bits: sign, two bits of exponent with bias 1, one bit of mantissa."""
    sign, exponent, mantissa = code >> 3, (code >> 1) & 3, code & 1
    size = torch.where(exponent == 0, mantissa / 2, 2.0 ** (exponent - 1) * (1 + mantissa / 2))
    return torch.where(sign == 1, -size, size)


@pytest.fixture(scope="module")
def mxfp4(tmp_path_factory):
    """gpt-oss as it is published, with experts in blocks, and the weights that they stand for."""
    folder = save(other_model("gpt_oss"), tmp_path_factory.mktemp("gpt-oss"))
    own = {}

    def packed(weights):
        torch.manual_seed(0)
        for name in [key for key in weights if key.endswith(("gate_up_proj", "down_proj"))]:
            experts, inputs, outputs = weights.pop(name).shape
            shape = experts, outputs, inputs // 32
            blocks = torch.randint(256, (*shape, 16), dtype=torch.uint8)
            scales = torch.randint(120, 127, shape, dtype=torch.uint8)
            weights |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
            # The lower four bits of a byte come first.
            codes = torch.stack([blocks & 15, blocks >> 4], -1).flatten(-2).long()
            values = fp4(codes) * 2.0 ** (scales.float() - 127)[..., None]
            own[name] = values.flatten(-2).transpose(1, 2)
        return weights

    rewrite(folder, packed)
    configure(folder, quantization_config={"quant_method": "mxfp4"})
    return folder, load_file(folder / "model.safetensors") | own


def test_gpt_oss_as_published_computes_with_the_weights_that_it_stands_for(mxfp4, prompts):
    folder, weights = mxfp4
    model = load(folder, dequantize=True)
    assert torch.equal(model.hf(IDS).logits, by_hand(folder, weights))
    assert (model.quantization, model.dtype) == (None, "float32")
    assert model.source["dequantized"] == "mxfp4"
    assert any("mxfp4" in note for note in model.notes)
    scores = interp.attribute(model, prompts[:2], methods=("input_gradient",))
    assert (scores.segment_scores["error"] == "").all()


@needs_bitsandbytes
@pytest.mark.parametrize("bits", ["4bit", "8bit"])
def test_bitsandbytes_weights_become_their_values(bits, wide, tmp_path):
    save_quantized(wide, tmp_path, **{f"load_in_{bits}": True, "bnb_4bit_quant_type": "nf4"})
    weights = load_file(tmp_path / "model.safetensors")
    own = {name: value for name, value in weights.items() if value.dtype == torch.float32}
    shapes = {name: value.shape for name, value in load_file(wide / "model.safetensors").items()}
    for name in [key for key in weights if key.endswith("proj.weight")]:
        if bits == "8bit":
            scale = weights[name.replace("weight", "SCB")]
            own[name] = weights[name].float() * scale[:, None] / 127
            continue
        codes = torch.stack([weights[name] >> 4, weights[name] & 15], -1).flatten().long()
        values = weights[f"{name}.quant_map"][codes].view(-1, 64)
        values = values * weights[f"{name}.absmax"].view(-1, 1)
        own[name] = values.view(shapes[name])
    model = load(tmp_path, dequantize=True)
    assert torch.allclose(model.hf(IDS).logits, by_hand(tmp_path, own), rtol=0, atol=1e-5)
    assert model.quantization is None
    assert model.source["dequantized"].startswith(f"bitsandbytes {bits}")


ROUNDING = {"num_bits": 8, "type": "float", "symmetric": True}
COMPRESSED = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "quantization_status": "compressed",
    "config_groups": {
        "all": {
            "targets": ["re:.*proj$"],
            "weights": {**ROUNDING, "strategy": "channel"},
            "input_activations": {**ROUNDING, "strategy": "token", "dynamic": True},
        }
    },
}


@pytest.fixture
def rounding(saved):
    """FP8 weights and activations, as llm-compressor writes them, and the weights' values."""
    own = {}

    def packed(weights):
        for name in [key for key in weights if key.endswith("proj.weight")]:
            scale = weights[name].abs().amax(1, keepdim=True) / 448
            weights[name] = (weights[name] / scale).to(torch.float8_e4m3fn)
            own[name] = weights[name].float() * scale
            weights |= {f"{name}_scale": scale}
        return weights

    rewrite(saved, packed)
    configure(saved, quantization_config=COMPRESSED)
    return saved, load_file(saved / "model.safetensors") | own


@NO_PACKAGE
def test_layers_that_round_activations_give_no_gradients_until_they_are_dequantized(
    rounding, prompts
):
    folder, weights = rounding
    with pytest.raises(UserError, match=r"self_attn.*--dequantize"):
        interp.attribute(load(folder), prompts[:2], methods=("input_gradient",))
    model = load(folder, dequantize=True)
    assert torch.equal(model.hf(IDS).logits, by_hand(folder, weights))
    scores = interp.attribute(model, prompts[:2], methods=("input_gradient",))
    assert (scores.segment_scores["error"] == "").all()


class _Rounded(torch.nn.Linear):
    """A layer that rounds its inputs, whose derivative is zero but for the largest input."""

    def forward(self, given):
        scale = given.abs().amax(-1, keepdim=True) / 127
        return super().forward((given / scale).round() * scale)


def test_a_trainable_format_whose_layers_pass_no_gradient_is_refused(prompts):
    model = make_tiny("llama", byte_level())
    model.hf.config.quantization_config = {"quant_method": "torchao"}
    model.hf.hf_quantizer = SimpleNamespace(is_trainable=True)
    few = prompts[:2]
    assert (interp.attribute(model, few).segment_scores["error"] == "").all()
    layer = model.hf.model.layers[1].mlp.down_proj
    layer.__class__ = _Rounded
    model = interp.Model("rounded", model.hf, model.tokenizer)
    with pytest.raises(UserError, match=r"layers\.1\.mlp\.down_proj"):
        interp.attribute(model, few, methods=("input_gradient",))
    assert (interp.evaluate(model, few).answers["error"] == "").all()


def test_scales_of_activations_are_not_needed_by_dequantized_weights(saved):
    rewrite(saved, in_fp8)
    name = "model.layers.0.mlp.down_proj"
    rewrite(saved, lambda weights: weights | {f"{name}.activation_scale": torch.ones(1)})
    configure(saved, quantization_config=FP8 | {"activation_scheme": "static"})
    model = load(saved, dequantize=True)
    assert model.quantization is None
    rewrite(saved, lambda weights: weights | {f"{name}.weight_scale": torch.ones(1)})
    refused("weight_scale", saved, dequantize=True)


def test_only_quantized_weights_that_transformers_can_unpack_are_dequantized(saved):
    refused(r"dequantize.*quantized", saved, dequantize=True)
    configure(saved, quantization_config=GPTQ)
    refused(r"gptq.*dequantize", saved, dequantize=True)
    with pytest.raises(UserError, match=r"dequantize.*'4bit'"):
        Loading(dequantize=True, quantization="4bit")


def test_a_folder_holds_a_model_either_quantized_or_dequantized(mxfp4, tmp_path, capsys):
    folder, _ = mxfp4
    command = ["evaluate", "--model", str(folder), "--device", "cpu", "--limit", "1"]
    assert main([*command, "--dequantize", "--out", str(tmp_path / "out")]) == 0
    record = json.loads(next((tmp_path / "out" / "models").glob("*.json")).read_text())
    assert record["origin"]["dequantize"] is True
    assert record["source"]["dequantized"] == "mxfp4"
    assert "mxfp4" in capsys.readouterr().err
    assert main([*command[:2], str(tmp_path), "--dequantize"]) == 2
