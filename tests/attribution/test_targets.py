import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.attribution.targets import log_odds


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
