"""Attributions of whole answers, against plain passes over prompts with their answers."""

import numpy as np
import pytest
import torch

import interp
from interp.reading.tokens import tokenize
from tests.scoring.test_whole_answers import CITIES, plain_tokens, prompts_with
from tests.support.tiny import tiny_model

METHODS = ["input_gradient", "input_x_gradient", "attention", "integrated_gradients", "gim"]


def plain_log_p(model, embeddings, answer):
    """The log-probability of an answer's tokens after each row of embeddings: one plain pass."""
    after = model.hf.get_input_embeddings()(torch.tensor([answer])).detach()
    whole = torch.cat([embeddings, after.expand(len(embeddings), -1, -1)], 1)
    log_p = model.hf(inputs_embeds=whole, use_cache=False).logits.double().log_softmax(-1)
    start = embeddings.shape[1] - 1
    return sum(log_p[:, start + place, token] for place, token in enumerate(answer))


def plain_target(model, prompt, target, embeddings):
    first, second = prompt.answer.options
    own = [
        torch.stack(
            [
                plain_log_p(model, embeddings, plain_tokens(model, prompt, form)[1])
                for form in option.forms
            ]
        )
        for option in (first, second)
    ]
    if target == "gold":
        p = own[0].amax(0)
        return p - torch.log(-torch.expm1(p))
    if target == "contrast":
        return own[0].amax(0) - own[1].amax(0)
    return (own[0].logsumexp(0) - own[1].logsumexp(0)).abs()


@pytest.mark.quick(1)
@pytest.mark.parametrize("target", ["gold", "contrast", "margin"])
@torch.no_grad()
def test_gradients_equal_finite_differences(target):
    """In GPT-2, whose norms compute in float64."""
    model = tiny_model("gpt2", dtype=torch.float64)
    (prompt, _) = prompts_with(*CITIES, contrast=("New York", "New Jersey"), pairs=1)
    found = interp.attribute(
        model,
        [prompt],
        methods=["input_gradient", "input_x_gradient"],
        target=target,
        keep_tokens=True,
    ).token_scores.set_index("method")["score"]
    (tokenized,) = tokenize(model, [prompt])
    embeddings = model.hf.get_input_embeddings()(torch.tensor([tokenized.token_ids]))
    count, size = embeddings.shape[1:]

    def slopes(directions, step=1e-6):
        ahead, back = (
            plain_target(model, prompt, target, embeddings + sign * step * directions)
            for sign in (1, -1)
        )
        return (ahead - back) / (2 * step)

    tokens = torch.eye(count, dtype=torch.float64)
    along = slopes(tokens[:, :, None] * embeddings)
    np.testing.assert_allclose(found["input_x_gradient"], along, rtol=1e-5, atol=1e-8)
    axes = torch.eye(size, dtype=torch.float64)
    for place in (0, count // 2, count - 1):
        norm = slopes(tokens[place][:, None] * axes[:, None]).norm()
        assert found["input_gradient"].iloc[place] == pytest.approx(float(norm), rel=1e-5)


@pytest.mark.parametrize("target", ["gold", "contrast", "margin"])
def test_gradients_equal_autograd_over_the_concatenation(target):
    model = tiny_model("llama", dtype=torch.float64)
    prompts = prompts_with(*CITIES, contrast=("New York", "New Jersey"))
    found = interp.attribute(
        model,
        prompts,
        methods=["input_gradient", "input_x_gradient"],
        target=target,
        keep_tokens=True,
    ).token_scores
    for prompt in prompts:
        (tokenized,) = tokenize(model, [prompt])
        ids = torch.tensor([tokenized.token_ids])
        embeddings = model.hf.get_input_embeddings()(ids).detach().requires_grad_()
        (gradient,) = torch.autograd.grad(
            plain_target(model, prompt, target, embeddings), embeddings
        )
        own = found[found.prompt_id == prompt.id]
        norms = own[own.method == "input_gradient"].score.to_numpy()
        np.testing.assert_allclose(norms, gradient[0].norm(dim=-1), rtol=1e-4)
        products = own[own.method == "input_x_gradient"].score.to_numpy()
        expected = (embeddings * gradient)[0].sum(-1).detach()
        np.testing.assert_allclose(products, expected, rtol=1e-3, atol=1e-5)
