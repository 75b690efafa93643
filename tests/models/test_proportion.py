import time

import pytest

import interp
from interp.errors import UserError
from tests.models.conftest import configure


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_hidden_layers": 10**20}, "asks for num_hidden_layers = 1e[+]20"),
        ({"num_hidden_layers": 10**7}, "asks for num_hidden_layers = 1e[+]07"),
        ({"num_hidden_layers": 1e20}, "config.json"),
        ({"num_labels": 10**8}, "asks for num_labels = 1e[+]08, but its weights have no tensor"),
        ({"model_type": "qwen2", "num_hidden_layers": 10**8}, "asks for num_hidden_layers"),
        ({"hidden_size": 10**7}, "asks for a model of .* parameters"),
        ({"hidden_size": 10**20}, "config.json"),
        ({"intermediate_size": 10**12}, "asks for a model of .* parameters"),
        ({"vocab_size": 10**12}, "asks for a model of .* parameters"),
        ({"model_type": "mixtral", "num_local_experts": 10**9}, "asks for num_local_experts"),
        (
            {"model_type": "gptj", "max_position_embeddings": 10**9, "vocab_size": 700, "n_embd": 4}
            | {"n_layer": 1, "n_head": 1, "rotary_dim": 4},
            "asks for tables of",
        ),
    ],
)
def test_what_is_out_of_proportion_is_refused_at_once(saved, settings, message):
    configure(saved, **settings)
    start = time.monotonic()
    with pytest.raises(UserError, match=message):
        interp.load_model(str(saved), device="cpu")
    assert time.monotonic() - start < 30


@pytest.mark.parametrize("model_type", ["gemma3", "gemma3_text", "llama", "gpt2", "mamba"])
def test_a_configuration_without_sizes_is_refused_at_once(saved, model_type):
    """Its defaults are those of a model with billions of parameters."""
    (saved / "config.json").write_text(f'{{"model_type": "{model_type}"}}')
    start = time.monotonic()
    with pytest.raises(UserError, match="do not belong together"):
        interp.load_model(str(saved), device="cpu")
    assert time.monotonic() - start < 30


def test_a_long_context_is_none_of_the_weights_business(saved):
    configure(saved, max_position_embeddings=10**7)
    assert interp.load_model(str(saved), device="cpu").context_length == 10**7


@pytest.mark.parametrize(
    ("kind", "size"),
    [("sliding_attention", "sliding_window"), ("chunked_attention", "attention_chunk_size")],
)
def test_layers_that_see_a_window_need_its_size(saved, kind, size):
    configure(saved, layer_types=[kind, "full_attention"])
    with pytest.raises(UserError, match=f"layers of {kind} and no {size}"):
        interp.load_model(str(saved), device="cpu")
    configure(saved, **{size: 16})
    assert interp.load_model(str(saved), device="cpu")
