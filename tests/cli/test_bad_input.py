"""Each mistake gives one message on standard error, exit code 2 and no traceback."""

import shutil
import subprocess
import sys

import pytest

from interp.cli import main
from interp.models.organisms import DEFAULT, organism_folder
from interp_experiments.rulebreakers.system import system


def remove(folder, *names):
    for name in names:
        (folder / name).unlink()


@pytest.fixture
def damaged(tmp_path):
    """A copy of the organism that a test may damage."""
    folder = tmp_path / "model"
    shutil.copytree(organism_folder(DEFAULT), folder)
    return folder


def refused(arguments, capsys):
    try:
        code = main(arguments)
    except SystemExit as stop:  # argparse's own refusals
        code = stop.code
    captured = capsys.readouterr()
    assert code == 2
    assert "Traceback" not in captured.err
    assert captured.out == ""
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["attribute", "--model", "organism/none"], "there are organism/gemma2"),
        (["attribute", "--model", "./missing"], "no model folder './missing'"),
        (["attribute", "--model", DEFAULT, DEFAULT], "is given twice"),
        (["attribute", "--system", "none"], "unknown system 'none'; installed are"),
        (["attribute", "--methods", "gradients"], "expected one of gradient, attention"),
        (["attribute", "--methods", ","], "no method given"),
        (["attribute", "--target", "best"], "expected one of predicted, gold, contrast"),
        (["attribute", "--backend", "magic"], "expected one of native, inseq"),
        (["attribute", "--device", "toaster"], "cannot be used"),
        (["attribute", "--dtype", "int3"], "unknown dtype 'int3'"),
        (["attribute", "--limit", "0"], "neither a number of pairs nor 'all'"),
        (["attribute", "--limit", "many"], "neither a number of pairs nor 'all'"),
        (["attribute", "--batch-tokens", "0"], "expected at least 1"),
        (["attribute", "--data", "missing.csv"], "no data at 'missing.csv'"),
        (["attribute", "--data", ""], "the name of the data is empty"),
        (["attribute", "--data", "."], "holds no data file"),
        (["attribute", "--data", "x" * 300], "File name too long"),
        (["attribute", "--data", "exp:1"], "no data at 'exp:1'"),
        (["attribute", "--colour", "red"], "unrecognized arguments"),
        (["explain"], "invalid choice"),
        (["dataset", "rulebreakers", "--out", "data.xlsx"], "expected a name that ends in"),
        (["dataset", "rulebreakers", "--out", "no/folder/x.csv"], "does not exist; make it"),
        (["dataset", "none", "--out", "x.csv"], "unknown system 'none'"),
        (["run", "none"], "unknown study 'none'; installed are"),
        (["run", "rulebreakers", "--model", "organism/none"], "no packaged organism"),
        (["report", "nowhere"], "holds neither a run nor a study"),
        (["probe", "familiarity", "--model", "./missing"], "no model folder"),
    ],
)
def test_wrong_arguments(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused(arguments, capsys)
    assert not list(tmp_path.iterdir())  # nothing was begun


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["model.safetensors"], "has no weights"),
        (["tokenizer.json", "tokenizer_config.json"], "has no tokenizer"),
    ],
)
def test_incomplete_model_folders(damaged, names, message, capsys, tmp_path):
    remove(damaged, *names)
    arguments = ["attribute", "--model", str(damaged), "--device", "cpu"]
    assert message in refused([*arguments, "--out", str(tmp_path / "out")], capsys)
    assert not (tmp_path / "out").exists()


def test_a_context_that_is_too_short(damaged, capsys, tmp_path):
    config = damaged / "config.json"
    text = config.read_text().replace(
        '"max_position_embeddings": 512', '"max_position_embeddings": 20'
    )
    config.write_text(text)
    arguments = ["attribute", "--model", str(damaged), "--device", "cpu", "--limit", "2"]
    assert "reads at most 20" in refused([*arguments, "--out", str(tmp_path / "out")], capsys)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="premise2"), "lacks the columns premise2"),
        (lambda f: f.iloc[[0, 0, 1]], "occurs twice"),
        (lambda f: f.iloc[:3], "has no counterpart"),
    ],
)
def test_broken_data_files(change, message, capsys, tmp_path):
    file = tmp_path / "data.csv"
    change(system.dataset(seed=0).head(4)).to_csv(file, index=False)
    arguments = ["attribute", "--data", str(file), "--out", str(tmp_path / "out")]
    assert message in refused(arguments, capsys)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_a_different_run_keeps_what_it_has(capsys, tmp_path):
    options = ["--device", "cpu", "--out", str(tmp_path / "out")]
    assert main(["attribute", "--limit", "2", *options]) == 0
    capsys.readouterr()
    before = {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert "belongs to a different run" in refused(["attribute", "--limit", "3", *options], capsys)
    assert "belongs to a different run" in refused(["evaluate", "--limit", "2", *options], capsys)
    assert {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()} == before


def test_a_second_model_that_fails_loses_nothing_of_the_first(capsys, tmp_path):
    arguments = ["attribute", "--model", DEFAULT, "organism/none", "--limit", "2"]
    arguments += ["--device", "cpu", "--out", str(tmp_path / "out")]
    assert "no packaged organism" in refused(arguments, capsys)


def test_from_the_shell(tmp_path):
    shown = subprocess.run(
        [sys.executable, "-m", "interp", "attribute", "--model", "organism/none"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert shown.returncode == 2
    assert shown.stderr.startswith("error: no packaged organism")
    assert "Traceback" not in shown.stderr
