"""Methods that read donors' texts, against plain computations and captum."""

import captum.attr
import numpy as np
import pytest
import torch

import interp
from interp.attribution.counterfactual import counterfactual_tokens
from interp.attribution.explained import SegmentGame
from interp.attribution.methods.perturbation import drawn_coalitions
from interp.attribution.registry import find_method, method_names
from interp.models.backward_rules import GIM, backward_rules
from interp.prompts.mixing import donors_of, mixed, with_donors
from interp.reading.tokens import tokenize
from tests.attribution.methods.test_captum import contrast
from tests.attribution.test_attribution import compared_tokens
from tests.support.broken import broken_by
from tests.support.prompts import some_prompts
from tests.support.systems import three_options
from tests.support.tiny import tiny_model

SEGMENTS = ["premise1", "premise2", "conclusion"]


@pytest.fixture(scope="module")
def prompt():
    return with_donors(some_prompts(6), count=8)[2]


def attributed(model, prompt, *methods, **options):
    """Segment scores by method, and the whole result."""
    options = {"target": "contrast", "keep_tokens": True, **options}
    result = interp.attribute(model, [prompt], methods=methods, **options)
    rows = result.segment_scores
    assert (rows["error"] == "").all()
    return rows.set_index(["method", "segment"])["score"], result


def by_hand(model, prompt):
    """v(S) of every S by one plain pass a text, the tokens of the contrast those of the prompt."""
    positive, negative = compared_tokens(model, prompt)

    def value(ids):
        with torch.no_grad():
            logits = model.hf(torch.tensor([ids])).logits[0, -1]
        return float(logits[positive] - logits[negative])

    values = []
    for coalition in range(8):
        kept = [name for bit, name in enumerate(SEGMENTS) if coalition >> bit & 1]
        texts = [mixed(prompt, donor, kept=kept) for donor in donors_of(prompt, "instance")]
        values.append(np.mean([value(t.token_ids) for t in tokenize(model, texts)]))
    return np.array(values), value


def test_exact_values_are_captums_over_the_same_coalitions(model, prompt):
    scores, result = attributed(model, prompt, "shapley", "leave_one_out:donor")
    values, _ = by_hand(model, prompt)

    def value(masks):
        return torch.tensor([values[int(row @ torch.tensor([1.0, 2, 4]))] for row in masks])

    whole = torch.ones(1, 3)
    for method, theirs in (
        ("shapley", captum.attr.ShapleyValues),
        ("leave_one_out:donor", captum.attr.FeatureAblation),
    ):
        expected = theirs(value).attribute(whole)[0]
        np.testing.assert_allclose(scores[method][SEGMENTS], expected, atol=1e-5)
        assert expected.abs().min() > 1e-3
    gaps = result.segment_scores.set_index("method")["completeness_gap"]
    assert gaps["shapley"].abs().max() < 1e-12
    total = scores["shapley"].sum()
    assert total == pytest.approx(values[-1] - values[0], abs=1e-5)
    assert gaps["leave_one_out:donor"].isna().all()


def test_deletion_is_captums_ablation_of_tokens(model, prompt):
    scores, _ = attributed(model, prompt, "leave_one_out:deletion")
    (tokenized,) = tokenize(model, [prompt])
    _, value = by_hand(model, prompt)
    ids = torch.tensor([tokenized.token_ids])
    features = torch.zeros_like(ids)
    for number, name in enumerate(tokenized.segments, start=1):
        features[0, slice(*tokenized.segments[name])] = number
    expected = captum.attr.FeatureAblation(
        lambda rows: torch.tensor([value(row[row >= 0].long().tolist()) for row in rows])
    ).attribute(ids.float(), baselines=-1.0, feature_mask=features)[0]
    for name, (start, _) in tokenized.segments.items():
        assert scores["leave_one_out:deletion"][name] == pytest.approx(
            float(expected[start]), abs=1e-5
        )


@pytest.mark.parametrize(
    ("method", "count", "penalty"),
    [
        ("context_cite", 32, 0.01),
        ("context_cite:samples=48", 48, 0.01),
        ("context_cite:samples=40:penalty=0.015", 40, 0.015),
    ],
)
def test_the_surrogate_of_context_cite_meets_the_conditions_of_the_lasso(
    model, prompt, method, count, penalty
):
    """Solved here by coordinate descent, from the same masks and values taken by hand."""
    scores, _ = attributed(model, prompt, method)
    values, _ = by_hand(model, prompt)
    coalitions = drawn_coalitions(prompt.id, 3, count)
    masks = np.array([[c >> bit & 1 for bit in range(3)] for c in coalitions], dtype=float)
    assert len(masks) == count
    assert count / 4 < masks.sum(0).min() <= masks.sum(0).max() < count * 3 / 4
    scale = masks.std(0)
    x = (masks - masks.mean(0)) / scale
    y = values[coalitions] - values[coalitions].mean()
    weights = np.zeros(3)
    for _ in range(500):
        for j in range(3):
            rest = y - x @ weights + x[:, j] * weights[j]
            slope = x[:, j] @ rest / len(y)
            weights[j] = np.sign(slope) * max(abs(slope) - penalty, 0)
    np.testing.assert_allclose(scores[method][SEGMENTS], weights / scale, atol=1e-3)
    assert np.abs(weights).max() > penalty
    assert (weights == 0).any()


def test_surrogates_of_captum_find_the_weights_of_a_linear_game(model, prompt, monkeypatch):
    weights = np.array([2.0, -1.0, 0.5])

    def linear(self, coalitions=None):
        bits = [[c >> bit & 1 for bit in range(3)] for c in coalitions]
        return 3.0 + np.array(bits) @ weights

    monkeypatch.setattr(SegmentGame, "values", linear)
    state = torch.random.get_rng_state()
    scores, result = attributed(model, prompt, "captum:kernel_shap", "captum:lime")
    gaps = result.segment_scores.groupby("method")["completeness_gap"].first()
    kernel = scores["captum:kernel_shap"].sum()
    assert gaps["captum:kernel_shap"] == pytest.approx(kernel - weights.sum(), abs=1e-9)
    assert torch.equal(torch.random.get_rng_state(), state)
    again, _ = attributed(model, prompt, "captum:kernel_shap", "captum:lime")
    assert (scores == again).all()
    np.testing.assert_allclose(scores["captum:kernel_shap"][SEGMENTS], weights, atol=1e-4)
    lime = scores["captum:lime"][SEGMENTS].to_numpy()
    more, _ = attributed(model, prompt, "captum:lime:samples=128:penalty=0.0001")
    np.testing.assert_allclose(more.droplevel(0)[SEGMENTS], weights, atol=2e-2)
    # Shrunk by its penalty, which weighs more the less samples weigh.
    assert (np.sign(lime) == np.sign(weights)).all()
    assert np.abs(lime - weights).max() < 0.5


def embeddings_and_donor(model, prompt):
    (tokenized,) = tokenize(model, [prompt])
    table = model.hf.get_input_embeddings()
    ids = (tokenized.token_ids, counterfactual_tokens(model, tokenized))
    return [table(torch.tensor([own])).detach() for own in ids]


@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt2"])
def test_gim_multiplies_the_difference_by_the_ruled_gradient(kind, prompt):
    model = tiny_model(kind)
    _, result = attributed(model, prompt, "gim")
    embeddings, donor = embeddings_and_donor(model, prompt)
    embeddings.requires_grad_()
    with model.measuring(), backward_rules(model, GIM):
        (gradient,) = torch.autograd.grad(contrast(model, prompt, embeddings).sum(), embeddings)
    expected = (gradient * (embeddings - donor)).sum(-1)[0].detach()
    np.testing.assert_allclose(result.token_scores["score"], expected, rtol=2e-3, atol=2e-5)
    assert (expected == 0).any()
    assert (expected < 0).any()


@pytest.mark.parametrize("steps", [1, 3, 20, 50])
def test_integrated_gradients_are_captums_of_the_embedding_layer(model, prompt, steps):
    _, result = attributed(model, prompt, f"integrated_gradients:steps={steps}")
    embeddings, donor = embeddings_and_donor(model, prompt)
    (tokenized,) = tokenize(model, [prompt])

    positive, negative = compared_tokens(model, prompt)

    def value(ids):
        logits = model.hf(ids).logits[:, -1]
        return logits[:, positive] - logits[:, negative]

    explained = captum.attr.LayerIntegratedGradients(value, model.hf.get_input_embeddings())
    expected, delta = explained.attribute(
        torch.tensor([tokenized.token_ids]),
        torch.tensor([counterfactual_tokens(model, tokenized)]),
        n_steps=steps,
        return_convergence_delta=True,
    )
    expected = expected.sum(-1)[0]
    found = result.token_scores["score"]
    np.testing.assert_allclose(found, expected.detach(), rtol=1e-3, atol=2e-5)
    with torch.no_grad():
        difference = contrast(model, prompt, embeddings) - contrast(model, prompt, donor)
    (gap,) = result.segment_scores["completeness_gap"].unique()
    assert found.sum() - gap == pytest.approx(float(difference), abs=1e-4)
    assert gap == pytest.approx(float(delta), abs=2e-5)
    assert steps < 20 or abs(gap) < 0.05 * max(1.0, abs(float(difference)))


def test_prompts_get_donors_where_a_method_reads_them(model):
    with_them = [name for name in method_names() if find_method(name).donors]
    assert "gim" in with_them
    result = interp.attribute(model, some_prompts(1), methods=["shapley", "gim"])
    assert (result.segment_scores["error"] == "").all()
    for name in with_them:
        with pytest.raises(interp.UserError, match=r"three-options.*donors"):
            interp.attribute(model, three_options.prompts(seed=0, data=None), methods=[name])
    plain = interp.attribute(model, some_prompts(1), methods=["frozen_norms"])
    assert (plain.segment_scores["error"] == "").all()


@pytest.mark.parametrize("target", ["predicted", "gold"])
def test_every_target_can_be_explained(model, prompt, target):
    methods = [name for name in method_names() if find_method(name).donors]
    scores, _ = attributed(model, prompt, *methods, "leave_one_out:deletion", target=target)
    assert scores.notna().all()


SURROGATES = ("context_cite", "captum:kernel_shap", "captum:lime", "shapley")


def test_a_prompt_whose_values_are_not_finite_fails_alone():
    first, second = list(with_donors(some_prompts(1), count=2))[:2]
    model, broken = broken_by(first, second)
    result = interp.attribute(model, [broken, second], methods=SURROGATES)
    table = result.segment_scores
    failed = table["prompt_id"] == "broken"
    assert (table.loc[failed, "error"] == "non-finite").all()
    assert (table.loc[~failed, "error"] == "").all()
    assert set(table.loc[failed, "method"]) == set(SURROGATES)
    # Means are over the prompt that has scores.
    means = result.segments()
    assert (means["prompts"] == 1).all()
    own = table[~failed].set_index(["method", "segment"])["score"]
    np.testing.assert_allclose(means.set_index(["method", "segment"])["score"], own)
