import json

import pytest

from interp.cli import main
from tests.cli.test_bad_input import refused

SMALL = ("--model", "small-encoder", "--from-scratch", "--theories", "2", "--held-out", "1")


def test_a_dry_run_tells_steps_and_memory_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "robustlr", *SMALL, "--epochs", "3", "--batch", "5", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    rows = dict(line.rsplit(None, 1) for line in shown.splitlines() if len(line.split()) == 2)
    assert (rows[" prompts"], rows[" steps"]) == ("12", "9")
    assert "of AdamW" in shown
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_configuration_file_names_task_model_and_options(tmp_path, capsys):
    config = tmp_path / "train.yaml"
    config.write_text(
        "task: robustlr\nmodel: small-encoder\nfrom-scratch: true\ntheories: 2\nheld-out: 1\n"
        "train-set: NOT\nepochs: 1\n"
    )
    out = tmp_path / "model"
    assert main(["train", "--config", str(config), "--epochs", "2", "--out", str(out)]) == 0
    record = json.loads((out / "train.json").read_text())
    assert record["training"]["options"]["train_set"] == "NOT"
    assert record["training"]["options"]["epochs"] == 2
    assert record["history"][0]["command"].startswith("interp train --config")
    assert "weighted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["train"], "got no task; expected one of"),
        (["train", "robustlr"], "--model is missing: hub name, local folder"),
        (["train", "robustlr", *SMALL, "--config", "nowhere.yaml"], "cannot be read"),
        (["train", "robustl", *SMALL], "did you mean robustlr?"),
        (["train", "robustlr", *SMALL, "--train-set", "XOR"], "unknown train set 'XOR'"),
        (["train", "robustlr", *SMALL, "--epochs", "0"], "a whole number from 1"),
        (["train", "robustlr", *SMALL, "--dtype", "float16"], "unknown option '--dtype'"),
    ],
)
def test_a_mistake_is_told_in_one_line(arguments, problem, capsys):
    message = refused(arguments, capsys)
    assert problem in message
    assert len(message.splitlines()) == 1
