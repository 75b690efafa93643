"""Attention rollout and value-weighted norms, by numpy on what eager attention gives."""

import re

import numpy as np
import pytest
import torch

import interp
from interp.attribution.registry import method_names
from interp.measurements.specs import Attribute
from interp.measuring.core import bind
from interp.reading.tokens import tokenize
from tests.support.other_kinds import classifier
from tests.support.other_models import other_model
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level

KINDS = ["llama", "phi3", "gemma2", "gpt2", "gpt_neox"]


def scores(model, prompts, method):
    result = interp.attribute(model, prompts, methods=[method], keep_tokens=True)
    return result.token_scores.set_index("prompt_id")["score"]


def eager_pass(kind, prompt):
    """Attention weights and inputs of the attention, layer by layer."""
    model = make_tiny(kind, byte_level(), attn="eager")
    (tokenized,) = tokenize(model, [prompt])
    inputs, handles = [], []
    for layer in model.hf.get_submodule(model.architecture.layers):
        attention = layer.get_submodule(model.architecture.attention)
        module = attention.get_submodule(model.architecture.qkv[2])
        handles.append(module.register_forward_hook(lambda m, i, o: inputs.append(o[0])))
    with torch.no_grad():
        output = model.hf(torch.tensor([tokenized.token_ids]), output_attentions=True)
    for handle in handles:
        handle.remove()
    return model, [a[0].numpy() for a in output.attentions], inputs


@pytest.mark.parametrize("kind", KINDS)
def test_rollout_is_the_product_of_half_attention_and_half_identity(kind):
    prompts = some_prompts(1)
    found = scores(tiny_model(kind), prompts, "attention_rollout")
    for prompt in prompts:
        _, layers, _ = eager_pass(kind, prompt)
        product = np.eye(len(layers[0][0]))
        for weights in layers:
            product = (weights.mean(0) + np.eye(len(product))) / 2 @ product
        np.testing.assert_allclose(found[prompt.id], product[-1], rtol=1e-4, atol=1e-6)
        assert found[prompt.id].sum() == pytest.approx(1.0, abs=1e-5)


def test_what_sinks_take_is_left_to_the_others():
    prompt = some_prompts(1)[0]
    found = scores(other_model("gpt_oss"), [prompt], "attention_rollout")
    assert found.sum() == pytest.approx(1.0, abs=1e-5)


def values_of(model, kind, output):
    """The values of each head by the layout of each architecture, written out: (token, head, 8)."""
    tokens = len(output)
    if kind in {"llama", "gemma2"}:
        return output.reshape(tokens, 2, 8).repeat_interleave(2, 1)
    if kind == "phi3":
        return output[:, 48:].reshape(tokens, 2, 8).repeat_interleave(2, 1)
    if kind == "gpt2":
        return output[:, 64:].reshape(tokens, 4, 8)
    return output.reshape(tokens, 4, 24)[:, :, 16:]


@pytest.mark.parametrize("kind", KINDS)
def test_value_weighted_norms_are_those_of_each_heads_part(kind):
    prompts = some_prompts(1)
    found = scores(tiny_model(kind), prompts, "value_weighted_norm")
    for prompt in prompts:
        model, layers, outputs = eager_pass(kind, prompt)
        expected = np.zeros(len(layers[0][0]))
        for layer, weights, output in zip(
            model.hf.get_submodule(model.architecture.layers), layers, outputs, strict=True
        ):
            attention = layer.get_submodule(model.architecture.attention)
            projection = attention.get_submodule(model.architecture.heads_out).weight.detach()
            if kind != "gpt2":  # whose weights are transposed
                projection = projection.T
            values = values_of(model, kind, output)
            for head in range(4):
                part = projection.numpy()[8 * head : 8 * head + 8]
                brought = weights[head, -1][:, None] * (values[:, head].numpy() @ part)
                expected += np.linalg.norm(brought, axis=1) / 4 / len(layers)
        np.testing.assert_allclose(found[prompt.id], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", ["attention_rollout", "value_weighted_norm"])
def test_encoders_are_refused_with_what_to_take_instead(method):
    with pytest.raises(interp.UserError, match=rf"\b{method}\b.*encoders.*--methods") as error:
        bind(Attribute(methods=(method,)), classifier("bert"))
    named = [name for name in method_names() if re.search(rf"\b{name}\b", str(error.value))]
    others = tuple(name for name in named if name != method)
    assert len(others) >= 3
    bind(Attribute(methods=others), classifier("bert"))
