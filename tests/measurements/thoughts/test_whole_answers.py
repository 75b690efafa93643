"""Whole answers after thoughts, against plain passes over prompt, thought and option."""

import copy
from dataclasses import replace
from functools import cache

import pytest
import torch

from interp.measurements.specs import Evaluate
from interp.measuring.core import bind, collect
from interp.prompts.answers import AnswerOption, Choice
from interp.reading.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.measurements.thoughts.test_measure import (
    SPEC,
    attentive_model,
    check_early_answers,
    drawn,
    prompts,
    read_ids,
)

CITIES = (
    AnswerOption("New York", ("New York", "NYC")),
    AnswerOption("New Jersey", ("New Jersey",)),
)


@cache
def exact_model():
    """The model in float64; its large logits round by more than 1e-5 in float32."""
    model = attentive_model()
    return replace(model, hf=copy.deepcopy(model.hf).double())


@cache
def asked():
    """Prompts whose options begin alike, with donors whose options do so too."""
    return tuple(
        replace(prompt, answer=Choice(CITIES, CITIES[number % 2].name))
        for number, prompt in enumerate(prompts()[:2])
    )


@cache
def log_p(ids):
    """The log-probability of each token of a text, given those before it: one plain pass."""
    with torch.inference_mode():
        logits = exact_model().hf(torch.tensor([ids]), use_cache=False).logits[0].double()
    return [float(row.log_softmax(-1)[token]) for row, token in zip(logits, ids[1:], strict=False)]


def option_log_p(prompt, option):
    """The log-probability of an option after a prompt and its thought, over all ways to write it.

    A way that goes on from another way of the option is part of it.
    """
    model, ids = attentive_model(), read_ids(prompt)
    (tokenized,) = tokenize(model, [replace(prompt, segments={}, roles={})])
    assert list(tokenized.token_ids) == ids
    answers = AnswerTokenizer(model, "whole")(tokenized)
    ways = {answers.spelled(column) for column in answers.of[option.name]}
    spelled = {model.tokenizer.decode(list(way)).strip() for way in ways}
    assert spelled == set(option.forms)
    assert max(map(len, ways)) > 1
    sums = [sum(log_p((*ids, *way))[len(ids) - 1 :]) for way in ways]
    return float(torch.tensor(sums).double().logsumexp(0))


def value(prompt):
    """The log-odds of the correct option against the other."""
    gold, other = sorted(CITIES, key=lambda option: option.name != prompt.answer.gold)
    return option_log_p(prompt, gold) - option_log_p(prompt, other)


def test_options_that_begin_alike_are_read_behind_each_thought():
    tables = collect(bind(SPEC, exact_model()), asked())
    found = tables["thought_answers"]
    assert found["whole"].all()
    seen = [check_early_answers(found, one, drawn(one), value) for one in asked()]
    assert sum(seen) > 4


def test_evaluation_reads_whole_answers_behind_a_written_thought():
    prompt = asked()[0]
    thought = next(one for one in drawn(prompt) if one.ended)
    thinking = replace(exact_model(), thoughts={prompt.id: (thought,)})
    tables = collect(bind(Evaluate(answers="whole"), thinking), [replace(prompt, donors=())])
    found = tables["option_probabilities"].set_index("option")["probability"]
    for option in CITIES:
        expected = option_log_p(replace(prompt, thought=thought), option)
        assert found[option.name] == pytest.approx(torch.tensor(expected).exp().item(), rel=1e-4)
