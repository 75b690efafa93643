"""Parity with inseq, the paper's implementation, run on the same token ids."""

import numpy as np
import pytest
import torch

import interp
from interp.models.organisms import DEFAULT
from tests.support.other_models import other_model
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level

pytest.importorskip("inseq", reason="the peer is not installed")

TOKEN_TOLERANCE = 1e-5
RATIO_TOLERANCE = 1e-4

SIX = ("llama", "mistral", "phi3", "gemma2", "qwen2", "gpt2")


INSEQ = {"input_gradient": "inseq:saliency", "attention": "inseq:attention"}


def differences(model, prompts, *, reference=None, methods=tuple(INSEQ), **options):
    """Largest difference of token shares, and of ratios in relation, to inseq on `reference`."""
    native, inseq = (
        interp.attribute(read, prompts, keep_tokens=True, methods=list(names), **options)
        for read, names in (
            (model, methods),
            (reference or model, [INSEQ[method] for method in methods]),
        )
    )
    assert native.tokens.drop(columns="model").equals(inseq.tokens.drop(columns="model"))
    ours, theirs = native.token_shares(), inseq.token_shares()
    assert ours["method"].map(INSEQ).equals(theirs["method"])
    assert ours[["prompt_id", "position"]].equals(theirs[["prompt_id", "position"]])
    ratios = [result.ratios("premise2", "premise1")["ratio"] for result in (native, inseq)]
    return (ours["share"] - theirs["share"]).abs().max(), (ratios[0] / ratios[1] - 1).abs().max()


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


@pytest.mark.quick(1)
@pytest.mark.parametrize("target", ["predicted", "gold", "contrast"])
def test_parity_on_the_organism(organism, prompts, target):
    """Our float32 scores against inseq's in float64.

    A trained model is sure of its answers, and inseq differentiates their probability: in float32
    that costs it digits (9e-6 here), which say nothing of ours.
    """
    double = interp.load_model(DEFAULT, device="cpu", dtype="float64")
    assert_parity(organism, prompts, reference=double, target=target)


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    "model",
    [
        lambda: tiny_model("llama", dtype=torch.float64),
        lambda: interp.load_model(DEFAULT, device="cpu", dtype="float64"),
    ],
    ids=["random", "organism"],
)
def test_parity_in_float64_is_closer(model, prompts):
    tokens, ratios = differences(model(), list(prompts)[:8])
    assert tokens < 1e-6  # inseq hands its scores over as float32
    assert ratios < 1e-5


@pytest.mark.parametrize("kind", ["llama", "gemma2"])
def test_raw_scores_are_inseqs_own_where_the_target_is_the_same(kind, prompts):
    """The contrast is a difference of logits on both sides; log-odds and probability are not."""
    model, few = tiny_model(kind), list(prompts)[:4]
    result = interp.attribute(
        model, few, methods=[*INSEQ, *INSEQ.values()], target="contrast", keep_tokens=True
    )
    scores = result.token_scores.pivot(
        index=["prompt_id", "position"], columns="method", values="score"
    )
    for ours, theirs in INSEQ.items():
        np.testing.assert_allclose(scores[ours], scores[theirs], rtol=1e-3, atol=1e-6)


def test_raw_saliency_of_a_probability_is_ours_times_p_one_minus_p(prompts):
    model, few = tiny_model("llama", dtype=torch.float64), list(prompts)[:4]
    methods = ["input_gradient", "inseq:saliency"]
    result = interp.attribute(model, few, methods=methods)
    totals = result.segment_scores.groupby(["prompt_id", "method"])["total"].first().unstack()
    p = result.answers.set_index("prompt_id")["predicted_probability"]
    expected = totals["input_gradient"] * p * (1 - p)
    np.testing.assert_allclose(totals["inseq:saliency"], expected[totals.index], rtol=1e-4)


def test_model_and_tokenizer_are_left_as_they_were(prompts):
    model = make_tiny("llama", byte_level())
    model.hf.config.bos_token_id = model.hf.config.pad_token_id = None
    unknown = model.tokenizer.unk_token
    interp.attribute(model, list(prompts)[:2], methods=list(INSEQ.values()))
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
        tokenizer.pad_token = "<u>"  # is in every prompt, as eos does in chats with pad = eos
        model.hf.config.pad_token_id = tokenizer.pad_token_id
        assert_parity(model, list(prompts)[:4])
    finally:
        tokenizer.pad_token = before
