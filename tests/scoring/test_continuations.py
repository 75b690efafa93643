"""Probabilities of texts behind a prompt, held to passes over one prompt at a time."""

import pytest
import torch

from interp.reading.tokens import tokenize
from interp.scoring.likelihood import continuation_log_probabilities
from tests.support.tiny import tiny_model


@pytest.fixture(scope="module")
def model():
    return tiny_model("llama")


def test_all_continuations_of_one_token_have_a_probability_of_one(model, prompts):
    (tokenized,) = tokenize(model, prompts[:1])
    tokens = [(token,) for token in range(model.hf.config.vocab_size)]
    with model.measuring(), torch.no_grad():
        found = continuation_log_probabilities(
            model, [tokenized] * len(tokens), tokens, batch_tokens=4096
        )
    assert float(found.exp().sum()) == pytest.approx(1, abs=1e-6)


def test_lengths_and_batches_change_nothing(model, prompts):
    read = tokenize(model, prompts[:6])
    texts = [tuple(range(3, 4 + number)) for number in range(6)]  # of one to six tokens
    with model.measuring(), torch.no_grad():
        together, apart = (
            continuation_log_probabilities(model, read, texts, batch_tokens=budget)
            for budget in (4096, 1)
        )
        for prompt, text, found in zip(read, texts, together, strict=True):
            logits = model.hf(torch.tensor([[*prompt.token_ids, *text]])).logits[0].double()
            start = len(prompt) - 1
            own = logits.log_softmax(-1)[range(start, start + len(text)), list(text)]
            assert float(found) == pytest.approx(float(own.sum()), abs=1e-4)
    torch.testing.assert_close(together, apart, atol=1e-4, rtol=0)
