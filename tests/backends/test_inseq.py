"""Parity with inseq, the paper's implementation, run on the same token ids."""

import pytest
import torch

import interp
from interp.attribution import gradient, one_pass
from interp.models.organisms import DEFAULT
from tests.support.other_kinds import classifier
from tests.support.other_models import other_model
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level

pytest.importorskip("inseq", reason="the extra inseq is not installed")

TOKEN_TOLERANCE = 1e-5
RATIO_TOLERANCE = 1e-4

SIX = ("llama", "mistral", "phi3", "gemma2", "qwen2", "gpt2")


def differences(model, prompts, *, reference=None, **options):
    """Largest difference of token scores, and of ratios in relation, to inseq on `reference`."""
    native = interp.attribute(model, prompts, token_scores=True, **options)
    inseq = interp.attribute(
        reference or model, prompts, token_scores=True, backend="inseq", **options
    )
    keys = ["prompt_id", "method", "position", "token"]
    assert native.token_scores[keys].equals(inseq.token_scores[keys])
    tokens = (native.token_scores["score"] - inseq.token_scores["score"]).abs()
    ratios = (native.to_frame()["ratio"] / inseq.to_frame()["ratio"] - 1).abs()
    return tokens.max(), ratios.max()


def assert_parity(model, prompts, **options):
    tokens, ratios = differences(model, prompts, **options)
    assert tokens < TOKEN_TOLERANCE
    assert ratios < RATIO_TOLERANCE


@pytest.mark.parametrize("kind", SIX)
def test_parity_on_random_models(kind, prompts):
    assert_parity(tiny_model(kind), list(prompts)[:8])


def test_parity_where_sinks_take_a_part_of_the_attention(prompts):
    model = other_model("gpt_oss")
    assert_parity(model, list(prompts)[:4], methods=["attention"])


@pytest.mark.parametrize("target", ["predicted", "gold", "contrast"])
def test_parity_on_the_organism(organism, prompts, target):
    """Our float32 scores against inseq's in float64.

    A trained model is sure of its answers, and inseq differentiates their probability: in float32
    that costs it digits (9e-6 here), which say nothing of ours.
    """
    double = interp.load_model(DEFAULT, device="cpu", dtype="float64")
    assert_parity(organism, prompts, reference=double, target=target)


def test_parity_on_the_organism_in_float64_on_both_sides(prompts):
    double = interp.load_model(DEFAULT, device="cpu", dtype="float64")
    tokens, ratios = differences(double, prompts)
    assert tokens < 1e-6
    assert ratios < 1e-5


def test_where_the_model_is_sure_float32_still_equals_inseq_in_float64(prompts):
    models = []
    for dtype in ("float32", "float64"):
        model = interp.load_model(DEFAULT, device="cpu", dtype=dtype)
        with torch.no_grad():
            model.hf.model.norm.weight.mul_(3.0)  # logits three times as far apart
        models.append(model)
    assert_parity(models[0], list(prompts)[:8], reference=models[1])


def test_parity_in_float64_is_closer(prompts):
    model = tiny_model("llama", dtype=torch.float64)
    tokens, ratios = differences(model, list(prompts)[:8])
    assert tokens < 1e-6  # inseq hands its scores over as float32
    assert ratios < 1e-5


def test_a_broken_scorer_is_caught(prompts, monkeypatch):
    def shifted_by_one(objective, embeddings, batch):
        return torch.roll(gradient.gradient_scores(objective, embeddings, batch), 1, dims=-1)

    monkeypatch.setattr(one_pass, "gradient_scores", shifted_by_one)
    tokens, ratios = differences(tiny_model("llama"), list(prompts)[:4])
    assert tokens > TOKEN_TOLERANCE
    assert ratios > RATIO_TOLERANCE


def test_a_scorer_that_forgets_the_norm_is_caught(prompts, monkeypatch):
    def summed(objective, embeddings, batch):
        (grad,) = torch.autograd.grad(objective.sum(), embeddings)
        scores = grad.sum(-1).abs().masked_fill(batch.attention_mask == 0, 0.0)
        return scores / scores.sum(-1, keepdim=True)

    monkeypatch.setattr(one_pass, "gradient_scores", summed)
    tokens, ratios = differences(tiny_model("llama"), list(prompts)[:4])
    assert tokens > TOKEN_TOLERANCE
    assert ratios > RATIO_TOLERANCE


def test_a_scorer_that_averages_the_wrong_rows_is_caught(prompts, monkeypatch):
    original = one_pass.attention_scores
    monkeypatch.setattr(one_pass, "attention_scores", lambda rows, batch: original(rows[:1], batch))
    tokens, ratios = differences(tiny_model("llama"), list(prompts)[:4])
    assert tokens > TOKEN_TOLERANCE
    assert ratios > RATIO_TOLERANCE


def test_model_and_tokenizer_are_left_as_they_were(prompts):
    model = make_tiny("llama", byte_level())
    model.hf.config.bos_token_id = model.hf.config.pad_token_id = None
    unknown = model.tokenizer.unk_token
    interp.attribute(model, list(prompts)[:2], backend="inseq")
    assert model.attn_implementation == "sdpa"
    assert model.hf.config.bos_token_id is None
    assert model.hf.config.pad_token_id is None
    assert model.tokenizer.unk_token == unknown
    assert all(parameter.requires_grad for parameter in model.hf.parameters())


def test_a_padding_token_that_equals_a_prompt_token_deletes_nothing(prompts):
    tokenizer = byte_level()
    model = make_tiny("llama", tokenizer)
    before = tokenizer.pad_token
    try:
        tokenizer.pad_token = "<u>"  # stands in every prompt, as eos does in chats with pad = eos
        model.hf.config.pad_token_id = tokenizer.pad_token_id
        assert_parity(model, list(prompts)[:4])
    finally:
        tokenizer.pad_token = before


def test_other_kinds_of_models_are_refused(prompts):
    with pytest.raises(interp.UserError, match="inseq takes causal language models"):
        interp.attribute(classifier("roberta"), prompts, backend="inseq")
