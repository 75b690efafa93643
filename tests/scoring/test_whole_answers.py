"""Answers as whole texts, against plain transformers passes over prompt and option."""

import dataclasses
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import interp
from interp.errors import UserError
from interp.prompts.answers import AnswerOption, Choice
from interp.reading.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.whole_answers import Way, distinct_ways
from tests.support.prompts import some_prompts
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import KINDS, byte_level, llama_style, sentencepiece_style

CITIES = (
    AnswerOption("New York", ("New York", "NYC")),
    AnswerOption("New Jersey", ("New Jersey",)),
)
TOKENIZERS = {
    "byte-level with a template": byte_level,
    "byte-level without": lambda: byte_level(None),
    "sentencepiece with a template": sentencepiece_style,
    "sentencepiece without": lambda: sentencepiece_style(None),
    "sentencepiece, legacy": lambda: llama_style(None, legacy=True),
    "sentencepiece, spaces first": lambda: llama_style(None, legacy=False),
}


def prompts_with(*options, gold=None, contrast=None, pairs=3):
    answer = Choice(options, gold or options[0].name, contrast)
    return [dataclasses.replace(prompt, answer=answer) for prompt in some_prompts(pairs)]


def plain_tokens(model, prompt, form):
    """The tokens of a prompt and a form after it, by the tokenizer alone."""
    (tokenized,) = tokenize(model, [prompt])
    written = tokenized.chat.text + ("" if tokenized.chat.templated else " ") + form
    ids = model.tokenizer(written, add_special_tokens=not tokenized.chat.templated)["input_ids"]
    while ids[-1] == model.tokenizer.eos_token_id:
        ids = ids[:-1]
    assert tuple(ids[: len(tokenized)]) == tokenized.token_ids
    return tokenized.token_ids, tuple(ids[len(tokenized) :])


def plain_log_p(model, prompt, form):
    """The log-probability of a form after a prompt: one pass, no cache, no padding."""
    before, after = plain_tokens(model, prompt, form)
    with torch.no_grad():
        logits = model.hf(torch.tensor([before + after]), use_cache=False).logits[0]
    log_p = logits.double().log_softmax(-1)[len(before) - 1 : -1]
    return float(sum(log_p[place, token] for place, token in enumerate(after)))


def log_p_of(table, prompt, option):
    (value,) = table[(table.prompt_id == prompt.id) & (table.option == option)].probability
    return math.log(value)


def check_against_plain_passes(model, prompts, table):
    for prompt in prompts:
        for option in prompt.answer.options:
            forms = [plain_log_p(model, prompt, form) for form in option.forms]
            expected = float(torch.tensor(forms).double().logsumexp(0))
            assert log_p_of(table, prompt, option.name) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_log_probabilities_equal_plain_passes(tokenizer):
    model = make_tiny("llama", TOKENIZERS[tokenizer]())
    prompts = prompts_with(*CITIES)
    found = interp.evaluate(model, prompts, answers="whole").option_probabilities
    assert found.whole.all()
    check_against_plain_passes(model, prompts, found)


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("batch_tokens", [1, 10_000])
def test_every_architecture_and_batch_size(kind, batch_tokens):
    model = tiny_model(kind)
    prompts = prompts_with(*CITIES)
    found = interp.evaluate(model, prompts, answers="whole", batch_tokens=batch_tokens)
    check_against_plain_passes(model, prompts, found.option_probabilities)


def test_options_that_begin_alike_are_read_whole_by_themselves():
    model = make_tiny("llama", byte_level())
    prompts = prompts_with(*CITIES)
    alike = interp.evaluate(model, prompts).option_probabilities
    asked = interp.evaluate(model, prompts, answers="whole").option_probabilities
    assert alike.whole.all()
    assert alike.equals(asked)
    apart = interp.evaluate(model, some_prompts(3)).option_probabilities
    assert not apart.whole.any()
