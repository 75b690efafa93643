import filecmp

import pytest

from interp.cli import main

MODELS = ["organism/phi3-shallow", "organism/llama-shallow"]

OPTIONS = ["activations", "--device", "cpu", "--sites", "resid_post", "z", "--layers", "0-1"]


@pytest.mark.slow
def test_workers_leave_the_same_bytes(tmp_path):
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    command = [*OPTIONS, "--model", *MODELS, "--limit", "3", "--tokens", "mean", "--roles", "all"]
    assert main([*command, "--out", str(alone)]) == 0
    assert main([*command, "--out", str(shared), "--executor", "local", "--workers", "2"]) == 0
    names = [path.name for path in alone.glob("activations*")]
    assert len(names) == 3
    assert filecmp.cmpfiles(alone, shared, names, shallow=False) == (names, [], [])
