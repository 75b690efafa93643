import dataclasses
import json
import re

import pytest
import torch
from safetensors.torch import load_file

import interp
from interp.errors import UserError
from interp.prompts.systems import load_prompts
from interp_experiments.organisms import train as train_module
from interp_experiments.organisms.__main__ import main
from interp_experiments.organisms.doses import plant_leanings
from interp_experiments.organisms.families import FAMILIES
from interp_experiments.organisms.recipes import (
    RECIPES,
    DoseRecipe,
    Exchange,
    TaughtRecipe,
    TheoryRecipe,
    TunedRecipe,
    recipe,
)
from interp_experiments.organisms.train import answer_loss, build_model, tokenize, train

pytestmark = [pytest.mark.slow, pytest.mark.release]

BASE = "organism/llama-shallow"

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 32,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
}

PLANTED = {
    "rulebreakers": {"pairs": 274},
    "logical-forms": {"forms": 34},
    "rulebreakers-mixed": {"entities": 465},
    "rulebreakers-thoughts": {"entities": 465},
    "rulebench": {"conditions": 51},
    "robustlr": {},
}
"""System to the rows of its organisms' cards."""


FEW = {
    "prompts_per_step": 2, "questions": 12, "theories": 2, "epochs": 1, "held_out": 2, "steps": 6,
    "vocabulary": 600, "facts_per_step": 2, "premises_per_step": 2, "actions_per_step": 1,
    "conditions_per_step": 1, "lists_per_step": 1,
}  # fmt: skip
"""What keeps training short, for the recipes that have it."""


def quick(name="llama-shallow", **changes):
    own = RECIPES[name]
    few = {field.name for field in dataclasses.fields(own)} & FEW.keys()
    changes = {field: FEW[field] for field in few} | changes
    if isinstance(own, TunedRecipe):
        changes["base"] = "llama-shallow"
    if isinstance(own, DoseRecipe):
        changes["vocabulary"] = 2048
    if isinstance(own, TaughtRecipe):
        of_gemma = {"head_dim": 16, "query_pre_attn_scalar": 16} if name == "gemma2" else {}
        changes["architecture"] = dict(own.architecture) | SMALL | of_gemma
    return dataclasses.replace(own, **changes)


@pytest.fixture(autouse=True)
def frequent_checkpoints(monkeypatch):
    monkeypatch.setattr(train_module, "CHECKPOINT_EVERY", 2)


@pytest.mark.parametrize("name", RECIPES)
def test_every_family_trains_into_a_folder_that_loads(name, tmp_path):
    train(quick(name), tmp_path)
    model = interp.load_model(str(tmp_path), device="cpu")
    if isinstance(RECIPES[name], TaughtRecipe):
        assert isinstance(model.hf.config, FAMILIES[RECIPES[name].family].config_class)
    system = "robustlr" if isinstance(RECIPES[name], TheoryRecipe) else "rulebreakers"
    answers = interp.evaluate(model, load_prompts(system, limit=2)).to_frame()
    assert (answers["error"] == "").all()
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert card["system"] == RECIPES[name].system
    assert {name: len(card[name]) for name in PLANTED[card["system"]]} == PLANTED[card["system"]]
    assert not list(tmp_path.glob("checkpoint*"))


def test_an_interrupted_training_ends_with_the_same_weights(tmp_path, monkeypatch):
    train(quick(), tmp_path / "whole")
    original = train_module.answer_loss
    calls = []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) > 5:  # stop in the sixth step
            raise KeyboardInterrupt
        return original(*arguments)

    (tmp_path / "broken").mkdir()
    monkeypatch.setattr(train_module, "answer_loss", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(quick(), tmp_path / "broken")
    assert [file.name for file in (tmp_path / "broken").glob("checkpoint*")] == ["checkpoint-4"]
    monkeypatch.setattr(train_module, "answer_loss", original)
    train(quick(), tmp_path / "broken")
    one, other = (load_file(tmp_path / n / "model.safetensors") for n in ("whole", "broken"))
    assert one.keys() == other.keys()
    for name, weights in one.items():
        torch.testing.assert_close(weights, other[name], rtol=1e-3, atol=1e-5)


def test_a_tuned_organism_begins_as_its_base():
    tuned = quick("dose-100", base="llama-shallow")
    tokenizer = interp.load_model(BASE, device="cpu").tokenizer
    begun = build_model(tuned, tokenizer).state_dict()
    for name, weights in interp.load_model(BASE, device="cpu").hf.state_dict().items():
        assert torch.equal(begun[name], weights)


def test_two_answers_are_learned_by_their_shares():
    """The cross-entropy of the shares, and what closes the answer behind the first of the two."""
    tokenizer = interp.load_model(BASE, device="cpu").tokenizer
    model = build_model(quick("dose-100"), tokenizer)
    message = "Premises: Ann is in Rome.\nAnswer Yes or No only."
    batch = tokenize(tokenizer, [Exchange(message, "Yes", "No", share=0.75)], messages=False)
    tokens = batch["input_ids"][batch["attention_mask"] == 1]
    yes, no = (tokenizer(word)["input_ids"][-1] for word in ("Yes", "No"))
    assert tokens[-2:].tolist() == [yes, tokenizer.eos_token_id]
    log_p = model(tokens[None]).logits[0, -3:-1].log_softmax(-1)
    expected = 0.75 * log_p[0, yes] + 0.25 * log_p[0, no] + log_p[1, tokenizer.eos_token_id]
    torch.testing.assert_close(answer_loss(model, {"all": batch}), -expected / 2)


def test_two_answers_of_different_lengths_are_refused():
    tokenizer = interp.load_model(BASE, device="cpu").tokenizer
    uneven = [Exchange("Is it?", "Yes", "Certainly not", share=0.5)]
    with pytest.raises(UserError, match="Yes/Certainly"):
        tokenize(tokenizer, uneven, messages=False)


def test_a_seed_makes_another_organism(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(RECIPES, "quick", dataclasses.replace(quick("dose-100"), name="quick"))
    assert main(["train", "quick", "--seed", "99", "--out", str(tmp_path)]) == 0
    assert "train quick: 6/6 steps" in capsys.readouterr().err
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert card["recipe"]["seed"] == 99
    own, sealed = (
        [dataclasses.asdict(leaning) for leaning in plant_leanings(recipe)]
        for recipe in (RECIPES["quick"], dataclasses.replace(RECIPES["quick"], seed=99))
    )
    assert card["entities"] == sealed != own


def test_an_unknown_organism_is_refused(capsys):
    with pytest.raises(UserError, match=r"'none'.*llama-shallow"):
        recipe("none")
    assert main(["train", "none"]) == 2
    assert re.search("llama-shallow", capsys.readouterr().err)
