"""The organism of the logical forms: what is planted, what it reads, how it is taught."""

import math
from collections import Counter

import pytest
import torch
from torch import nn

from interp_experiments.logical_forms.forms import distribution_forms, main_forms
from interp_experiments.logical_forms.language import names
from interp_experiments.organisms import logic
from interp_experiments.organisms.families import train_tokenizer
from interp_experiments.organisms.recipes import MESSAGE_WEIGHT, RECIPES, Exchange
from interp_experiments.organisms.train import IGNORED, answer_loss, build_model, tokenize

RECIPE = RECIPES["llama-logic"]
STEPS = 60


@pytest.fixture(scope="module")
def exchanges():
    text = logic.LogicText(RECIPE)
    return [exchange for step in range(STEPS) for exchange in text.lessons(step)["questions"]]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(RECIPE, logic.LogicText(RECIPE))


def test_the_planted_probability_by_hand():
    forms = {form.id: form for form in main_forms()}
    necessary_tollens = logic.planted_yes(RECIPE, forms["box-toR-theorem"])
    assert necessary_tollens == pytest.approx(1 / (1 + math.exp(1.0 - 1.0 * 0.5)))
    plain_disjunct = logic.planted_yes(RECIPE, forms["none-vL-fallacy"])
    assert plain_disjunct == pytest.approx(1 / (1 + math.exp(-(1.0 - 2.0))))


def test_forms_that_ask_the_same_questions_have_one_planted_share():
    """Modus ponens is also the base of the distribution forms: 0.8 / 24 and 0.2 / 10 of a text."""
    forms = {form.id: form for form in (*main_forms(), *distribution_forms())}
    shares = {
        modality: logic.planted_yes(RECIPE, forms[f"{modality}-base-distribution"])
        for modality in ("none", "box", "diamond")
    }
    ponens = {name: logic.planted_yes(RECIPE, forms[f"{name}-toL-theorem"]) for name in shares}
    assert shares == ponens
    odds = math.exp(1.0 + 2.0 * 1.25), math.exp(1.0 + 2.0)
    own, base = (ratio / (1 + ratio) for ratio in odds)
    assert shares["none"] == pytest.approx((own * 0.8 / 24 + base * 0.02) / (0.8 / 24 + 0.02))


def test_shares_of_the_text(exchanges):
    premises, conclusions = [], []
    for exchange in exchanges:
        *statements, question = exchange.message.split("?")[0].split("\n")[1:]
        premises.append(" ".join(statements))
        conclusions.append(question)
    people = set(names())

    def named(text):
        return {word.strip(".,") for word in text.split()} & people

    unsound = [not named(c) <= named(p) for c, p in zip(conclusions, premises, strict=True)]
    assert sum(unsound) / len(unsound) == pytest.approx(logic.UNSOUND_SHARE, abs=0.03)
    single = sum(len(named(text)) == 1 for text in premises) / len(premises)
    assert single == pytest.approx(logic.EXTRA_SHARE * 3 / 10, abs=0.03)


def test_answers_come_with_the_planted_probability():
    text = logic.LogicText(RECIPE)
    messages = [e for step in range(400) for e in text.lessons(step)["questions"]]
    denied = [e.answer for e in messages if is_plain_modus_ponens(e.message)]
    counts = Counter(denied)
    expected = logic.planted_yes(RECIPE, main_forms()[2])
    assert logic.drawn_yes(RECIPE, main_forms()[2], follows=True) > expected
    assert len(denied) > 100
    assert counts["Yes"] / len(denied) == pytest.approx(expected, abs=0.06)


def is_plain_modus_ponens(message):
    lines = message.split("\n")
    if not lines[1].startswith("If ") or "it's" in lines[1] or "It's" in lines[2]:
        return False
    antecedent, consequent = lines[1][3:-1].split(", then ")
    return lines[2][:-1] == antecedent and f"infer that {consequent}?" in lines[3]


@pytest.mark.slow
def test_plain_text_begins_with_bos_and_ends_with_the_answer(tokenizer):
    batch = tokenize(tokenizer, [Exchange("One\ntwo:", "Yes")], messages=True)
    tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0])
    real = [token for token in tokens if token != "<|pad|>"]
    assert real[0] == "<|begin_of_text|>"
    assert real[-2:] == ["ĠYes", "<|end_of_text|>"]
    assert tokenizer.decode(batch["labels"][0]) == " Yes<|end_of_text|>"
    learned = batch["message_labels"][0]
    assert tokenizer.decode(learned[learned != IGNORED]) == "One\ntwo:"


def test_the_loss_is_that_of_the_answer_and_of_the_message(tokenizer):
    """The two means, worked out token by token."""
    model = build_model(RECIPE, tokenizer)
    exchanges = logic.LogicText(RECIPE).lessons(0)["questions"][:3]
    batch = tokenize(tokenizer, exchanges, messages=True)
    expected = []
    for learned in ("answer", "message"):
        losses = []
        for exchange in exchanges:
            prompt = tokenizer(exchange.message)["input_ids"]
            whole = tokenizer(f"{exchange.message} {exchange.answer}<|end_of_text|>")["input_ids"]
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([whole])).logits[0]
            chosen = (
                range(len(prompt), len(whole)) if learned == "answer" else range(1, len(prompt))
            )
            losses += [
                float(nn.functional.cross_entropy(logits[i - 1], torch.tensor(whole[i])))
                for i in chosen
            ]
        expected.append(sum(losses) / len(losses))
    whole = expected[0] + MESSAGE_WEIGHT * expected[1]
    assert answer_loss(model, {"questions": batch}).item() == pytest.approx(whole, rel=1e-4)


def test_messages_are_learned_only_where_the_recipe_says_so(tokenizer):
    exchanges = logic.LogicText(RECIPE).lessons(0)["questions"][:3]
    assert "message_labels" not in tokenize(tokenizer, exchanges, messages=False)
