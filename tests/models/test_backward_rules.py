"""Backward rules on random models, against finite differences and closed forms."""

import copy
from contextlib import ExitStack

import numpy as np
import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, GPTJForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import interp
from interp.errors import UserError
from interp.models.attention_rows import query_row
from interp.models.backward_rules import (
    FROZEN_NORMS,
    GIM,
    PLAIN,
    BackwardRules,
    _with_share,
    backward_rules,
    norm_form,
    open_attention,
)
from interp.models.families.modules import ARCHITECTURES, ENCODERS
from interp.models.model import Model
from interp.models.sites import hooked, replaced
from tests.support.other_kinds import CLASSIFIERS, classifier
from tests.support.other_models import other_model
from tests.support.tiny import CONFIGS, tiny_model
from tests.support.tokenizers import byte_level

MAPPED = [*ARCHITECTURES, *ENCODERS]
# Since transformers 5.24, that of GPT-J is.
OWN_ATTENTION = ("bloom", "gpt_neo", "xglm", *["gptj"] * (not GPTJForCausalLM._supports_sdpa))
"""Architectures whose attention is not computed through transformers' interface."""

ATTENTION_IN_FP32 = ("gpt_neo", "gptj", "xglm")
"""Architectures that compute attention in fp32, whatever they are given, or only run in fp32."""

IDS = torch.tensor([[9, 30, 12, 77, 41, 8], [5, 60, 33, 21, 11, 90]])


def mapped_model(kind, dtype=torch.float32):
    if kind in CLASSIFIERS:
        model = classifier(kind)
        return Model(model.name, copy.deepcopy(model.hf).to(dtype), model.tokenizer)
    return tiny_model(kind, dtype=dtype) if kind in CONFIGS else other_model(kind, dtype=dtype)


def embedded(model):
    return model.hf.get_input_embeddings()(IDS).detach()


def target(model, embeddings):
    logits = model.hf(inputs_embeds=embeddings).logits
    logits = logits[:, -1] if logits.dim() == 3 else logits
    return (logits[:, 1] - logits[:, 2]).sum()


def gradient(model, rules):
    embeddings = embedded(model).requires_grad_()
    with model.measuring(), backward_rules(model, rules):
        value = target(model, embeddings)
        (found,) = torch.autograd.grad(value, embeddings)
    return float(value.detach()), found


@pytest.mark.parametrize("kind", MAPPED)
def test_rules_change_the_gradient_alone_and_leave_nothing_behind(kind):
    model = mapped_model(kind)
    value, own = gradient(model, PLAIN)
    attention = model.attn_implementation
    forwards = {module: module.forward for module in model.hf.modules()}
    for rules in (FROZEN_NORMS,) if kind in OWN_ATTENTION else (FROZEN_NORMS, GIM):
        ruled_value, ruled = gradient(model, rules)
        assert ruled_value == pytest.approx(value, abs=2e-5)
        assert (ruled - own).norm() > 1e-3 * own.norm()
    assert all(module.forward == forward for module, forward in forwards.items())
    assert not any(module._forward_hooks for module in model.hf.modules())
    assert model.attn_implementation == attention
    again_value, again = gradient(model, PLAIN)
    assert again_value == value
    torch.testing.assert_close(again, own, rtol=0, atol=0)


def held_constant(module, denominator):
    """The norm's own formula, written out by class, with denominators that are given."""
    name, weight = type(module).__name__, module.weight

    def forward(x):
        if isinstance(module, nn.LayerNorm):
            bias = 0 if module.bias is None else module.bias
            return (x - x.mean(-1, keepdim=True)) / denominator * weight + bias
        return x / denominator * (1 + weight if name.startswith("Gemma") else weight)

    return forward


def denominator_of(module, x):
    if isinstance(module, nn.LayerNorm):
        return torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + module.eps)
    epsilon = module.eps if hasattr(module, "eps") else module.variance_epsilon
    return torch.sqrt(x.pow(2).mean(-1, keepdim=True) + epsilon)


@pytest.mark.parametrize("kind", MAPPED)
def test_frozen_norms_equal_finite_differences_with_constant_denominators(kind, monkeypatch):
    # Eager attention takes its softmax in fp32, too coarse for a difference.
    monkeypatch.setattr(nn.functional, "softmax", lambda x, dim, dtype=None: torch.softmax(x, dim))
    precise = kind not in ATTENTION_IN_FP32
    model = mapped_model(kind, dtype=torch.float64 if precise else torch.float32)
    _, found = gradient(model, FROZEN_NORMS)
    embeddings, denominators = embedded(model), {}

    def record(module, inputs, output):
        denominators[module] = denominator_of(module, inputs[0])

    norms = [own for own in model.hf.modules() if "Norm" in type(own).__name__]
    hooks = [module.register_forward_hook(record) for module in norms]
    with model.measuring(), torch.no_grad(), hooked(*hooks):
        target(model, embeddings)
    layers = model.hf.get_submodule(model.architecture.layers)
    in_layer = 1 if model.architecture.parallel else 2
    assert len(denominators) >= in_layer * len(list(layers))
    with torch.no_grad(), ExitStack() as stack:
        for module, denominator in denominators.items():
            stack.enter_context(replaced(module, held_constant(module, denominator)))
        for seed in range(3):
            generator = torch.Generator().manual_seed(seed)
            direction = torch.randn(embeddings.shape, generator=generator, dtype=found.dtype)
            size = 1e-5 if precise else 1e-3
            step = size * direction
            difference = target(model, embeddings + step) - target(model, embeddings - step)
            expected = float((found * direction).sum())
            # The norms of transformers work in fp32, whatever they are given.
            tolerance = {"rel": 2e-5, "abs": 1e-5} if precise else {"rel": 2e-3, "abs": 1e-3}
            assert float(difference) / (2 * size) == pytest.approx(expected, **tolerance)


def one_layer_gpt2():
    torch.manual_seed(1)
    config = GPT2Config(vocab_size=700, n_embd=8, n_layer=1, n_head=2, n_positions=16)
    hf = GPT2LMHeadModel(config).double().eval()
    with torch.no_grad():
        hf.transformer.h[0].attn.c_attn.weight.mul_(40.0)
    return Model("one layer", hf, byte_level())


def kept(modules, model, rules):
    """What modules return, or an "input" reads, with its gradient, of a pass under the rules."""
    found, handles = {}, []
    for name, module in modules.items():

        def keep(module, inputs, output, name=name):
            found[name] = inputs[0] if name == "input" else output
            found[name].retain_grad()

        handles.append(module.register_forward_hook(keep))
    with hooked(*handles), model.measuring(), backward_rules(model, rules):
        target(model, embedded(model).requires_grad_()).backward()
    return found


def test_gim_in_attention_is_its_closed_form():
    """Of one layer, by hand: from the gradient at the heads' outputs back to q, k and v."""
    model = one_layer_gpt2()
    attention = model.hf.transformer.h[0].attn
    found = kept({"qkv": attention.c_attn, "input": attention.c_proj}, model, GIM)
    rows, tokens, heads, size = *IDS.shape, 2, 4
    qkv = found["qkv"].detach().numpy().reshape(rows, tokens, 3, heads, size)
    at_heads = found["input"].grad.numpy().reshape(rows, tokens, heads, size)
    gradients = found["qkv"].grad.numpy().reshape(rows, tokens, 3, heads, size)
    for row in range(rows):
        for head in range(heads):
            q, k, v = (qkv[row, :, part, head] for part in range(3))
            g = at_heads[row, :, head]
            scores = q @ k.T / 2.0  # the root of the size
            hidden = np.triu(np.ones((tokens, tokens), bool), 1)

            def softmax(x, hidden=hidden):
                weights = np.where(hidden, 0.0, np.exp(x))
                return weights / weights.sum(1, keepdims=True)

            p, flat = softmax(scores), softmax(scores / 2.0)
            at_weights = g @ v.T
            at_scores = flat * (at_weights - (at_weights * flat).sum(1, keepdims=True))
            expected = (at_scores @ k / 2 / 4, at_scores.T @ q / 2 / 4, p.T @ g / 2)
            for part, own in enumerate(expected):
                np.testing.assert_allclose(gradients[row, :, part, head], own, atol=1e-12)
                assert np.abs(own).max() > 1e-6


def test_gim_in_a_gated_mlp_is_half_of_each_factors_gradient():
    torch.manual_seed(0)
    shape = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    hf = LlamaForCausalLM(LlamaConfig(vocab_size=700, **shape, **heads)).double().eval()
    mlp, model = hf.model.layers[0].mlp, Model("one layer", hf, byte_level())
    modules = {"gate": mlp.gate_proj, "up": mlp.up_proj, "input": mlp.down_proj}
    found = kept(modules, model, BackwardRules(gate_share=0.5))
    gate, up = found["gate"].detach(), found["up"].detach()
    at_product, sigmoid = found["input"].grad, gate.sigmoid()
    slope = sigmoid * (1 + gate * (1 - sigmoid))  # of x * sigmoid(x)
    torch.testing.assert_close(found["gate"].grad, at_product * up * slope / 2)
    torch.testing.assert_close(found["up"].grad, at_product * gate * sigmoid / 2)


def refuses(words, model, rules):
    with pytest.raises(UserError, match=words):
        gradient(model, rules)


@pytest.mark.parametrize("kind", OWN_ATTENTION)
def test_attention_that_the_rules_do_not_reach_is_refused(kind):
    refuses(r"attention.*layer 0\b.*tiny \w+", mapped_model(kind), GIM)


def test_what_the_rules_do_not_reach_or_know_is_refused():
    model = tiny_model("llama")
    words = r"norms.*layer 0\b.*tiny llama"
    with pytest.raises(UserError, match=words), backward_rules(model, FROZEN_NORMS):
        pass
    layer = model.hf.model.layers[1]
    with replaced(layer.input_layernorm, torch.tanh):
        refuses("LlamaRMSNorm", interp.Model("odd", model.hf, byte_level()), FROZEN_NORMS)
    with replaced(layer.self_attn, lambda hidden_states, **_: (hidden_states, None)):
        refuses(r"attention.*layer 1\b.*tiny llama", model, BackwardRules(value_share=0.5))
    with replaced(layer.mlp, lambda x: x):
        refuses(r"gates.*layer 1\b.*tiny llama", model, BackwardRules(gate_share=0.5))
    refuses(r"GptOssMLP.*\bgim", other_model("gpt_oss"), GIM)


def test_nothing_is_left_behind_after_an_exception():
    model = tiny_model("llama")
    before = [dict(module.__dict__) for module in model.hf.modules()]
    with pytest.raises(RuntimeError, match="halfway"), backward_rules(model, GIM):
        raise RuntimeError("halfway")
    assert model.attn_implementation == "sdpa"
    assert [module.__dict__ for module in model.hf.modules()] == before


VARIANTS = {
    "scaling": 0.3,
    "softcap": 2.0,
    "s_aux": torch.tensor([0.5, -1.0]),
    "position_bias": torch.linspace(-2, 1, 50).view(1, 2, 5, 5),
}


@pytest.mark.parametrize("names", [[name] for name in VARIANTS] + [list(VARIANTS)])
def test_attention_under_the_rules_has_the_rows_that_are_read_for_scores(names):
    options = {name: VARIANTS[name] for name in names}
    torch.manual_seed(0)
    query, key, value = torch.randn(1, 2, 5, 8), torch.randn(1, 1, 5, 8), torch.randn(1, 1, 5, 8)
    mask = torch.full((5, 5), -torch.inf).triu(1)[None, None]
    model = tiny_model("llama")
    attention = ALL_ATTENTION_FUNCTIONS["interp_backward_rules"]
    with open_attention(model):
        output, weights = attention(model.hf.lm_head, query, key, value, mask, **options)
        model.hf(input_ids=IDS)  # the rules must reach every layer
    own = query_row(query, key, mask, **options)
    torch.testing.assert_close(weights[:, :, -1], own)
    torch.testing.assert_close(output[:, -1], (own[:, :, None] @ value).squeeze(2))


def test_attention_that_depends_on_more_is_refused():
    unknown = {"dropout": 0.0, "position_ids": torch.arange(5)[None], "sinks": torch.ones(2)}
    query = torch.randn(1, 2, 5, 8)
    with pytest.raises(UserError, match="depends on sinks"):
        query_row(query, query, None, **unknown)
    model = tiny_model("llama")
    attention = ALL_ATTENTION_FUNCTIONS["interp_backward_rules"]
    with open_attention(model):
        model.hf(input_ids=IDS)
        with pytest.raises(UserError, match="depends on sinks"):
            attention(model.hf.lm_head, query, query, query, None, **unknown)


def test_the_gradient_of_a_view_of_what_was_written_to_is_multiplied_too():
    source = torch.ones(2, 3, requires_grad=True)
    whole = torch.zeros(2, 3)
    part = whole[:, :2]
    whole.copy_(source)  # torch has to make the view's grad_fn anew, and crashed
    (_with_share(part, 0.25).sum() + whole.sum()).backward()
    assert source.grad.tolist() == [[1.25, 1.25, 1.0]] * 2


def test_shared_gradients_do_not_depend_on_what_is_read_together():
    prompts = interp.load_prompts("rulebreakers", limit=2)
    model = interp.load_model("organism/dose-25", device="cpu")
    together, alone = (
        interp.attribute(model, prompts, methods=("gim",), keep_tokens=True, batch_tokens=tokens)
        for tokens in (4096, 80)
    )
    found, expected = (run.table("token_scores")["score"] for run in (together, alone))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_an_epsilon_without_a_name_is_measured():
    from transformers.models.olmo.modeling_olmo import OlmoLayerNorm

    for width, dtype in ((8, torch.float32), (64, torch.float64)):
        norm = OlmoLayerNorm(width).to(dtype)
        form = norm_form(norm, torch.randn(1, 3, width, dtype=dtype))
        assert form.epsilon == pytest.approx(1e-5, rel=1e-3)
        small = torch.full((1, 1, width), 1e-3, dtype=dtype) * torch.randn(width, dtype=dtype)
        torch.testing.assert_close(form(small), norm(small), rtol=1e-3, atol=1e-5)
