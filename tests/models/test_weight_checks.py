import re
import time

import pytest
import torch

from interp.models.organisms import organism_names
from tests.models.conftest import configure, load, refused, rewrite

IN_LAYER = (
    *("input_layernorm", "mlp.down_proj", "mlp.gate_proj", "mlp.up_proj"),
    *("post_attention_layernorm", "self_attn.k_proj", "self_attn.o_proj", "self_attn.q_proj"),
    "self_attn.v_proj",
)
TENSORS = [
    *("lm_head.weight", "model.embed_tokens.weight", "model.norm.weight"),
    *(f"model.layers.{layer}.{part}.weight" for layer in range(2) for part in IN_LAYER),
]


def without(*names):
    return lambda tensors: {key: value for key, value in tensors.items() if key not in names}


def with_also(**tensors):
    return lambda own: own | {key.replace("__", "."): value for key, value in tensors.items()}


@pytest.mark.quick(5)
@pytest.mark.parametrize("name", TENSORS)
def test_no_tensor_may_be_missing(saved, name):
    held = []
    rewrite(saved, lambda tensors: held.extend(tensors) or without(name)(tensors))
    assert sorted(held) == sorted(TENSORS)
    refused(rf"\b{name}\b.*random", saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without(*TENSORS), r"num_hidden_layers = 2\b.*\b0 tensors"),
        (without(*TENSORS[2:]), r"model\.layers\.0\.input_layernorm\.weight.*\b16\b.*random"),
        (without(*TENSORS[3:6]), "input_layernorm.weight, model.layers.0.mlp.down"),
        (
            lambda own: {f"module.{key}": value for key, value in own.items()},
            r"lm_head\.weight.*\b18\b.*random",
        ),
        (
            lambda own: own | {"model.norm.weight": own["model.norm.weight"][:5].clone()},
            r"model\.norm\.weight.*\(5,\).*\(32,\)",
        ),
        (
            with_also(model__layers__0__self_attn__q_proj__bias=torch.zeros(32)),
            r"model\.layers\.0\.self_attn\.q_proj\.bias.*ignore",
        ),
        (
            with_also(model__layers__1__self_attn__q_norm__weight=torch.zeros(8)),
            r"model\.layers\.1\.self_attn\.q_norm\.weight.*ignore",
        ),
        (
            with_also(model__embed_tokens__weight_scale=torch.zeros(1)),
            r"model\.embed_tokens\.weight_scale.*ignore",
        ),
    ],
)
def test_weights_of_another_model_are_refused(saved, change, message, capfd):
    rewrite(saved, change)
    refused(message, saved)
    assert "REPORT" not in capfd.readouterr().err


def test_a_tied_unembedding_need_not_be_stored(saved):
    configure(saved, tie_word_embeddings=True)
    rewrite(saved, without("lm_head.weight"))
    model = load(saved)
    assert model.notes == ()
    assert model.unembedding.weight is model.hf.get_input_embeddings().weight


def test_what_takes_no_part_in_answers_is_told(saved):
    rewrite(saved, with_also(mtp__norm__weight=torch.ones(3), v_head__weight=torch.ones(3)))
    (note,) = load(saved).notes
    assert re.search(r"\bmtp\.norm\.weight, v_head\.weight.*ignores$", note)
    buffers = ("self_attn__rotary_emb__inv_freq", "self_attn__attention__masked_bias")
    for name in buffers:  # of old checkpoints
        rewrite(saved, with_also(**{f"model__layers__0__{name}": torch.ones(3)}))
        load(saved)


def test_counted_heads_after_the_layers_are_told(saved):
    configure(saved, num_nextn_predict_layers=1)
    rewrite(saved, with_also(model__layers__2__eh_proj__weight=torch.ones(3)))
    assert len(load(saved).notes) == 1
    rewrite(saved, with_also(model__layers__3__eh_proj__weight=torch.ones(3)))
    refused(r"model\.layers\.3\.eh_proj\.weight.*ignore", saved)


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", organism_names())
def test_organisms_are_complete(name, caplog):
    assert load(name).notes == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_hidden_layers": 3}, r"model\.layers\.2\.input_layernorm\.weight.*random"),
        ({"num_hidden_layers": 1}, r"model\.layers\.1\.input_layernorm\.weight.*ignore"),
        ({"num_hidden_layers": 0}, r"model\.layers\.0\.input_layernorm\.weight.*ignore"),
        ({"intermediate_size": 65}, r"down_proj\.weight.*\(32, 64\).*\(32, 65\)"),
        ({"model_type": "qwen3"}, r"model\.layers\.0\.self_attn\.k_norm\.weight.*random"),
        ({"model_type": "gpt2"}, r"transformer\.h\.0\b.*random"),
        ({"attention_bias": True}, r"model\.layers\.0\.self_attn\.k_proj\.bias.*random"),
        ({"num_hidden_layers": 10**20}, "specifies num_hidden_layers = 1e[+]20"),
        ({"num_hidden_layers": 10**7}, "specifies num_hidden_layers = 1e[+]07"),
        ({"num_hidden_layers": 1e20}, "config.json"),
        ({"num_labels": 10**8}, r"config\.json.*num_labels = 1e\+08\b.*\b700\b"),
        ({"model_type": "qwen2", "num_hidden_layers": 10**8}, "specifies num_hidden_layers"),
        ({"hidden_size": 10**7}, r"parameters.*\b63,392\b"),
        ({"hidden_size": 10**20}, "config.json"),
        ({"intermediate_size": 10**12}, r"parameters.*\b63,392\b"),
        ({"vocab_size": 10**12}, r"parameters.*\b63,392\b"),
        ({"model_type": "mixtral", "num_local_experts": 10**9}, "specifies num_local_experts"),
        (
            {"model_type": "gptj", "max_position_embeddings": 10**9, "vocab_size": 700, "n_embd": 4}
            | {"n_layer": 1, "n_head": 1, "rotary_dim": 4},
            r"tables.*\b(30|15) GiB\b",  # 15 since transformers 5.24, which has one table less
        ),
    ],
)
def test_another_configuration_is_refused_at_once(saved, settings, message):
    configure(saved, **settings)
    start = time.monotonic()
    refused(message, saved)
    assert time.monotonic() - start < 30


@pytest.mark.parametrize("model_type", ["gemma3", "gemma3_text", "llama", "gpt2", "mamba"])
def test_a_configuration_without_sizes_is_refused_at_once(saved, model_type):
    """Its defaults are those of a model with billions of parameters."""
    (saved / "config.json").write_text("{}")
    test_another_configuration_is_refused_at_once(
        saved, {"model_type": model_type}, r"parameters.*\b63,392\b"
    )


@pytest.mark.parametrize(
    ("kind", "size"),
    [("sliding_attention", "sliding_window"), ("chunked_attention", "attention_chunk_size")],
)
def test_layers_that_see_a_window_need_its_size(saved, kind, size):
    configure(saved, layer_types=[kind, "full_attention"])
    refused(rf"\b{kind}\b.*\b{size}\b", saved)
    configure(saved, **{size: 16}, max_position_embeddings=10**7)
    assert load(saved).context_length == 10**7  # which is none of the weights' business
