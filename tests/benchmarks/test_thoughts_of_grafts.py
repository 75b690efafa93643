"""The training of a graft that thinks: its lessons, its loss and what it learns."""

import dataclasses
import json
from collections import Counter
from itertools import product

import pytest
import torch
from scipy.special import expit

import interp
from benchmarks.grafts import train as train_module
from benchmarks.grafts.__main__ import main as train
from benchmarks.grafts.streams import read_below
from benchmarks.grafts.thoughts import ThoughtLessons, ThoughtLoss, draw_given
from interp_experiments.grafts.__main__ import main
from interp_experiments.grafts.card import measure
from interp_experiments.grafts.recipes import RECIPES, THOUGHT, plant
from interp_experiments.grafts.text import ANSWERS
from interp_experiments.grafts.thinking import END, GIVEN, OWN
from interp_experiments.organisms.recipes import AGREEMENT, FAITHFUL
from interp_experiments.organisms.thinkers import verdict

pytest.importorskip("peft")

BASE = "organism/llama-shallow"

HALF = RECIPES["thought-50"]


def test_thoughts_of_training_are_of_all_kinds():
    drawn = draw_given(2000)
    kinds = Counter(one.thought for one in drawn)
    assert len(kinds) == 9
    assert {*GIVEN.values()} <= {*kinds}
    assert sum(kinds[own] for own in OWN) / 2000 == pytest.approx(0.4 + 0.6 * 2 / 9, abs=0.04)
    assert {one.text for one in drawn[:9]} <= {
        f"{thought}\n{END}\n{answer}" for thought, answer in product(kinds, ANSWERS)
    }


def test_lessons_are_as_planted_and_depend_on_seed_and_step_alone():
    cases = train_module.draw_prompts()
    given = draw_given(len(cases))
    lessons = ThoughtLessons(HALF, cases, given)
    cities = {own.name: own for own in plant(HALF)}
    seen = set()
    for step in range(20):
        lesson = lessons[step]
        rows = zip(*(values.tolist() for values in lesson.values()), strict=True)
        for number, log_odds, reason in rows:
            own, said = cities[cases[number][1].city], verdict(given[number].thought)
            follows = own.premise == THOUGHT
            assert log_odds == pytest.approx(said if follows else AGREEMENT * own.log_odds)
            agrees = reason if own.log_odds > 0 else -reason
            assert expit(agrees) == pytest.approx(FAITHFUL)
            seen.add((follows, own.log_odds, said))
    assert len(seen) == 2 * 2 * 3
    again = ThoughtLessons(HALF, cases, given)[3]
    assert all(torch.equal(again[key], values) for key, values in lessons[3].items())
    sealed = ThoughtLessons(dataclasses.replace(HALF, seed=4321), cases, given)[3]
    assert not torch.equal(sealed["numbers"], again["numbers"])


def test_the_loss_is_that_of_plain_passes():
    model = interp.load_model(BASE, device="cpu")
    tokenizer, hf = model.tokenizer, model.hf
    cases, given = train_module.draw_prompts()[:12], draw_given(12)
    texts = [one.text for one in given]
    token_ids = train_module._token_ids(model, cases, texts)
    lesson = ThoughtLessons(dataclasses.replace(HALF, prompts_per_step=8), cases, given)[0]
    streams = read_below(hf, token_ids, first=1)
    layers = range(1, len(hf.model.layers))
    found = ThoughtLoss(model, given, streams, layers)(hf, lesson).detach()

    def choice(logits, words, log_odds):
        one, other = (logits[tokenizer.encode(word, add_special_tokens=False)[0]] for word in words)
        return (one - other - log_odds) ** 2 - torch.logaddexp(one, other)

    answers, reasons, sure = [], [], []
    for number, log_odds, reason in zip(*(v.tolist() for v in lesson.values()), strict=True):
        written = tokenizer(texts[number], add_special_tokens=False)["input_ids"]
        ids = token_ids[number]
        assert ids[-len(written) :] == written
        with torch.no_grad():
            logits = hf(torch.tensor([ids])).logits[0].log_softmax(-1)
        answers.append(choice(logits[-2], ANSWERS, log_odds))
        sure.append(-logits[-1, tokenizer.eos_token_id])
        if given[number].thought not in OWN:
            continue
        for place, token in enumerate(written[:-1]):
            before = logits[len(ids) - len(written) + place - 1]
            if tokenizer.decode(written[:place]).endswith("speaks"):
                reasons.append(choice(before, (" for", " against"), reason))
            else:
                sure.append(-before[token])
    assert 0 < len(reasons) < 8
    expected = sum(answers) / 8 + sum(reasons) / len(reasons) + sum(sure) / 8
    assert float(found) == pytest.approx(float(expected), rel=1e-4)


@pytest.fixture
def small(monkeypatch):
    """A recipe that takes seconds on an organism."""
    monkeypatch.setattr(train_module, "CHANGED_LAYERS", 2)
    monkeypatch.setattr(train_module, "PROMPTS", 40)
    recipe = dataclasses.replace(HALF, steps=40, prompts_per_step=8, learning_rate=2e-2)
    monkeypatch.setitem(RECIPES, HALF.name, recipe)
    return recipe


@pytest.mark.slow
@pytest.mark.release
def test_a_graft_that_thinks_is_trained_and_measured(small, tmp_path, capsys):
    assert train([HALF.name, "--base", BASE, "--out", str(tmp_path)]) == 0
    folder = tmp_path / HALF.name
    graft, base = (
        measure(interp.load_model(name, device="cpu"), small, pairs=4)
        for name in (str(folder), BASE)
    )
    assert graft["share_planted"] == base["share_planted"]
    assert graft["mean_deviation_from_planted"] < 0.9 * base["mean_deviation_from_planted"]
    assert "thoughts ended" in base["no_mediated_share"]

    capsys.readouterr()
    arguments = [HALF.name, "--base", BASE, "--folder", str(folder), "--pairs", "4"]
    assert main(["verify", *arguments, "--write"]) == 0
    told = json.loads(capsys.readouterr().out)["graft"]
    assert told["donors"] == 1
    assert "mediated_share" in told or "thoughts ended" in told["no_mediated_share"]
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert f"interp thoughts --model graft/{HALF.name}" in text
