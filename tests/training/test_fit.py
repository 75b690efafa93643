import pytest
import torch
from torch import nn
from torch.utils.data import Dataset

from interp.errors import UserError
from interp.training.fit import fit
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


def test_a_folder_with_checkpoints_of_another_program_is_refused(tmp_path):
    foreign = tmp_path / "checkpoint-3"
    foreign.mkdir()
    (foreign / "model.safetensors").write_text("")
    model = make_tiny("llama", byte_level()).hf
    with pytest.raises(UserError, match="which another program wrote"):
        fit(model, Steps(), next_token_loss, tmp_path, title="learn", use_cpu=True)
    assert (foreign / "model.safetensors").exists()
