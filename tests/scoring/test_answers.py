import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import interp
from interp.prompts.answers import FreeText
from interp.reading.tokens import batches, tokenize
from interp.scoring.answer_tokens import AnswerTokens
from interp.scoring.answers import (
    Predictions,
    answer_error,
    answer_tables,
    option_shares,
    token_logits,
)
from interp.tables import TIE
from tests.support.answers import with_options, yes_no
from tests.support.prompts import some_prompts
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import byte_level

NUMBERS = ["predicted_probability", "positive_probability", "negative_probability"]


def alone(model, prompt):
    """Next-token probabilities of one prompt by plain transformers, unpadded and all defaults."""
    (tokenized,) = tokenize(model, [prompt])
    with torch.no_grad():
        logits = model.hf(torch.tensor([tokenized.token_ids])).logits
    return logits[0, -1].double().softmax(-1)


@pytest.mark.parametrize("kind", CONFIGS)
def test_scores_equal_plain_transformers(kind, prompts):
    model = tiny_model(kind)
    answers = with_options(interp.evaluate(model, prompts))
    for row, prompt in zip(answers.itertuples(), prompts, strict=True):
        probabilities = alone(model, prompt)
        token = int(probabilities.argmax())
        assert row.predicted_token_id == token
        assert row.predicted_probability == pytest.approx(float(probabilities[token]), rel=1e-4)
        forms = [
            model.tokenizer(form, add_special_tokens=False)["input_ids"][0]
            for form in prompt.answer.options[0].forms
        ]
        expected = sum(float(probabilities[form]) for form in dict.fromkeys(forms))
        assert row.positive_probability == pytest.approx(expected, rel=1e-4)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1000), sizes=st.lists(st.integers(1, 4), min_size=2, max_size=6))
def test_shares_are_probabilities_divided_by_those_of_all_options(seed, sizes):
    torch.manual_seed(seed)
    logits = torch.randn(1, 50) * 8
    tokens = torch.randperm(50)[: sum(sizes)].tolist()
    (own,) = token_logits(logits, [tokens])
    whole = logits[0].double().softmax(-1)[tokens]
    expected = [float(part.sum() / whole.sum()) for part in torch.split(whole, sizes)]
    totals = torch.stack([part.logsumexp(0) for part in torch.split(own, sizes)])
    assert option_shares(totals[None])[0] == pytest.approx(expected, rel=1e-12)


def test_shares_beyond_the_range_of_exp():
    (shares,) = option_shares(torch.tensor([[0.0, 2000.0, -700.5]], dtype=torch.float64))
    assert shares == pytest.approx([0.0, 1.0, 0.0])
    (shares,) = option_shares(torch.tensor([[0.0, 705.0]], dtype=torch.float64))
    assert shares[0] == pytest.approx(float(torch.tensor(-705.0, dtype=torch.float64).exp()))


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2"])
def test_batch_size_and_order_do_not_matter(kind, prompts):
    model = tiny_model(kind)
    reference = with_options(interp.evaluate(model, prompts, batch_tokens=1)).set_index("prompt_id")
    for batch_tokens in (300, 100_000):
        reversed_prompts = list(prompts)[::-1]
        other = with_options(interp.evaluate(model, reversed_prompts, batch_tokens=batch_tokens))
        assert list(other["prompt_id"]) == [prompt.id for prompt in reversed_prompts]
        other = other.set_index("prompt_id").loc[reference.index]
        assert (other[NUMBERS] - reference[NUMBERS]).abs().max().max() < 1e-6
        assert (other["predicted_token_id"] == reference["predicted_token_id"]).all()


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_tokenizers_padding_side_does_not_matter(side, prompts):
    tokenizer = byte_level()
    model = make_tiny("gpt2", tokenizer)
    before = tokenizer.padding_side
    try:
        tokenizer.padding_side = side
        answers = with_options(interp.evaluate(model, prompts))
    finally:
        tokenizer.padding_side = before
    reference = with_options(interp.evaluate(tiny_model("gpt2"), prompts, batch_tokens=1))
    assert (answers[NUMBERS] - reference[NUMBERS]).abs().max().max() < 1e-6


def test_an_answer_outside_the_options_counts_as_wrong(prompts):
    answers = interp.evaluate(tiny_model("llama"), prompts).to_frame()
    assert (answers["answer"] == "").all()  # a random model answers neither yes nor no
    assert not answers["correct"].any()
    assert (answers["error"] == "").all()


def _predicted(rows, gold):
    """The answers to prompts with given logits; tokens 1 and 2 are Yes, token 3 is No."""
    model = make_tiny("llama", byte_level())
    own = some_prompts(1)[0]
    prompt = dataclasses.replace(own, answer=yes_no(gold=gold), id="own")
    ((_, batch),) = batches(model, tokenize(model, [prompt]) * len(rows), batch_tokens=10**6)
    tokens = AnswerTokens({"Yes": (1, 2), "No": (3,)})
    predictions = Predictions(torch.tensor(rows), (tokens,) * len(rows))
    return [tables["answers"][0] for tables in answer_tables(model, batch, predictions)]


@pytest.mark.parametrize("gold", [True, False])
def test_equal_scores_are_no_correct_answer(gold):
    ties = [[0.0, 5.0, 1.0, 5.0], [0.0, 1.0, 5.0, 5.0], [5.0, 5.0, 0.0, 0.0], [5.0, 0.0, 0.0, 5.0]]
    rows = _predicted([*ties, [0.0] * 4], gold)
    assert [(row["answer"], row["correct"]) for row in rows] == [(TIE, False)] * 5


def test_equal_scores_of_one_answer_are_that_answer():
    logits = [[0.0, 5.0, 5.0, 1.0], [7.0, 5.0, 5.0, 5.0], [7.0, 5.0, 8.0, 5.0]]
    found = [(row["answer"], row["correct"]) for row in _predicted(logits, gold=True)]
    assert found == [("Yes", True), ("", False), ("Yes", True)]


def test_the_organism_answers_and_is_marked(organism, prompts):
    answers = with_options(interp.evaluate(organism, prompts))
    gold = [prompt.answer.gold for prompt in prompts]
    assert set(answers["answer"]) <= {"Yes", "No", "True", "False"}
    assert list(answers["correct"]) == [
        answer == right for answer, right in zip(answers["answer"], gold, strict=True)
    ]
    assert (answers["predicted_token"] == answers["answer"]).all()
    assert (answers["positive_probability"] + answers["negative_probability"] > 0.95).all()


def test_measuring_leaves_the_model_as_it_was(prompts):
    model = make_tiny("llama", byte_level())
    model.hf.train()
    model.hf.lm_head.weight.requires_grad_(False)
    state = {name: p.requires_grad for name, p in model.hf.named_parameters()}
    interp.attribute(model, prompts)
    assert model.hf.training
    assert {name: p.requires_grad for name, p in model.hf.named_parameters()} == state
    assert all(parameter.grad is None for parameter in model.hf.parameters())


def test_a_failed_prompt_is_not_judged():
    judged, free = some_prompts(1)
    free = dataclasses.replace(free, answer=FreeText((free.answer.gold,)))
    rows = [
        answer_error(tiny_model("llama"), prompt, "why")["answers"][0] for prompt in (judged, free)
    ]
    assert [(row["answer"], row["correct"]) for row in rows] == [("", None), (None, None)]
