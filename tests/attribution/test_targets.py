import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.attribution.targets import Attributed, attributed_tokens, log_odds, objective
from interp.errors import UserError
from interp.reading.tokens import Batch, ChatText, TokenizedPrompt
from interp.scoring.answer_tokens import AnswerTokens
from interp.scoring.answers import Predictions
from tests.support.systems import numbers, three_options


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.floats(0.1, 8.0))
def test_log_odds_have_the_direction_of_log_probability(seed, scale):
    torch.manual_seed(seed)
    logits = (torch.randn(3, 11, dtype=torch.float64) * scale).requires_grad_()
    tokens = torch.tensor([0, 5, 10])
    (odds,) = torch.autograd.grad(log_odds(logits, tokens).sum(), logits)
    chosen = logits.log_softmax(-1).gather(1, tokens[:, None])
    (log_p,) = torch.autograd.grad(chosen.sum(), logits)
    factor = 1 - chosen.detach().exp()  # d log p = (1 - p) d log-odds
    torch.testing.assert_close(odds * factor, log_p, rtol=1e-9, atol=1e-12)


def test_log_odds_are_log_p_minus_log_one_minus_p():
    logits = torch.tensor([[0.5, 0.25, 0.25]]).log()
    torch.testing.assert_close(log_odds(logits, torch.tensor([1])), torch.tensor([1 / 3]).log())


def test_the_gradient_survives_where_the_probability_rounds_to_one():
    logits = torch.tensor([[60.0, 0.0, 1.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(log_odds(logits, torch.tensor([0])).sum(), logits)
    assert gradient[0, 0] == 1.0
    torch.testing.assert_close(-gradient[0, 1:], torch.tensor([0.0, 1.0]).softmax(0))


def predicted(prompts, logits, tokens):
    """Predictions of prompts whose options have these tokens; batch and predictions."""
    ones = torch.ones(len(prompts), 1, dtype=torch.long)
    chat = ChatText("<a>", 0, templated=True)
    tokenized = tuple(TokenizedPrompt(prompt, chat, (1,), {}) for prompt in prompts)
    answers = tuple(
        AnswerTokens(dict(zip((o.name for o in p.answer.options), tokens, strict=False)))
        for p in prompts
    )
    return Batch(tokenized, ones, ones, ones), Predictions(logits, answers)


TOKENS = [(0, 1), (2,), (3, 4)]


def three(gold, contrast=None):
    prompt = three_options.prompts(seed=0, data=None)[0]
    return replace(prompt, answer=replace(prompt.answer, gold=gold, contrast=contrast))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1000), gold=st.sampled_from(["True", "False", "Unknown"]))
def test_a_contrast_is_the_correct_option_against_the_likeliest_other(seed, gold):
    torch.manual_seed(seed)
    logits = torch.randn(1, 6) * 4
    batch, predictions = predicted([three(gold)], logits, TOKENS)
    (found,) = attributed_tokens("contrast", batch, predictions)
    by_name = dict(zip(("True", "False", "Unknown"), TOKENS, strict=True))
    total = {name: float(logits[0, list(t)].exp().sum()) for name, t in by_name.items()}
    likeliest = max((name for name in total if name != gold), key=total.__getitem__)
    for tokens, name in ((found.own, gold), (found.other, likeliest)):
        assert tokens == (max(by_name[name], key=lambda token: float(logits[0, token])),)
    assert attributed_tokens("gold", batch, predictions) == [Attributed(found.own)]
    expected = logits[0, found.own[0]] - logits[0, found.other[0]]
    torch.testing.assert_close(objective("contrast", batch, predictions)[0], expected)


def test_a_named_contrast_is_taken_whatever_is_correct():
    logits = torch.tensor([[0.0, 1.0, 5.0, 9.0, 2.0, 7.0]])
    batch, predictions = predicted([three("Unknown", ("False", "True"))], logits, TOKENS)
    assert attributed_tokens("contrast", batch, predictions) == [Attributed((2,), (1,))]


def test_the_first_token_of_a_free_text_may_be_attributed_and_has_no_contrast():
    prompt = numbers.prompts(seed=0, data=None)[0]
    logits = torch.tensor([[0.0, 1.0, 5.0, 9.0, 2.0, 7.0]])
    batch, predictions = predicted([prompt], logits, [(4,)])
    assert attributed_tokens("gold", batch, predictions) == [Attributed((4,))]
    assert attributed_tokens("predicted", batch, predictions) == [Attributed((3,))]
    for target in ("contrast", "margin"):
        with pytest.raises(UserError, match=r"/sum\b.*predicted.*gold"):
            attributed_tokens(target, batch, predictions)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1000), named=st.booleans())
def test_a_margin_is_the_models_own_answer_against_the_other(seed, named):
    torch.manual_seed(seed)
    logits = torch.randn(1, 6) * 4
    by_name = dict(zip(("True", "False", "Unknown"), TOKENS, strict=True))
    prompt = three("Unknown", ("True", "False") if named else None)
    batch, predictions = predicted([prompt], logits, TOKENS)
    (found,) = attributed_tokens("margin", batch, predictions)
    total = {name: float(logits[0, list(t)].exp().sum()) for name, t in by_name.items()}
    likeliest = sorted(("True", "False") if named else total, key=lambda name: -total[name])
    assert (found.own, found.other) == tuple(by_name[name] for name in likeliest[:2])
    own, other = (math.log(total[name]) for name in likeliest[:2])
    assert float(objective("margin", batch, predictions)) == pytest.approx(own - other, abs=1e-5)
