"""captum's methods behind the same call, against plain computations."""

import numpy as np
import pytest
import torch
from torch import nn

import interp
from interp.choices import CAPTUM_METHODS
from interp.reading.tokens import tokenize
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level


def by_method(model, prompts, methods, **options):
    result = interp.attribute(model, prompts, methods=methods, target="contrast", **options)
    return result.attributions.set_index(["method", "prompt_id"]), result


def contrast(model, prompt, embeddings):
    """The target by nothing but the model: positive minus negative, in their likeliest forms."""
    (tokenized,) = tokenize(model, [prompt])
    with torch.no_grad():
        own = model.hf(torch.tensor([tokenized.token_ids])).logits[0, -1]

    def first(form):
        return model.tokenizer(form, add_special_tokens=False)["input_ids"][0]

    tokens = [
        max(map(first, option.forms), key=lambda token: float(own[token]))
        for option in prompt.answer.options
    ]
    logits = model.hf(inputs_embeds=embeddings).logits[:, -1]
    return logits[:, tokens[0]] - logits[:, tokens[1]]


def embeddings_of(model, prompt):
    (tokenized,) = tokenize(model, [prompt])
    table = model.hf.get_input_embeddings()
    with torch.no_grad():
        mean = table(torch.arange(len(model.tokenizer))).double().mean(0).float()
        return table(torch.tensor([tokenized.token_ids])), mean


@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt2"])
def test_integrated_gradients_add_up(kind):
    rows, _ = by_method(tiny_model(kind), some_prompts(1), ["integrated_gradients"])
    prompt = some_prompts(1)[0]
    model = tiny_model(kind)
    embeddings, mean = embeddings_of(model, prompt)
    with torch.no_grad():
        difference = contrast(model, prompt, embeddings)
        difference = difference - contrast(model, prompt, mean.expand_as(embeddings))
    gap = rows.loc[("integrated_gradients", prompt.id), "completeness_gap"]
    assert abs(gap) < 0.02 * max(abs(float(difference)), 1.0)


def test_input_x_gradient_equals_plain_autograd():
    model, prompt = tiny_model("llama"), some_prompts(1)[0]
    rows, result = by_method(model, [prompt], ["input_x_gradient"], token_scores=True)
    embeddings, _ = embeddings_of(model, prompt)
    embeddings.requires_grad_()
    (gradient,) = torch.autograd.grad(contrast(model, prompt, embeddings).sum(), embeddings)
    products = (gradient * embeddings)[0].sum(-1).detach()
    expected = products.abs() / products.abs().sum()
    np.testing.assert_allclose(result.token_scores["score"], expected, atol=2e-6)
    with torch.no_grad():
        explained = contrast(model, prompt, embeddings)
        explained = explained - contrast(model, prompt, torch.zeros_like(embeddings))
    gap = rows.loc[("input_x_gradient", prompt.id), "completeness_gap"]
    assert gap == pytest.approx(float(products.sum() - explained), abs=1e-4)


def test_occlusion_equals_one_forward_pass_a_token():
    model, prompt = tiny_model("llama"), some_prompts(1)[0]
    _, result = by_method(model, [prompt], ["occlusion"], token_scores=True)
    embeddings, mean = embeddings_of(model, prompt)
    effects = []
    with torch.no_grad():
        whole = contrast(model, prompt, embeddings)
        for token in range(embeddings.shape[1]):
            occluded = embeddings.clone()
            occluded[0, token] = mean
            effects.append(float(whole - contrast(model, prompt, occluded)))
    expected = np.abs(effects) / np.abs(effects).sum()
    np.testing.assert_allclose(result.token_scores["score"], expected, atol=5e-6)


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
    rows, _ = by_method(model, prompts, ["deep_lift", "input_x_gradient"])
    embeddings, mean = embeddings_of(model, prompts[0])
    with torch.no_grad():
        explained = contrast(model, prompts[0], embeddings)
        explained = explained - contrast(model, prompts[0], mean.expand_as(embeddings))
    gap = rows.loc[("deep_lift", prompts[0].id), "completeness_gap"]
    assert abs(gap) < 1e-4 * max(1.0, abs(float(explained)))
    linear = rows.loc[("input_x_gradient", prompts[0].id), "completeness_gap"]
    assert abs(linear) > 20 * abs(gap)


def test_deep_lift_refuses_what_it_has_no_rule_for():
    with pytest.raises(interp.UserError, match="no rule for SiLU"):
        interp.attribute(tiny_model("llama"), some_prompts(1), methods=["deep_lift"])


def test_they_stand_beside_the_native_methods():
    model, prompts = tiny_model("gpt2"), some_prompts(2)
    methods = ["gradient", "occlusion", "attention"]
    both = interp.attribute(model, prompts, methods=methods).attributions
    alone = interp.attribute(model, prompts).attributions
    assert set(both["method"]) == set(methods)
    for method in ("gradient", "attention"):
        one, other = (frame[frame["method"] == method] for frame in (both, alone))
        np.testing.assert_allclose(one["ratio"], other["ratio"], rtol=1e-6)
        assert one["completeness_gap"].isna().all()
    occluded = both[both["method"] == "occlusion"]
    assert occluded["completeness_gap"].notna().all()


def test_scores_are_shares_and_models_are_left_as_they_were():
    model = make_tiny("llama", byte_level())
    methods = [method for method in CAPTUM_METHODS if method != "deep_lift"]
    result = interp.attribute(model, some_prompts(1), methods=methods, token_scores=True)
    sums = result.token_scores.groupby(["prompt_id", "method"])["score"].sum()
    np.testing.assert_allclose(sums, 1.0, atol=1e-5)
    assert all(parameter.requires_grad for parameter in model.hf.parameters())
    assert all(not module._forward_hooks for module in model.hf.modules())


def test_further_methods_follow_in_the_attribution_table():
    result = interp.attribute(tiny_model("gpt2"), some_prompts(2), methods=["occlusion"])
    table = result.summary()
    assert table["occlusion_ratio"].notna().all()
    assert table["gradient_ratio"].isna().all()
