"""An adapter is trained beside the weights, resumes, and loads like any other model."""

import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import interp
from interp.errors import UserError
from interp.models.adapters import SETTINGS, WEIGHTS
from interp.models.load import load_model
from interp.training.run import Training
from tests.support import training
from tests.support.other_kinds import classifier
from tests.support.processes import child, ended, until
from tests.support.tiny import make_tiny, save
from tests.support.tokenizers import byte_level
from tests.support.training import CPU, NUMBERS, Colors, question, weights

pytest.importorskip("peft")

SPEC = Colors(lora_rank=8, epochs=20, batch=8, learning_rate=2e-2)
train = partial(training.train, spec=SPEC, steps=40)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return save(make_tiny("llama", byte_level()), tmp_path_factory.mktemp("models") / "base")


@pytest.fixture(scope="module")
def undisturbed(base, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "undisturbed"
    return folder, train(base, folder)


def accuracy(folder):
    model = load_model(str(folder), device="cpu")
    return interp.evaluate(model, [question(n) for n in NUMBERS["test"]]).answers["correct"].mean()


@pytest.mark.slow
def test_the_folder_holds_an_adapter_that_loads(undisturbed, base):
    folder, record = undisturbed
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        SETTINGS,
        WEIGHTS,
        "base.json",
        "chat_template.jinja",
        "tokenizer.json",
        "tokenizer_config.json",
        "train.json",
    ]
    before, after = weights(base), weights(folder)
    changed = [name for name in before if not torch.equal(before[name], after[name])]
    assert changed and all("_proj" in name for name in changed)
    assert record.training.options["lora_rank"] == 8
    assert "library_name: peft" in (folder / "README.md").read_text()
    assert json.loads((folder / SETTINGS).read_text())["base_model_name_or_path"] == str(base)


@pytest.mark.slow
def test_it_gives_what_was_measured_and_has_learned_what_the_base_has_not(undisturbed, base):
    folder, record = undisturbed
    measured = record.metrics["test"]["accuracy"]
    assert accuracy(folder) == measured > accuracy(base) + 0.5


def killed_at_a_checkpoint(base: str, out: str) -> None:
    """Train, in a process that will be killed, with a checkpoint at every step."""
    torch.set_num_threads(1)
    train(Path(base), Path(out), steps=1)


@pytest.mark.slow
def test_a_killed_and_resumed_run_gives_the_same_adapter(undisturbed, base, tmp_path):
    folder, record = undisturbed
    out = tmp_path / "killed"
    with child(killed_at_a_checkpoint, str(base), str(out)) as process:
        until((out / "checkpoint-3" / "manifest.json").exists)
        os.kill(process.pid, signal.SIGKILL)
        assert ended(process) == -signal.SIGKILL
    assert not (out / SETTINGS).exists()
    resumed = train(base, out)
    assert resumed.metrics == record.metrics and len(resumed.history) == 2
    ours, theirs = load_file(out / WEIGHTS), load_file(folder / WEIGHTS)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert not list(out.glob("checkpoint-*"))


def test_the_estimate_counts_what_is_trained(base):
    whole = Training(SPEC.model_copy(update={"lora_rank": None}), str(base), CPU).estimate()
    own = Training(SPEC, str(base), CPU).estimate()
    config = load_model(str(base), device="cpu").hf.config
    hidden, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    keys = hidden // config.num_attention_heads * config.num_key_value_heads
    sides = [(hidden, hidden)] * 2 + [(hidden, keys)] * 2 + [(hidden, inner)] * 3
    assert own.trained == layers * 8 * sum(map(sum, sides))
    assert own.parameters == whole.parameters + own.trained
    assert own.optimizer == 8 * own.trained < whole.optimizer


def test_what_takes_no_adapter_is_refused(undisturbed, tmp_path):
    folder, _ = undisturbed
    with pytest.raises(UserError, match=r"adapter.*--lora-rank"):
        Training(SPEC, str(folder), CPU)
    with pytest.raises(UserError, match=r"--lora-rank.*--from-scratch"):
        Training(SPEC.model_copy(update={"from_scratch": True}), "small-decoder", CPU)


def test_an_encoder_takes_no_adapter(tmp_path):
    model = classifier("roberta")
    save(model, tmp_path)
    with pytest.raises(UserError, match=r"sequence classifier.*head.*--lora-rank"):
        Training(SPEC, str(tmp_path), CPU)


def test_an_adapter_and_its_base_can_be_trained_on_as_one_model(undisturbed, tmp_path):
    folder, _ = undisturbed
    spec = SPEC.model_copy(update={"lora_rank": None, "epochs": 1, "learning_rate": 1e-6})
    train(folder, tmp_path / "out", spec=spec)
    before, after = weights(folder), weights(tmp_path / "out")
    assert list(before) == list(after)
    assert all((before[name] - after[name]).abs().max() < 1e-3 for name in before)


def test_without_peft_it_is_said_what_to_install(base, monkeypatch):
    monkeypatch.setattr("interp.models.adapters.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'interp\[lora\]'"):
        Training(SPEC, str(base), CPU)


@pytest.mark.slow
def test_a_text_to_text_model_takes_an_adapter(tmp_path):
    whole = Colors(from_scratch=True, epochs=1)
    train("small-text-to-text", tmp_path / "base", spec=whole)
    train(tmp_path / "base", tmp_path / "out", spec=SPEC.model_copy(update={"epochs": 1}))
    before, after = weights(tmp_path / "base"), weights(tmp_path / "out")
    changed = {name.split(".")[-2] for name in before if not torch.equal(before[name], after[name])}
    assert changed >= {"q", "k", "v", "o", "wo"} and "lm_head" not in changed
