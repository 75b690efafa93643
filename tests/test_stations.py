"""CONTRIBUTING names the files that a prompt passes through; one is followed here."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.stations import ROOT


def said() -> list[str]:
    """The files of the block in CONTRIBUTING, each line a folder and files in it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = text.partition("## From prompt to table")[2].split("```")[1]
    lines = (line.split() for line in block.strip().splitlines())
    return [f"{folder}{name}.py" for folder, *names in lines for name in names]


def test_a_prompt_passes_through_the_files_that_contributing_names(tmp_path):
    command = [
        "attribute",
        "--limit",
        "1",
        "--model",
        "organism/phi3-deep",
        "--out",
        tmp_path / "r",
    ]
    result = subprocess.run(
        [sys.executable, "-m", "tests.support.stations", *command, "--out", tmp_path / "run"],
        cwd=ROOT,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    reached = [line for line in result.stdout.splitlines() if Path(line).suffix == ".py"]
    assert sorted(reached) == sorted(said())
