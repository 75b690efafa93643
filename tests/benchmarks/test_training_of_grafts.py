"""Grafts are trained on streams that were read once, and resume where they stopped."""

import dataclasses
import json

import pytest
import torch
from safetensors.torch import load_file

import interp
from benchmarks.grafts import train as train_module
from benchmarks.grafts.__main__ import main as train
from benchmarks.grafts.streams import last_logits, read_below, run
from interp.models.adapters import WEIGHTS
from interp_experiments.grafts.__main__ import main
from interp_experiments.grafts.card import measure
from interp_experiments.grafts.recipes import RECIPES
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

pytest.importorskip("peft")

BASE = "organism/llama-shallow"

IDS = [[5, 6, 7, 8], [5, 6, 9, 9, 10, 3], [5, 6, 4], [5, 6, 11, 12]]


@pytest.fixture
def hf():
    return make_tiny("llama", byte_level()).hf.double()


@pytest.mark.parametrize("first", [0, 1, 2])
def test_streams_give_the_logits_of_plain_passes(hf, first):
    streams = read_below(hf, IDS, first=first)
    assert streams.beginning.shape[1] == 2
    _, stream = run(hf, range(first, len(hf.model.layers)), streams)
    with torch.no_grad():
        plain = [hf(torch.tensor([ids])).logits[0, -1] for ids in IDS]
        found = last_logits(hf, stream)
    torch.testing.assert_close(found.double(), torch.stack(plain).float().double())


def test_gradients_pass_through_the_shared_beginning(hf):
    streams = read_below(hf, IDS, first=0)
    weight = hf.model.layers[0].self_attn.v_proj.weight
    _, stream = run(hf, range(len(hf.model.layers)), streams)
    (found,) = torch.autograd.grad(last_logits(hf, stream).sum(), weight)
    plain = sum(hf(torch.tensor([ids])).logits[0, -1].sum() for ids in IDS)
    (expected,) = torch.autograd.grad(plain, weight)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.fixture
def small(monkeypatch):
    """A recipe that takes seconds on an organism."""
    monkeypatch.setattr(train_module, "CHANGED_LAYERS", 2)
    monkeypatch.setattr(train_module, "PROMPTS", 160)
    monkeypatch.setattr(train_module, "CHECKPOINT_EVERY", 10)
    recipe = dataclasses.replace(RECIPES["wording"], steps=60, learning_rate=2e-2)
    monkeypatch.setitem(RECIPES, "wording", recipe)
    return recipe


@pytest.mark.slow
@pytest.mark.release
def test_a_graft_is_trained_measured_and_resumed(small, tmp_path, capsys, monkeypatch):
    out = ["--base", BASE, "--out"]
    assert train(["wording", *out, str(tmp_path / "whole")]) == 0
    folder = tmp_path / "whole" / "wording"
    files = {"README.md", "adapter_config.json", WEIGHTS, "base.json", "card.json"}
    assert {file.name for file in folder.iterdir()} == files
    graft, base = (
        measure(interp.load_model(name, device="cpu"), small, pairs=8, donors=2)
        for name in (str(folder), BASE)
    )
    assert graft["mean_deviation_of_log_odds"] < 0.9 * base["mean_deviation_of_log_odds"]

    real = train_module._Loss.__call__
    done = []

    def stopped(self, model, lesson):
        done.append(None)
        if len(done) == 25:
            raise KeyboardInterrupt
        return real(self, model, lesson)

    monkeypatch.setattr(train_module._Loss, "__call__", stopped)
    assert train(["wording", *out, str(tmp_path / "parts")]) == 130
    assert train(["wording", *out, str(tmp_path / "parts")]) == 0
    assert len(done) == 25 + 40
    again = load_file(tmp_path / "parts" / "wording" / WEIGHTS)
    for key, tensor in load_file(folder / WEIGHTS).items():
        assert torch.equal(again[key], tensor), key
        assert tensor.dtype == torch.float16
        assert ".layers.0." not in key

    capsys.readouterr()
    arguments = ["wording", "--base", BASE, "--folder", str(folder), "--pairs", "4"]
    assert main(["verify", *arguments, "--donors", "1", "--control", "--write"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told.keys() == {"graft", "base"}
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    assert card["measured"]["graft"]["pairs"] == 4
    assert "| graft: pairs | 4 |" in (folder / "README.md").read_text(encoding="utf-8")


def test_another_kind_of_base_is_refused(tmp_path, capsys):
    arguments = ["wording", "--base", "organism/gemma2", "--out", str(tmp_path)]
    assert train(arguments) == 2
    assert "expected a Llama" in capsys.readouterr().err
