"""Layers that also read tokens (Gemma 4), several streams (Gemma 3n), layers without attention."""

import json

import pytest
import torch
from transformers import AutoConfig

import interp
from interp.analysis.cautions.caution import PATHS
from interp.errors import UserError
from interp.measurements.specs import Attribute
from interp.models.attention_rows import answer_attention
from tests.support.prompts import some_prompts
from tests.support.tiny import ids_of, random_model, tiny_model
from tests.support.tokenizers import byte_level
from tests.support.unmapped import unmapped_model

SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "hidden_size_per_layer_input": 8,
    "sliding_window": 16,
    "layer_types": ["sliding_attention", "full_attention"],
    "max_position_embeddings": 512,
}
GEMMA_3N = {
    "intermediate_size": [64, 64],
    "activation_sparsity_pattern": [0.0, 0.0],
    "num_kv_shared_layers": 0,
    "altup_num_inputs": 2,
    "laurel_rank": 4,
}


def gemma(kind):
    tokenizer = byte_level()
    ids = ids_of(tokenizer)
    own = GEMMA_3N if kind == "gemma3n_text" else {"intermediate_size": 64}
    settings = {**SHAPE, **ids, "vocab_size_per_layer_input": ids["vocab_size"], **own}
    return random_model(AutoConfig.for_model(kind, **settings), tokenizer)


def test_models_with_several_streams_have_gradients_in_batches_but_no_patches():
    model, prompts = gemma("gemma3n_text"), some_prompts(4)
    assert len(interp.evaluate(model, prompts).answers) == 8
    scores = interp.attribute(model, prompts, methods=["input_gradient"]).table("segment_scores")
    assert set(scores["prompt_id"]) == {prompt.id for prompt in prompts}
    assert set(scores["error"]) == {""}  # so they are finite
    with pytest.raises(UserError, match="streams"):
        interp.patch(model, prompts)


def said(result):
    """The numbers of each caution about paths."""
    return [own.numbers for own in result.cautions if own.kind == PATHS]


@pytest.mark.parametrize("kind", ["gemma4_text", "gemma3n_text"])
def test_gradients_say_that_they_leave_out_the_tokens_of_later_layers(kind, tmp_path):
    model, prompts = gemma(kind), some_prompts(2)
    found = interp.attribute(model, prompts, methods=["input_gradient", "attention"])
    assert said(found) == [{"methods": ["input_gradient"]}]
    assert said(interp.attribute(model, prompts, methods=["attention"])) == []
    assert said(interp.evaluate(model, prompts)) == []
    assert not tiny_model("llama").reads_tokens_again
    spec = Attribute(methods=("input_gradient",))
    assert said(interp.run(spec, models=model, prompts=prompts, out=tmp_path)) == said(found)
    (kept,) = json.loads((tmp_path / "run.json").read_text())["summary"].values()
    assert said(found)[0] in [own["numbers"] for own in kept["cautions"]]


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", ["lfm2", "jamba", "qwen3_next", "recurrent_gemma", "llama4_text"])
def test_attention_says_of_which_layers_it_is_the_mean(kind, tmp_path):
    model, prompts = unmapped_model(kind), some_prompts(2)
    with torch.no_grad(), answer_attention(model) as rows:
        model.hf(input_ids=torch.tensor([[5, 6, 7]]))
    layers = model.hf.config.num_hidden_layers
    assert len(rows) == (len(model.attention_layers) or layers)
    assert bool(model.attention_layers) == (kind != "llama4_text")
    expected = [{"layers": list(model.attention_layers)}] if model.attention_layers else []
    assert said(interp.attribute(model, prompts, methods=["attention"])) == expected
    spec = Attribute(methods=("attention",))
    assert said(interp.run(spec, models=model, prompts=prompts, out=tmp_path)) == expected
    assert said(interp.attribute(model, prompts, methods=["input_gradient"])) == []
