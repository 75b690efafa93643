"""Methods of one backward pass: input x gradient, and the same by backward rules."""

import numpy as np
import pytest
import torch

import interp
from interp.attribution import attributor
from interp.attribution.methods.gradient import InputXGradient
from interp.measurements.specs import Attribute
from interp.measuring.core import bind
from interp.models.backward_rules import FROZEN_NORMS, backward_rules
from tests.attribution.methods.test_captum import contrast, embeddings_of
from tests.support.other_kinds import classifier, text_to_text
from tests.support.other_models import other_model
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model

TARGETS = ("predicted", "gold", "contrast")


def scores(model, prompts, *methods, **options):
    """Token scores of each method, prompt by prompt."""
    result = interp.attribute(model, prompts, methods=methods, keep_tokens=True, **options)
    assert (result.segment_scores["error"] == "").all()
    rows = result.token_scores.set_index("method")["score"]
    return [rows.loc[method].to_numpy() for method in methods]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt2"])
def test_input_x_gradient_is_captums(kind, target):
    own, captums = scores(
        tiny_model(kind),
        some_prompts(2),
        "input_x_gradient",
        "captum:input_x_gradient",
        target=target,
    )
    assert own.min() < 0 < own.max()
    np.testing.assert_allclose(own, captums, rtol=1e-3, atol=2e-5)


def test_frozen_norms_multiply_the_embedding_by_the_ruled_gradient():
    model, prompt = tiny_model("llama"), some_prompts(1)[0]
    (found,) = scores(model, [prompt], "frozen_norms", target="contrast")
    embeddings, _ = embeddings_of(model, prompt)
    embeddings = embeddings.detach().requires_grad_()
    with model.measuring(), backward_rules(model, FROZEN_NORMS):
        (gradient,) = torch.autograd.grad(contrast(model, prompt, embeddings).sum(), embeddings)
    expected = (gradient * embeddings).sum(-1)[0].detach()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=2e-5)


def test_methods_of_the_same_rules_share_a_pass_and_change_no_other(monkeypatch):
    model, prompts, rules = tiny_model("llama"), some_prompts(2), []
    shared_pass = attributor.shared_pass

    def counted(*arguments, **options):
        rules.append(options["rules"].frozen_norms)
        return shared_pass(*arguments, **options)

    monkeypatch.setattr(attributor, "shared_pass", counted)
    frozen, gradient, product = scores(
        model, prompts, "frozen_norms", "input_gradient", "input_x_gradient", batch_tokens=10_000
    )
    assert rules == [False, True]
    for method, together in (
        ("frozen_norms", frozen),
        ("input_gradient", gradient),
        ("input_x_gradient", product),
    ):
        (alone,) = scores(model, prompts, method)
        np.testing.assert_allclose(alone, together, rtol=2e-4, atol=1e-6)
    assert np.abs(frozen - product).max() > 1e-2
    assert rules[2:] == [True, False, False]


T5, NORMED = lambda: text_to_text("t5"), r"input_x_gradient.*LayerNorm"


@pytest.mark.parametrize(
    ("method", "model", "problem"),
    [
        ("frozen_norms", T5, "'t5'"),
        ("gim", T5, "'t5'"),
        ("attention_rollout", T5, "'t5'"),
        # gates that are not known
        ("gim", lambda: other_model("gpt_oss"), r"GptOssMLP.*\bgim"),
        # a norm reads embeddings alone
        ("input_x_gradient", lambda: classifier("modernbert"), NORMED),
        ("input_x_gradient", lambda: other_model("bloom"), NORMED),
    ],
)
def test_a_model_that_cannot_be_explained_is_refused_at_once(method, model, problem):
    with pytest.raises(interp.UserError, match=problem):
        bind(Attribute(methods=(method,)), model())


@pytest.mark.parametrize("kind", ["bert", "roberta", "electra", "distilbert"])
def test_input_x_gradient_takes_encoders_that_add_positions_before_their_norm(kind):
    InputXGradient(classifier(kind))
