import numpy as np
import pytest
import torch

import interp
from interp.console import Progress
from interp.errors import UserError
from interp.measurements.specs import Attribute
from interp.measuring.core import bind
from interp.reading.tokens import tokenize
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import byte_level

KEY = ["prompt_id", "method", "target"]

NATIVE = ("input_gradient", "attention", "attention_rollout", "value_weighted_norm")


@pytest.mark.parametrize("kind", CONFIGS)
def test_segment_scores_are_sums_of_token_scores(kind, prompts):
    result = interp.attribute(tiny_model(kind), prompts, keep_tokens=True)
    tokens = result.token_scores.merge(result.tokens)
    assert len(tokens) == len(result.token_scores)
    grouped = tokens.groupby([*KEY, "segment"])["score"]
    segments = result.segment_scores.set_index([*KEY, "segment"]).loc[grouped.sum().index]
    np.testing.assert_allclose(segments["score"], grouped.sum(), rtol=1e-9)
    assert (segments["tokens"] == grouped.size()).all()
    assert len(segments) == len(result.segment_scores)
    shares = result.token_shares().groupby([*KEY, "segment"])["share"].sum()
    np.testing.assert_allclose(segments["share"], shares, rtol=1e-6)
    sums = result.segment_scores.groupby(KEY).agg(
        share=("share", "sum"), score=("score", "sum"), total=("total", "first")
    )
    np.testing.assert_allclose(sums["share"], 1.0, atol=1e-6)
    # Both methods are never negative.
    np.testing.assert_allclose(sums["score"], sums["total"], rtol=1e-6)
    lengths = result.tokens.groupby("prompt_id").size()
    counted = result.segment_scores.groupby(["prompt_id", "method"])["tokens"].sum().unstack()
    for method in counted:
        assert (counted[method] == lengths).all()


def test_tokens_have_the_roles_by_which_they_are_patched(prompts):
    model, pair = tiny_model("llama"), prompts[:2]
    tokens = interp.attribute(model, pair, keep_tokens=True).tokens
    patches = interp.patch(model, pair, granularity="position", layers=[0]).patches
    base = interp.patch(model, pair).pairs["corrupt_prompt_id"].iloc[0]
    joined = patches.merge(tokens[tokens["prompt_id"] == base], on="position")
    assert len(joined) == len(patches) > 20
    assert (joined["role_x"] == joined["role_y"]).all()
    assert (joined["token_x"] == joined["token_y"]).all()
    assert set(tokens["role"]) > {"last", "template", "premise1_entity_a"}


@pytest.mark.quick(3)
@pytest.mark.parametrize("kind", CONFIGS)
def test_batch_size_and_order_do_not_matter(kind, prompts):
    model, prompts = tiny_model(kind), list(prompts)[:6]
    keys = [*KEY, "segment"]
    options = {"methods": (*NATIVE, "frozen_norms")}
    reference = interp.attribute(model, prompts, batch_tokens=1, **options).to_frame()
    reference = reference.set_index(keys)
    for batch_tokens in (400, 100_000):
        other = interp.attribute(model, prompts[::-1], batch_tokens=batch_tokens, **options)
        other = other.to_frame().set_index(keys).loc[reference.index]
        for column in ("score", "share", "total"):
            # Scores of frozen norms have signs, so their sums round more.
            signed = other.index.get_level_values("method") == "frozen_norms"
            for rows, tolerance in ((~signed, 0.0), (signed, 2e-5)):
                np.testing.assert_allclose(
                    other[column][rows], reference[column][rows], rtol=2e-4, atol=tolerance
                )


def compared_tokens(model, prompt):
    """The first token of the likeliest form of each option, by model and tokenizer alone."""
    (tokenized,) = tokenize(model, [prompt])
    with torch.no_grad():
        values = model.hf(torch.tensor([tokenized.token_ids])).logits[0, -1].tolist()
    return [
        max(
            (model.tokenizer(form, add_special_tokens=False)["input_ids"][0] for form in own.forms),
            key=values.__getitem__,
        )
        for own in prompt.answer.options
    ]


def reference_scores(model, prompt, target):
    """Gradient and attention of one prompt, written out plainly with transformers and autograd."""
    (tokenized,) = tokenize(model, [prompt])
    embeddings = model.hf.get_input_embeddings()(torch.tensor([tokenized.token_ids])).detach()
    embeddings.requires_grad_()
    output = model.hf(inputs_embeds=embeddings, output_attentions=True)
    logits = output.logits[0, -1]
    positive, negative = compared_tokens(model, prompt)
    gold = prompt.answer.gold == prompt.answer.options[0].name
    objective = {
        "predicted": logits.log_softmax(-1).max(),
        "gold": logits.log_softmax(-1)[positive if gold else negative],
        "contrast": logits[positive] - logits[negative],
    }[target]
    (gradient,) = torch.autograd.grad(objective, embeddings)
    norms = gradient[0].norm(dim=-1)
    attention = torch.stack(output.attentions)[:, 0, :, -1].mean((0, 1))
    # d log p = (1 - p) d log-odds
    raw = 1.0 if target == "contrast" else 1 - objective.exp()
    return {"input_gradient": (norms / raw).detach(), "attention": attention.detach()}


@pytest.mark.parametrize("target", ["predicted", "gold", "contrast"])
@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt2"])
def test_token_scores_equal_plain_autograd(kind, target, prompts):
    model = make_tiny(kind, byte_level(), attn="eager")
    chosen = list(prompts)[:4]
    scores = interp.attribute(model, chosen, target=target, keep_tokens=True).token_scores
    for prompt in chosen:
        expected = reference_scores(model, prompt, target)
        for method, values in expected.items():
            rows = scores[(scores["prompt_id"] == prompt.id) & (scores["method"] == method)]
            np.testing.assert_allclose(rows["score"], values.numpy(), rtol=2e-4, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONFIGS)
def test_float64_agrees_with_float32(kind, prompts):
    one, other = (
        interp.attribute(tiny_model(kind, dtype=dtype), prompts).ratios()
        for dtype in (torch.float32, torch.float64)
    )
    assert (other["error"] == "").all()
    np.testing.assert_allclose(one["ratio"], other["ratio"], rtol=2e-4)


def test_scores_of_a_float64_model_are_not_rounded(prompts):
    model = tiny_model("llama", dtype=torch.float64)
    # captum's occlusion itself computes in float32; these scores are never all equal to 0.
    methods = (
        *("input_gradient", "attention", "input_x_gradient", "frozen_norms", "gim"),
        *("integrated_gradients", "attention_rollout", "value_weighted_norm"),
        "captum:integrated_gradients",
    )
    result = interp.attribute(model, prompts[:2], methods=methods, keep_tokens=True)
    for method, own in result.token_scores.groupby("method"):
        scores = own["score"][own["score"] != 0]
        assert (scores.astype("float32") != scores).mean() > 0.9, method
    assert set(result.token_scores["method"]) == set(methods)


@pytest.mark.parametrize(
    "methods",
    [
        ["input_gradient"],
        ["attention"],
        ["attention", "input_gradient"],
        ["value_weighted_norm", "attention_rollout"],
    ],
)
def test_a_method_gives_the_same_alone_or_together(methods, prompts):
    model = tiny_model("llama")
    both = interp.attribute(model, prompts, methods=NATIVE).to_frame()
    some = interp.attribute(model, prompts, methods=methods).to_frame()
    assert list(dict.fromkeys(some["method"])) == methods
    for method in methods:
        one, other = (frame[frame["method"] == method] for frame in (some, both))
        np.testing.assert_allclose(one["score"], other["score"], rtol=1e-6)


def test_each_method_of_a_batch_is_a_part_of_its_progress(prompts):
    methods = ["input_gradient", "leave_one_out:deletion", "captum:occlusion"]
    measure = bind(Attribute(methods=methods), tiny_model("llama"), batch_tokens=100_000)
    reached = []
    with Progress("attribute m", total=2) as progress:
        show = progress._show

        def record():
            reached.append(progress._share)
            show()

        progress._show = record
        measure(prompts[:2])
    # One pass that serves the first method, then each prompt with each of the others.
    assert {part / 5 for part in range(1, 6)} <= {round(share, 6) for share in reached}


def test_answers_are_those_of_scoring(organism, prompts):
    alone = interp.evaluate(organism, prompts)
    attributed = interp.attribute(organism, prompts)
    assert (alone.answers["answer"] == attributed.answers["answer"]).all()
    np.testing.assert_allclose(
        alone.option_probabilities["probability"],
        attributed.option_probabilities["probability"],
        atol=1e-6,
    )


def test_a_window_that_hides_premise_1_leaves_the_attention_ratio_undefined(prompts):
    model = make_tiny("mistral", byte_level())
    model.hf.config.sliding_window = 4
    for layer in model.hf.model.layers:
        layer.self_attn.sliding_window = 4
    result = interp.attribute(model, prompts, methods=["attention"])
    rows = result.ratios()
    assert set(rows["error"]) == {"premise1 has no score"}
    assert rows["ratio"].isna().all()
    scores = result.to_frame()
    assert (scores.loc[scores["segment"] == "premise1", "score"] == 0).all()
    assert (scores["error"] == "").all()


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"methods": ["gradients"]}, r"'gradients'.*input_gradient"),
        ({"methods": ["input-gradient"]}, r"'input-gradient'.*input_gradient"),
        ({"methods": []}, r"method.*input_gradient, attention"),
        ({"target": "best"}, r"'best'.*predicted, gold, contrast, margin"),
    ],
)
def test_unknown_choices_are_refused(choice, message):
    with pytest.raises(UserError, match=message):
        bind(Attribute(**choice), tiny_model("llama"))
