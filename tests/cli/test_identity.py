"""A folder refuses a model whose files have changed since it was measured."""

import json
import re
import shutil

import pytest
import torch

from interp.cli import main
from interp.runs.folder import RunFolder
from tests.support.tiny import make_tiny, save
from tests.support.tokenizers import byte_level


def test_changed_end_tokens_are_another_model(tmp_path, capsys):
    folder = save(make_tiny("llama", byte_level()), tmp_path / "m")
    command = ["generate", "--model", str(folder), "--device", "cpu", "--max-new-tokens", "2"]
    command += ["--out", str(tmp_path / "run")]
    assert main([*command, "--limit", "1"]) == 0
    file = folder / "generation_config.json"
    settings = json.loads(file.read_text()) | {"eos_token_id": list(range(2, 200))}
    file.write_text(json.dumps(settings))
    for limit in ("1", "2"):
        assert main([*command, "--limit", limit]) == 2
        assert re.search(r"identity.*\b[0-9a-f]{64}\b", capsys.readouterr().err)


@pytest.fixture
def folders(tmp_path):
    """Two folders a/m and b/m with different models."""
    for place, seed in (("a", 0), ("b", 1)):
        torch.manual_seed(seed)
        model = make_tiny("llama", byte_level())
        model.hf.model.embed_tokens.weight.data.mul_(1 + seed)
        save(model, tmp_path / place / "m")
    return tmp_path


def evaluated(out, *models):
    command = ["evaluate", "--limit", "1", "--device", "cpu", "--out", str(out)]
    return main([*command, "--model", *map(str, models)])


@pytest.mark.slow
def test_a_resumed_run_keeps_its_names(folders):
    a, b, run = folders / "a" / "m", folders / "b" / "m", folders / "run"
    assert evaluated(run, a) == 0
    assert evaluated(run, b, a) == 0
    assert evaluated(run, f"{b}/") == 0
    assert evaluated(run, f"other={b}") == 0
    assert RunFolder.read(run).places() == {"m": str(a), "b/m": str(b), "other": str(b)}
    shutil.move(b, folders / "moved")
    assert evaluated(run, a) == 0
    assert len(RunFolder.read(run).places()) == 3


def test_models_are_compared_by_name_or_path_and_keep_their_names(folders, capsys):
    a, b, run = folders / "a" / "m", folders / "b" / "m", folders / "run"
    assert evaluated(run, a, f"llama={b}") == 0
    capsys.readouterr()
    assert main(["compare", str(run), "--model", "m", "llama"]) == 0
    shown = capsys.readouterr().out
    assert main(["compare", str(run), "--model", str(a), f"{b}/"]) == 0
    assert capsys.readouterr().out == shown
    assert main(["compare", str(run), "--model", str(a), "m"]) == 2
    before = (run / "answers.parquet").read_bytes()
    assert evaluated(run, f"m={b}") == 2
    identity = r"\b[0-9a-f]{64}\b"
    told = rf"\bm: .*identity.*{identity}.*{identity}.*NAME=PATH"
    assert re.search(told, capsys.readouterr().err)
    assert (run / "answers.parquet").read_bytes() == before
