import pytest
import torch
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from interp.models.attention_rows import answer_attention, query_row
from interp.reading.tokens import pad, tokenize
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import byte_level


def forward(model, batch):
    with model.measuring(), torch.no_grad(), answer_attention(model) as rows:
        model.hf(
            input_ids=batch.token_ids,
            attention_mask=batch.attention_mask,
            position_ids=batch.position_ids,
            use_cache=False,
        )
    return rows


@pytest.mark.parametrize("kind", [kind for kind in CONFIGS if kind != "gemma2"])
def test_recomputed_rows_equal_eager_attention(kind, prompts):
    fused = make_tiny(kind, byte_level(), attn="sdpa")
    eager = make_tiny(kind, byte_level(), attn="eager")
    batch = pad(fused, tokenize(fused, list(prompts)))
    recomputed, read = forward(fused, batch), forward(eager, batch)
    assert len(recomputed) == len(read) == fused.hf.config.num_hidden_layers
    real = batch.attention_mask.bool()
    for one, other in zip(recomputed, read, strict=True):
        torch.testing.assert_close(one[real], other[real], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(one.sum(-1), torch.ones(len(one)), rtol=0, atol=1e-5)
        assert (one[~real] == 0).all()


@pytest.mark.parametrize("at", [-1, 0])
@pytest.mark.parametrize("softcap", [2.0, None])
def test_soft_caps_and_windows_are_honoured(at, softcap):
    torch.manual_seed(0)
    query, key = torch.randn(2, 4, 9, 8), torch.randn(2, 2, 9, 8)
    row = query_row(query, key, None, at, scaling=3.0, softcap=softcap, sliding_window=5)
    logits = query[:, :, [at]] @ key.repeat_interleave(2, 1).transpose(2, 3) * 3.0
    if softcap:
        logits = torch.tanh(logits / softcap) * softcap
    logits[..., slice(4) if at else slice(5, None)] = -torch.inf
    torch.testing.assert_close(row, logits.softmax(-1).squeeze(2))


def test_sinks_take_their_part():
    torch.manual_seed(0)
    query, key, sinks = torch.randn(1, 2, 4, 8), torch.randn(1, 2, 4, 8), torch.randn(2)
    weights = torch.exp(query[:, :, -1:] @ key.transpose(2, 3) * 0.5).squeeze(2)
    expected = weights / (weights.sum(-1, keepdim=True) + sinks.exp()[None, :, None])
    torch.testing.assert_close(query_row(query, key, None, scaling=0.5, s_aux=sinks), expected)


def test_padding_masks_over_keys_are_honoured():
    query, key = torch.randn(1, 2, 4, 8), torch.randn(1, 2, 4, 8)
    row = query_row(query, key, torch.tensor([[0, 1, 1, 1]]))
    assert (row[..., 0] == 0).all()
    torch.testing.assert_close(row.sum(-1), torch.ones(1, 2))


@pytest.mark.parametrize("attn", ["sdpa", "eager"])
def test_nothing_is_left_behind_after_an_exception(attn, prompts):
    model = make_tiny("llama", byte_level(), attn=attn)
    before = ALL_ATTENTION_FUNCTIONS["sdpa"]
    with pytest.raises(RuntimeError, match="halfway"), answer_attention(model):
        raise RuntimeError("halfway")
    assert ALL_ATTENTION_FUNCTIONS["sdpa"] is before
    assert not any(module._forward_hooks for module in model.hf.modules())


def test_other_models_are_not_recorded(prompts):
    model, other = tiny_model("llama"), tiny_model("qwen2")
    batch = pad(other, tokenize(other, list(prompts)))
    with torch.no_grad(), answer_attention(model) as rows:
        other.hf(input_ids=batch.token_ids)
    assert rows == []
