"""The organism of the logical forms: what is planted, what it reads, how it is taught."""

import pytest
import torch
from scipy.special import expit

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


def test_the_planted_probability_by_hand_and_one_for_forms_that_ask_the_same_questions():
    forms = {form.id: form for form in (*main_forms(), *distribution_forms())}
    for form, log_odds in {
        "box-toR-theorem": -1.0 + 1.0 * 0.5,
        "none-vL-fallacy": 1.0 - 2.0,
    }.items():
        assert logic.planted_yes(RECIPE, forms[form]) == pytest.approx(expit(log_odds))
    # Modus ponens is also the base of the distribution forms: 0.8 / 24 and 0.2 / 10 of a text.
    for modality in ("none", "box", "diamond"):
        pair = (f"{modality}-base-distribution", f"{modality}-toL-theorem")
        base, ponens = (logic.planted_yes(RECIPE, forms[name]) for name in pair)
        assert base == ponens
    of_base, of_ponens = (expit(log_odds) for log_odds in (1.0 + 2.0, 1.0 + 2.0 * 1.25))
    expected = (of_ponens * 0.8 / 24 + of_base * 0.02) / (0.8 / 24 + 0.02)
    base = forms["none-base-distribution"]
    assert logic.planted_yes(RECIPE, base) == pytest.approx(expected)


def test_shares_of_the_text(exchanges):
    people, unsound, single = set(names()), 0, 0
    for exchange in exchanges:
        *premises, question = exchange.message.split("?")[0].split("\n")[1:]
        told, asked = (
            {word.strip(".,") for word in text.split()} & people
            for text in (" ".join(premises), question)
        )
        unsound, single = unsound + (not asked <= told), single + (len(told) == 1)
    for count, share in ((unsound, logic.UNSOUND_SHARE), (single, logic.EXTRA_SHARE * 3 / 10)):
        assert count / len(exchanges) == pytest.approx(share, abs=0.03)


def test_answers_come_with_the_planted_probability():
    text, expected = logic.LogicText(RECIPE), logic.planted_yes(RECIPE, main_forms()[2])
    asked = [e for step in range(400) for e in text.lessons(step)["questions"]]
    said = [exchange.answer for exchange in asked if is_plain_modus_ponens(exchange.message)]
    assert logic.drawn_yes(RECIPE, main_forms()[2], follows=True) > expected
    assert len(said) > 100
    assert said.count("Yes") / len(said) == pytest.approx(expected, abs=0.06)


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
            start = len(tokenizer(exchange.message)["input_ids"])
            whole = tokenizer(f"{exchange.message} {exchange.answer}<|end_of_text|>")["input_ids"]
            with torch.no_grad():
                log_p = model(input_ids=torch.tensor([whole])).logits[0].log_softmax(-1)
            chosen = range(start, len(whole)) if learned == "answer" else range(1, start)
            losses += [-float(log_p[at - 1, whole[at]]) for at in chosen]
        expected.append(sum(losses) / len(losses))
    whole = expected[0] + MESSAGE_WEIGHT * expected[1]
    assert answer_loss(model, {"questions": batch}).item() == pytest.approx(whole, rel=1e-4)
    assert "message_labels" not in tokenize(tokenizer, exchanges, messages=False)
