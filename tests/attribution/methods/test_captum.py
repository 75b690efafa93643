"""captum's methods behind the same call, against plain computations."""

import numpy as np
import pytest
import torch
from torch import nn

import interp
from interp.attribution.explained import ExplainedPrompt
from interp.attribution.registry import method_names
from interp.prompts.mixing import with_donors
from interp.prompts.own.pairs import EXAMPLE, read_pairs
from interp.reading.tokens import tokenize
from tests.attribution.test_attribution import compared_tokens
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level

CAPTUM = [name for name in method_names() if name.startswith("captum:")]


def by_method(model, prompts, methods, **options):
    """Completeness gaps by method and prompt, and the whole result."""
    methods = [f"captum:{method}" for method in methods]
    result = interp.attribute(
        model, prompts, methods=methods, target="contrast", keep_tokens=True, **options
    )
    gaps = result.segment_scores.groupby(["method", "prompt_id"])["completeness_gap"]
    assert (gaps.nunique() == 1).all()
    return gaps.first(), result


def contrast(model, prompt, embeddings):
    """The target by nothing but the model: positive minus negative, in their likeliest forms."""
    positive, negative = compared_tokens(model, prompt)
    logits = model.hf(inputs_embeds=embeddings).logits[:, -1]
    return logits[:, positive] - logits[:, negative]


def embeddings_of(model, prompt):
    (tokenized,) = tokenize(model, [prompt])
    table = model.hf.get_input_embeddings()
    with torch.no_grad():
        mean = table(torch.arange(len(model.tokenizer))).double().mean(0).float()
        return table(torch.tensor([tokenized.token_ids])), mean


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt2"])
def test_integrated_gradients_add_up(kind):
    gaps, _ = by_method(tiny_model(kind), some_prompts(1), ["integrated_gradients"])
    prompt = some_prompts(1)[0]
    model = tiny_model(kind)
    embeddings, mean = embeddings_of(model, prompt)
    with torch.no_grad():
        difference = contrast(model, prompt, embeddings)
        difference = difference - contrast(model, prompt, mean.expand_as(embeddings))
    gap = gaps.loc[("captum:integrated_gradients", prompt.id)]
    assert abs(gap) < 0.02 * max(abs(float(difference)), 1.0)


def test_input_x_gradient_equals_plain_autograd():
    model, prompt = tiny_model("llama"), some_prompts(1)[0]
    gaps, result = by_method(model, [prompt], ["input_x_gradient"])
    embeddings, _ = embeddings_of(model, prompt)
    embeddings.requires_grad_()
    (gradient,) = torch.autograd.grad(contrast(model, prompt, embeddings).sum(), embeddings)
    products = (gradient * embeddings)[0].sum(-1).detach()
    assert (products < 0).any()
    np.testing.assert_allclose(result.token_scores["score"], products, rtol=1e-4, atol=2e-6)
    with torch.no_grad():
        explained = contrast(model, prompt, embeddings)
        explained = explained - contrast(model, prompt, torch.zeros_like(embeddings))
    gap = gaps.loc[("captum:input_x_gradient", prompt.id)]
    assert gap == pytest.approx(float(products.sum() - explained), abs=1e-4)


def test_occlusion_equals_one_forward_pass_a_token():
    model, prompt = tiny_model("llama"), some_prompts(1)[0]
    _, result = by_method(model, [prompt], ["occlusion"])
    embeddings, mean = embeddings_of(model, prompt)
    effects = []
    with torch.no_grad():
        whole = contrast(model, prompt, embeddings)
        for token in range(embeddings.shape[1]):
            occluded = embeddings.clone()
            occluded[0, token] = mean
            effects.append(float(whole - contrast(model, prompt, occluded)))
    assert min(effects) < 0 < max(effects)
    np.testing.assert_allclose(result.token_scores["score"], effects, atol=5e-6)


def test_deep_lift_adds_up_on_one_activation_function():
    """Attention silenced and norms removed, a ReLU is all that is not linear: its rule is exact."""
    model = make_tiny("gpt2", byte_level())
    for block in model.hf.transformer.h:
        block.mlp.act = nn.ReLU()
        with torch.no_grad():
            block.attn.c_attn.weight.zero_()
    for module in model.hf.modules():
        if isinstance(module, nn.LayerNorm):
            module.forward = lambda hidden_states: hidden_states
    prompts = some_prompts(1)
    gaps, _ = by_method(model, prompts, ["deep_lift", "input_x_gradient"])
    embeddings, mean = embeddings_of(model, prompts[0])
    with torch.no_grad():
        explained = contrast(model, prompts[0], embeddings)
        explained = explained - contrast(model, prompts[0], mean.expand_as(embeddings))
    gap = gaps.loc[("captum:deep_lift", prompts[0].id)]
    assert abs(gap) < 1e-4 * max(1.0, abs(float(explained)))
    linear = gaps.loc[("captum:input_x_gradient", prompts[0].id)]
    assert abs(linear) > 20 * abs(gap)


def test_deep_lift_refuses_what_it_has_no_rule_for():
    with pytest.raises(interp.UserError, match=r"SiLUActivation.*ReLU"):
        interp.attribute(tiny_model("llama"), some_prompts(1), methods=["captum:deep_lift"])


def test_they_stand_beside_the_native_methods():
    model, prompts = tiny_model("gpt2"), some_prompts(2)
    methods = ["input_gradient", "captum:occlusion", "attention"]
    found = interp.attribute(model, prompts, methods=methods)
    both = found.segment_scores.set_index("method")
    alone = interp.attribute(model, prompts).segment_scores.set_index("method")
    assert list(dict.fromkeys(both.index)) == methods
    for method in ("input_gradient", "attention"):
        np.testing.assert_allclose(both.loc[method, "score"], alone.loc[method, "score"], rtol=1e-6)
    gaps = both["completeness_gap"].notna()
    assert gaps.tolist() == (both.index == "captum:occlusion").tolist()
    assert found.summary()["captum:occlusion_mean_ratio"].notna().all()


def test_the_gap_is_what_the_stored_scores_lack(organism):
    """Integrated gradients add up from the tables alone: raw, signed, by segment."""
    prompt = some_prompts(1)[0]
    _, result = by_method(organism, [prompt], ["integrated_gradients"])
    rows = result.segment_scores
    embeddings, _ = embeddings_of(organism, prompt)
    table = organism.hf.get_input_embeddings()
    with torch.no_grad():
        ids = torch.arange(organism.hf.config.vocab_size)
        baseline = table(ids).double().mean(0).float().expand_as(embeddings)
        difference = contrast(organism, prompt, embeddings) - contrast(organism, prompt, baseline)
    assert abs(float(difference)) > 1
    gap = rows["completeness_gap"].iloc[0]
    assert rows["score"].sum() - gap == pytest.approx(float(difference), abs=1e-3)
    assert result.token_scores["score"].sum() == pytest.approx(rows["score"].sum(), abs=1e-4)
    assert abs(gap) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("method", ["integrated_gradients", "occlusion", "input_x_gradient"])
def test_passes_keep_to_the_budget_and_shrink_when_memory_ends(method, monkeypatch):
    model, prompt = tiny_model("llama"), some_prompts(1)[0]
    _, expected = by_method(model, [prompt], [method])
    width = len(expected.tokens)
    sizes = []
    value = ExplainedPrompt.value

    def small(self, embeddings):
        sizes.append(len(embeddings))
        if len(embeddings) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return value(self, embeddings)

    monkeypatch.setattr(ExplainedPrompt, "value", small)
    _, got = by_method(model, [prompt], [method], batch_tokens=16 * width)
    if method != "input_x_gradient":
        assert max(sizes) == 16
        assert sizes.count(16) == sizes.count(8) == sizes.count(4) == 1  # not tried again
    np.testing.assert_allclose(
        got.token_scores["score"], expected.token_scores["score"], rtol=1e-4, atol=1e-6
    )
    sizes.clear()
    by_method(model, [prompt], [method], batch_tokens=1)
    assert set(sizes) == {1}


def test_models_are_left_as_they_were():
    model = make_tiny("llama", byte_level())
    methods = [method for method in CAPTUM if method != "captum:deep_lift"]
    interp.attribute(model, some_prompts(1), methods=methods)
    assert all(parameter.requires_grad for parameter in model.hf.parameters())
    assert all(not module._forward_hooks for module in model.hf.modules())


def test_a_single_segment_has_all_that_it_makes():
    """captum draws no coalitions of one player; leave-one-out gives the same by its own passes."""
    pairs = read_pairs(EXAMPLE.drop(columns=["premise1", "question"]))
    prompts = with_donors(pairs, count=3)
    methods = ("captum:kernel_shap", "leave_one_out:donor")
    table = interp.attribute(tiny_model("llama"), prompts, methods=methods).segment_scores
    assert (table["error"] == "").all()
    scores = table[table["segment"] == "premise2"].pivot(
        index="prompt_id", columns="method", values="score"
    )
    assert scores.abs().max().min() > 0
    np.testing.assert_allclose(*scores.to_numpy().T, rtol=1e-5)
