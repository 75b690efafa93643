import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset

from interp.errors import UserError
from interp.training.fit import fit
from interp.training.folder import MANIFEST, declare_whole, last_whole
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level


class Steps(Dataset):
    """Batches that say which step they are for."""

    def __len__(self):
        return 5

    def __getitem__(self, step):
        return {"input_ids": torch.tensor([[step + 1, 2, 3]])}


def next_token_loss(model, batch):
    ids = batch["input_ids"]
    logits = model(input_ids=ids).logits
    return nn.functional.cross_entropy(logits[0, :-1], ids[0, 1:])


def test_batches_are_taken_in_order_and_the_loss_falls(tmp_path, capsys):
    seen, losses = [], []

    def loss(model, batch):
        seen.append(int(batch["input_ids"][0, 0]))
        value = next_token_loss(model, batch)
        losses.append(value.item())
        return value

    model = make_tiny("llama", byte_level()).hf
    fit(model, Steps(), loss, tmp_path, title="learn", use_cpu=True, learning_rate=1e-2)
    assert seen == [1, 2, 3, 4, 5]
    assert losses[-1] < losses[0]
    assert "learn: 5/5 steps" in capsys.readouterr().err


@pytest.mark.slow
def test_a_stopped_run_takes_up_where_it_was(tmp_path):
    def stopping(model, batch):
        if int(batch["input_ids"][0, 0]) == 4:
            raise KeyboardInterrupt
        return next_token_loss(model, batch)

    whole, stopped = (make_tiny("llama", byte_level()).hf for _ in range(2))
    options = {"title": "learn", "use_cpu": True, "save_steps": 2, "learning_rate": 1e-2}
    fit(whole, Steps(), next_token_loss, tmp_path / "whole", **options)
    try:
        fit(stopped, Steps(), stopping, tmp_path / "stopped", **options)
    except KeyboardInterrupt:
        stopped = make_tiny("llama", byte_level()).hf
    fit(stopped, Steps(), next_token_loss, tmp_path / "stopped", **options)
    assert [file.name for file in (tmp_path / "whole").glob("checkpoint-*")] == ["checkpoint-5"]
    for one, other in zip(whole.parameters(), stopped.parameters(), strict=True):
        torch.testing.assert_close(one, other)


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped")

    def stopping(model, batch):
        if int(batch["input_ids"][0, 0]) == 4:
            raise KeyboardInterrupt
        return next_token_loss(model, batch)

    model = make_tiny("llama", byte_level()).hf
    with pytest.raises(KeyboardInterrupt):
        fit(model, Steps(), stopping, folder, title="learn", use_cpu=True, save_steps=2)
    return folder


@pytest.fixture
def stopped(stopped_once, tmp_path):
    """The checkpoint after step 2 of a training that was stopped."""
    shutil.copytree(stopped_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "checkpoint-2"


def resume(stopped, loss=next_token_loss, save_steps=2):
    model = make_tiny("llama", byte_level()).hf
    options = {"title": "learn", "use_cpu": True, "save_steps": save_steps}
    fit(model, Steps(), loss, stopped.parent, **options)


def sign(checkpoint):
    """Let a checkpoint's manifest say what now is there."""
    (checkpoint / MANIFEST).unlink()
    declare_whole(checkpoint)


class Evil:
    """Leaves a file behind where it is unpickled."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth"])
def test_a_checkpoint_with_code_or_of_another_kind_is_refused(stopped, tmp_path, name):
    trap = tmp_path / "trap"
    for held in (pickle.dumps(Evil(trap)), b"", pickle.dumps({"state": 1})):
        (stopped / name).write_bytes(held)
        sign(stopped)
        with pytest.raises(UserError, match=r"checkpoint-2 .*: \w+\("):
            resume(stopped)
    assert not trap.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "state", [{"global_step": 1}, {"global_step": "2"}, {"global_step": None}, {"unknown": 1}, []]
)
def test_a_checkpoint_whose_state_is_of_another_step_is_refused(stopped, state):
    file = stopped / "trainer_state.json"
    made = {**json.loads(file.read_text()), **state} if state else state
    file.write_text(json.dumps(made))
    sign(stopped)
    with pytest.raises(UserError, match=r"checkpoint-2 .*: \w+\("):
        resume(stopped)


@pytest.mark.slow
@pytest.mark.parametrize(
    "state",
    [
        {"stateful_callbacks": {}},
        {"stateful_callbacks": {"TrainerControl": 1}},
        {"total_flos": ""},
        {"log_history": 1},
        {"save_steps": "1"},
        {"max_steps": 2},
        {"best_global_step": "../x"},
    ],
)
def test_what_else_a_checkpoint_says_of_its_state_is_not_used(stopped, state):
    file, seen = stopped / "trainer_state.json", []
    file.write_text(json.dumps({**json.loads(file.read_text()), **state}))
    sign(stopped)

    def loss(model, batch):
        seen.append(int(batch["input_ids"][0, 0]))
        return next_token_loss(model, batch)

    resume(stopped, loss)
    assert seen == [3, 4, 5]
    assert last_whole(stopped.parent) == (5, stopped.parent / "checkpoint-5")


@pytest.mark.slow
def test_a_resumed_run_saves_as_often_as_it_is_now_told(stopped):
    seen = []

    def loss(model, batch):
        seen.append([path.name for path in stopped.parent.glob("checkpoint-*")])
        return next_token_loss(model, batch)

    resume(stopped, loss, save_steps=1)
    assert seen == [["checkpoint-2"], ["checkpoint-3"], ["checkpoint-4"]]


@pytest.mark.slow
def test_a_mistake_in_the_first_step_of_a_resumed_run_is_not_put_down_to_the_checkpoint(stopped):
    def broken(model, batch):
        raise KeyError("a mistake")

    with pytest.raises(KeyError, match="a mistake"):
        resume(stopped, broken)


def test_a_folder_with_checkpoints_of_another_program_is_refused(tmp_path):
    foreign = tmp_path / "checkpoint-3"
    foreign.mkdir()
    (foreign / "model.safetensors").write_text("")
    model = make_tiny("llama", byte_level()).hf
    with pytest.raises(UserError, match=r"checkpoint-3\b.*program"):
        fit(model, Steps(), next_token_loss, tmp_path, title="learn", use_cpu=True)
    assert (foreign / "model.safetensors").exists()
