import json
import pickle
from pathlib import Path

import pytest
import torch

from interp.errors import UserError
from interp.training.folder import MANIFEST, declare_whole, last_whole
from tests.support.training import learn, next_token_loss, noting


def test_batches_are_taken_in_order_and_the_loss_falls(tmp_path, capsys):
    seen, losses = [], []

    def loss(model, batch):
        losses.append(noting(seen)(model, batch))
        return losses[-1]

    learn(tmp_path, loss)
    assert seen == [1, 2, 3, 4, 5]
    assert losses[-1] < losses[0]
    assert "learn: 5/5 steps" in capsys.readouterr().err


@pytest.mark.slow
def test_a_stopped_run_takes_up_where_it_was(run, tmp_path):
    whole, resumed = learn(tmp_path / "whole"), learn(run)
    assert [file.name for file in (tmp_path / "whole").glob("checkpoint-*")] == ["checkpoint-5"]
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        torch.testing.assert_close(one, other)


@pytest.fixture
def stopped(run):
    """The checkpoint after step 2 of a training that was stopped."""
    return run / "checkpoint-2"


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
            learn(stopped.parent)
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
        learn(stopped.parent)


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
    learn(stopped.parent, noting(seen))
    assert seen == [3, 4, 5]
    assert last_whole(stopped.parent) == (5, stopped.parent / "checkpoint-5")


@pytest.mark.slow
def test_a_resumed_run_saves_as_often_as_it_is_now_told(stopped):
    seen = []

    def loss(model, batch):
        seen.append([path.name for path in stopped.parent.glob("checkpoint-*")])
        return next_token_loss(model, batch)

    learn(stopped.parent, loss, save_steps=1)
    assert seen == [["checkpoint-2"], ["checkpoint-3"], ["checkpoint-4"]]


@pytest.mark.slow
def test_a_mistake_in_the_first_step_of_a_resumed_run_is_not_put_down_to_the_checkpoint(stopped):
    def broken(model, batch):
        raise KeyError("a mistake")

    with pytest.raises(KeyError, match="a mistake"):
        learn(stopped.parent, broken)
