"""A model small enough to attribute by hand.

One layer, one head of size 2, no position dependence, no MLP, no norm scale to speak of: token
embeddings are chosen so that attention and gradient come out as round numbers.
"""

import math

import numpy as np
import pytest
import torch

import interp
from interp.prompts.prompt import Prompt, compose
from tests.support.answers import yes_no
from tests.support.by_hand import vector, zeroed_gpt2

WORDS = ["<pad>", "a", "b", "q", "Yes", "No"]


@pytest.fixture
def micro():
    hf, tokenizer = zeroed_gpt2(WORDS)
    with torch.no_grad():
        block = hf.transformer.h[0]
        # The norm before attention maps (1, 0) to about (1, -1) and (0, 1) to about (-1, 1).
        block.ln_1.weight.fill_(1.0)
        embeddings = hf.transformer.wte.weight
        embeddings[WORDS.index("a")] = vector(1.0, 0.0)
        embeddings[WORDS.index("b")] = vector(0.0, 1.0)
        embeddings[WORDS.index("q")] = vector(1.0, 0.0)
        # Queries and keys read the first coordinate: q . k = +1 for "a", -1 for "b", times log 3,
        # divided by sqrt(2) again by the head's scaling, which is made up for here.
        strength = math.sqrt(math.log(3.0) / 2 * math.sqrt(2.0))
        block.attn.c_attn.weight[0, 0] = strength  # query, first coordinate
        block.attn.c_attn.weight[0, 2] = strength  # key, first coordinate
        hf.lm_head.weight[WORDS.index("Yes")] = vector(1.0, 0.0)
        hf.transformer.ln_f.weight.fill_(1.0)
    return interp.Model("micro", hf, tokenizer)


def micro_prompt(premise1, premise2):
    text, segments = compose(
        [("premise1", premise1), (None, " "), ("premise2", premise2), (None, " "), ("end", "q")]
    )
    return Prompt("1", text, segments, yes_no(), "p", "side", {})


def test_attention_is_what_the_softmax_gives_by_hand(micro):
    # q.k is log(3)/2 for "a" and "q", -log(3)/2 for "b": weights in proportion 3 : 1 : 3.
    result = interp.attribute(
        micro, [micro_prompt("a b", "b")], methods=["attention"], keep_tokens=True
    )
    scores = result.token_scores["score"].to_numpy()
    np.testing.assert_allclose(scores, np.array([3, 1, 1, 3]) / 8, atol=1e-4)
    rows = result.to_frame().set_index("segment")
    assert rows.index.tolist() == ["premise1", "premise2", "end"]
    np.testing.assert_allclose(rows["score"], np.array([4, 1, 3]) / 8, atol=1e-4)
    assert rows["tokens"].tolist() == [2, 1, 1]
    (row,) = result.ratios("premise2", "premise1").to_dict("records")
    assert row["ratio_unnormalized"] == pytest.approx(1 / 4, abs=1e-3)
    assert row["ratio"] == pytest.approx(1 / 2, abs=1e-3)


def test_without_values_only_the_last_token_has_a_gradient(micro):
    result = interp.attribute(
        micro, [micro_prompt("a", "b")], methods=["input_gradient"], keep_tokens=True
    )
    # The value weights are zero: attention moves nothing, so only "q" itself reaches the answer.
    np.testing.assert_allclose(result.token_shares()["share"], [0.0, 0.0, 1.0], atol=1e-12)
    assert result.token_scores["score"].iloc[-1] > 0
    ratios = result.ratios("premise2", "premise1")
    assert ratios["error"].tolist() == ["premise1 has no score"]
    assert ratios["ratio"].isna().all()


def test_gradient_equals_finite_differences(micro):
    # Two coordinates normalized to variance 1 can only be 1 and -1; a large epsilon lets them move.
    micro.hf.transformer.h[0].ln_1.eps = micro.hf.transformer.ln_f.eps = 0.5
    with torch.no_grad():
        micro.hf.transformer.h[0].attn.c_attn.weight[:, 4:] = torch.tensor(
            [[0.7, -0.2], [0.1, 0.9]], dtype=torch.float64
        )
        micro.hf.transformer.h[0].attn.c_proj.weight.copy_(torch.eye(2))
        micro.hf.transformer.wte.weight += torch.tensor(
            [[0.13 * i, -0.07 * i * i] for i in range(len(WORDS))], dtype=torch.float64
        )
    prompt = micro_prompt("a b b", "b a")
    result = interp.attribute(micro, [prompt], methods=["input_gradient"], keep_tokens=True)
    ids = micro.tokenizer(prompt.text)["input_ids"]
    embeddings = micro.hf.transformer.wte.weight[ids].detach()
    predicted = int(micro.hf(inputs_embeds=embeddings[None]).logits[0, -1].argmax())

    def target(values):
        with torch.no_grad():
            probability = micro.hf(inputs_embeds=values[None]).logits[0, -1].softmax(-1)[predicted]
        return float((probability / (1 - probability)).log())

    step, gradient = 1e-6, torch.zeros_like(embeddings)
    for position in range(len(ids)):
        for axis in range(2):
            shift = torch.zeros_like(embeddings)
            shift[position, axis] = step
            up, down = target(embeddings + shift), target(embeddings - shift)
            gradient[position, axis] = (up - down) / (2 * step)
    norms = gradient.norm(dim=-1)
    assert norms.min() > 0
    np.testing.assert_allclose(result.token_scores["score"], norms, atol=1e-6)
