"""Gemma 4 reads tokens in each layer, and Gemma 3n keeps several residual streams."""

import pytest
from transformers import AutoConfig

import interp
from interp.errors import UserError
from tests.support.prompts import some_prompts
from tests.support.tiny import ids_of, random_model
from tests.support.tokenizers import byte_level

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


@pytest.mark.parametrize(
    ("kind", "word"), [("gemma4_text", "embeddings"), ("gemma3n_text", "streams")]
)
def test_patches_of_models_with_a_second_path_are_refused(kind, word):
    model, prompts = gemma(kind), some_prompts(1)
    assert len(interp.evaluate(model, prompts).answers) == 2
    with pytest.raises(UserError, match=word):
        interp.patch(model, prompts)


def test_gradients_of_gemma_3n_are_finite_in_batches():
    prompts = some_prompts(4)
    scores = interp.attribute(gemma("gemma3n_text"), prompts, methods=["input_gradient"])
    assert set(scores.table("segment_scores")["prompt_id"]) == {prompt.id for prompt in prompts}
    assert set(scores.table("segment_scores")["error"]) == {""}
