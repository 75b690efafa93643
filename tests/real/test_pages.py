"""What commands say of a real model, and what they need."""

import subprocess
import sys

import pandas as pd
import pytest

MEGABYTE = 1e6


COMMAND = """
import sys
from pathlib import Path
from interp.cli import main
code = main()
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
sys.exit(code)
"""
"""A command that prints last how much memory it had at most, in KiB. What the system tells of an
ended process is no less than what its parent had."""


def run(*arguments):
    """A command's output, and the most memory that it had, in MB."""
    ended = subprocess.run(
        [sys.executable, "-c", COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    told, _, most = ended.stdout.rstrip().rpartition("\n")
    return told, int(most) * 1024 / MEGABYTE


@pytest.fixture(scope="module")
def attributed(file, tmp_path_factory):
    """The folder, the output and the memory of an attribution of 32 prompts."""
    folder = tmp_path_factory.mktemp("attributed")
    named = f"SmolLM2-135M-Instruct={file}"
    told = run("attribute", "--model", named, "--limit", 16, "--keep-tokens", "--out", folder)
    return folder, *told


def test_a_model_that_answers_no_to_everything_is_introduced_so(attributed):
    folder, told, _ = attributed
    first = told.split("Read first")[1].split("Accuracy")[0]
    answers = pd.read_parquet(folder / "answers.parquet")["answer"]
    negative = answers.isin(["No", "False"])
    assert f"{negative.sum()} of {len(answers)}" in first
    assert negative.mean() > 0.9
    assert "rulebreaker 1.00" in first
    assert "paired 0.00" in first


def test_memory_and_page_of_attribute(attributed):
    folder, _, memory = attributed
    assert memory < 4500
    _, of_report = run("report", folder)
    assert of_report < 800
    assert (folder / "report.html").stat().st_size < 1.5 * MEGABYTE
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.index("hardly depend on the prompt") < page.index('id="picture-typical_pair"')


def test_memory_and_page_of_edges(file, tmp_path):
    _, memory = run(
        *("edges", "--model", file, "--limit", 1, "--methods", "gradient", "--out", tmp_path)
    )
    assert memory < 1800
    run("report", tmp_path)
    assert (tmp_path / "report.html").stat().st_size < 0.5 * MEGABYTE


def test_doctor_warns_of_forms_known_by_a_part(file):
    told, _ = run("doctor", "--model", file)
    assert "FALSE" in told
    assert "SmolLM, trained by Hugging Face" in told
