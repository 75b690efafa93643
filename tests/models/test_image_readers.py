"""Folders of models that also read images are read as text, as plain transformers reads text."""

import json

import pytest
import torch
from transformers import (
    CONFIG_MAPPING,
    AutoModelForImageTextToText,
    AutoTokenizer,
    CLIPConfig,
    CLIPModel,
)

import interp
from tests.models.conftest import FP8, configure, in_fp8, load, refused, rewrite
from tests.support.answers import with_options
from tests.support.prompts import some_prompts
from tests.support.tiny import ids_of, random_model, save
from tests.support.tokenizers import byte_level
from tests.zoo.sizes import small

READERS = ("gemma3", "qwen3_5", "llama4", "qwen2_5_vl", "llava", "mistral3")


def image_reader(kind):
    tokenizer = byte_level()
    config = small(CONFIG_MAPPING[kind], {}, ids_of(tokenizer))
    return random_model(config, tokenizer, auto=AutoModelForImageTextToText)


@pytest.fixture(scope="module")
def prompts():
    return some_prompts(2)


@pytest.mark.parametrize("kind", READERS)
def test_answers_are_those_of_the_whole_model(kind, tmp_path, prompts):
    reader = image_reader(kind)
    save(reader, tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    model = load(tmp_path)
    answers = with_options(interp.evaluate(model, prompts)).set_index("prompt_id")
    for prompt in prompts:
        message = [{"role": "user", "content": prompt.text}]
        ids = tokenizer.apply_chat_template(
            message, add_generation_prompt=True, return_tensors="pt", return_dict=False
        )
        with torch.no_grad():
            logits = reader.hf(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, -1]
        own = answers.loc[prompt.id]
        expected = float(logits.softmax(-1).max())
        assert own["predicted_token_id"] == int(logits.argmax())
        assert own["predicted_probability"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kind", READERS)
def test_layers_are_those_of_the_text_part(kind, prompts):
    assert (interp.edges(image_reader(kind), prompts).table("pairs")["error"] == "").all()


def test_a_text_part_that_is_dequantized_is_not_called_quantized(tmp_path):
    save(image_reader("mistral3"), tmp_path)
    rewrite(tmp_path, lambda weights: in_fp8(weights, only="language_model"))
    text = json.loads((tmp_path / "config.json").read_text())["text_config"]
    configure(tmp_path, text_config=text | {"quantization_config": FP8})
    model = load(tmp_path, dequantize=True)
    assert model.source["dequantized"] == "fp8"
    assert model.quantization is None


def test_a_type_without_a_language_model_is_named(tmp_path):
    config = small(CLIPConfig, {"architectures": ["CLIPModel"]}, {})
    CLIPModel(config).save_pretrained(tmp_path)
    byte_level().save_pretrained(tmp_path)
    refused("'clip'", tmp_path)
