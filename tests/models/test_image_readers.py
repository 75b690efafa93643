"""Folders of models that also read images are read as text, as plain transformers reads text."""

import json

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForImageTextToText,
    AutoTokenizer,
    CLIPConfig,
    CLIPModel,
)

import interp
from interp.errors import UserError
from tests.models.conftest import configure, in_fp8, rewrite
from tests.support.answers import with_options
from tests.support.prompts import some_prompts
from tests.support.tiny import ids_of
from tests.support.tokenizers import byte_level
from tests.support.unmapped import IMAGES

_TEXT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 512,
}
_SEEN = IMAGES["vision_config"]
_ROPE = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
_QWEN = {"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16, "patch_size": 14}

READERS = {
    "gemma3": IMAGES,
    "qwen3_5": {
        "text_config": {
            "head_dim": 8,
            "layer_types": ["linear_attention", "full_attention"],
            "linear_num_value_heads": 4,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
        },
        "vision_config": {**_QWEN, "out_hidden_size": 32, "num_position_embeddings": 16},
    },
    "llama4": {
        "text_config": {
            "head_dim": 8,
            "intermediate_size_mlp": 64,
            "num_local_experts": 2,
            "num_experts_per_tok": 1,
        },
        "vision_config": {
            **_SEEN,
            "vision_output_dim": 16,
            "projector_input_dim": 16,
            "projector_output_dim": 16,
        },
    },
    "qwen2_5_vl": {
        "text_config": {"rope_parameters": _ROPE},
        "vision_config": {**_QWEN, "out_hidden_size": 32, "fullatt_block_indexes": [0]},
    },
    "llava": {
        "text_config": {"model_type": "llama"},
        "vision_config": {"model_type": "clip_vision_model", **_SEEN, "projection_dim": 16},
    },
    "mistral3": {
        "text_config": {"model_type": "mistral", "head_dim": 8},
        "vision_config": {"model_type": "pixtral", **_SEEN, "head_dim": 8},
    },
}
"""Settings of a small model, by model type."""


def image_reader(kind):
    settings = {**READERS[kind]}
    tokenizer = byte_level()
    names = ("image_token", "video_token", "boi_token", "eoi_token", "vision_start_token")
    for place, name in enumerate(names):
        settings |= dict.fromkeys((f"{name}_id", f"{name}_index"), len(tokenizer) - 1 - place)
    settings["text_config"] = {**_TEXT, **settings["text_config"], **ids_of(tokenizer)}
    torch.manual_seed(0)
    hf = AutoModelForImageTextToText.from_config(AutoConfig.for_model(kind, **settings)).eval()
    with torch.no_grad():
        for parameter in hf.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4.0)
    return hf


@pytest.fixture(scope="module")
def prompts():
    return some_prompts(2)


@pytest.mark.parametrize("kind", READERS)
def test_answers_are_those_of_the_whole_model(kind, tmp_path, prompts):
    hf = image_reader(kind)
    hf.save_pretrained(tmp_path)
    byte_level().save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    model = interp.load_model(str(tmp_path), device="cpu")
    answers = with_options(interp.evaluate(model, prompts)).set_index("prompt_id")
    for prompt in prompts:
        message = [{"role": "user", "content": prompt.text}]
        ids = tokenizer.apply_chat_template(
            message, add_generation_prompt=True, return_tensors="pt", return_dict=False
        )
        with torch.no_grad():
            logits = hf(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, -1]
        own = answers.loc[prompt.id]
        expected = float(logits.softmax(-1).max())
        assert own["predicted_token_id"] == int(logits.argmax())
        assert own["predicted_probability"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kind", READERS)
def test_layers_are_those_of_the_text_part(kind, prompts):
    model = interp.Model(kind, image_reader(kind), byte_level())
    assert (interp.edges(model, prompts).table("pairs")["error"] == "").all()


def test_a_text_part_that_is_dequantized_is_not_called_quantized(tmp_path):
    image_reader("mistral3").save_pretrained(tmp_path)
    byte_level().save_pretrained(tmp_path)
    rewrite(tmp_path, lambda weights: in_fp8(weights, only="language_model"))
    fp8 = {"quant_method": "fp8", "weight_block_size": [16, 16]}
    text = json.loads((tmp_path / "config.json").read_text())["text_config"]
    configure(tmp_path, text_config=text | {"quantization_config": fp8})
    model = interp.load_model(str(tmp_path), device="cpu", dequantize=True)
    assert model.source["dequantized"] == "fp8"
    assert model.quantization is None


def test_a_type_without_a_language_model_is_named(tmp_path):
    config = CLIPConfig(architectures=["CLIPModel"], text_config=_TEXT, vision_config=_SEEN)

    CLIPModel(config).save_pretrained(tmp_path)
    byte_level().save_pretrained(tmp_path)
    with pytest.raises(UserError, match="'clip'"):
        interp.load_model(str(tmp_path), device="cpu")
