import filecmp
import re

import pandas as pd
import pytest
from safetensors.numpy import load_file

from interp.cli import main
from interp.measurements.specs import Activations

MODELS = ["organism/phi3-shallow", "organism/llama-shallow"]

OPTIONS = ["activations", "--device", "cpu", "--sites", "resid_post", "z", "--layers", "0-1"]


def test_activations_are_printed_written_and_resumed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Activations, "shard_prompts", 2)
    folder = tmp_path / "run"
    command = [*OPTIONS, "--roles", "premise2,last", "--out", str(folder)]
    assert main([*command, "--model", MODELS[0], "--limit", "2"]) == 0
    shown = capsys.readouterr()
    assert re.search("layer, by model and site", shown.out)
    assert re.search(r"activations\.parquet .*tensor .*row", shown.err)
    assert main([*command, "--model", *MODELS, "--limit", "3"]) == 0
    index = pd.read_parquet(folder / "activations.parquet")
    assert set(index["model"]) == set(MODELS)
    assert len(list(folder.glob("activations-*.safetensors"))) == 2
    first = index[(index["model"] == MODELS[0]) & (index["tensor"] == "resid_post.1")]
    held = load_file(folder / first["file"].iloc[0])["resid_post.1"]
    assert first["row"].tolist() == list(range(len(held))) == list(range(6 * 2))
    assert main(["validate", str(folder)]) == 0
    assert main(["report", str(folder)]) == 0
    assert "layer, by model and site" in (folder / "report.html").read_text()


@pytest.mark.slow
def test_workers_leave_the_same_bytes(tmp_path):
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    command = [*OPTIONS, "--model", *MODELS, "--limit", "3", "--tokens", "mean", "--roles", "all"]
    assert main([*command, "--out", str(alone)]) == 0
    assert main([*command, "--out", str(shared), "--executor", "local", "--workers", "2"]) == 0
    names = [path.name for path in alone.glob("activations*")]
    assert len(names) == 3
    assert filecmp.cmpfiles(alone, shared, names, shallow=False) == (names, [], [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--roles", "premis2"], "did you mean premise2?"),
        (["--sites", "resid_mid", "--layers", "9"], "no layer 9 in organism/phi3-shallow"),
        (["--roles", "pooled"], "its answer is read at last"),
    ],
)
def test_what_prompts_or_models_lack_is_refused(options, message, tmp_path, capsys):
    command = ["activations", "--model", MODELS[0], "--device", "cpu", "--limit", "1", *options]
    assert main([*command, "--out", str(tmp_path / "run")]) == 2
    assert message in capsys.readouterr().err
