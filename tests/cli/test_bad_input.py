"""Each mistake gives one message on standard error, exit code 2 and no traceback."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from interp import cli
from interp.cli import main
from interp.models.organisms import DEFAULT, organism_folder
from interp_experiments.rulebreakers.system import system


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
    "words",
    [
        ["evaluate"],
        ["circuits"],
        ["run", "rulebreakers"],
        ["evaluate", "--answers-from", "texts.jsonl"],
        ["train", "robustlr", "--model", "small-decoder", "--from-scratch"],
    ],
)
def test_a_folder_with_other_files_is_refused_at_once(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("texts.jsonl").write_text('{"prompt": "a", "answer": "Yes"}')
    Path("own").mkdir()
    Path("own", "thesis.txt").write_text("mine")
    message = refused([*words, "--out", "own"], capsys)
    assert re.search(r"\bown\b.*\b(run|study|train)\.json\b.*--out\b", message, re.DOTALL)
    assert not re.search(r"\bread(ing)?\b", message)  # neither models nor prompts
    found = sorted(str(path) for path in Path().rglob("*"))
    assert found == ["own", "own/thesis.txt", "texts.jsonl"]


def test_a_table_of_facts_without_a_column_is_told_so(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("id,text,answer\nrome,Rome is in,Italy\n")
    assert "lacks the columns fact" in refused(["validate", str(tmp_path / "a.csv")], capsys)


def test_a_machine_without_a_temporary_folder_is_told(monkeypatch, capsys):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nonexistent"])
    monkeypatch.setattr(cli, "_run", lambda *_: tempfile.gettempdir())
    assert "TMPDIR" in refused(["methods"], capsys)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["attribute", "--model", "organism/none"], "there are organism/dose-0"),
        (["attribute", "--model", "./missing"], "no model folder './missing'"),
        (["attribute", "--model", DEFAULT, DEFAULT], "name each model once"),
        (["attribute", "--system", "none"], "unknown system 'none'; expected one of"),
        (["attribute", "--methods", ","], "no method given"),
        (["attribute", "--target", "best"], "expected one of predicted, gold, contrast"),
        (["attribute", "--limit", "many"], "from 1 to 1,000,000,000 pairs, or all"),
        (["attribute", "--batch-tokens", "0"], "expected a whole number from 1"),
        (["attribute", "--data", "missing.csv"], "no data at 'missing.csv'"),
        (["attribute", "--data", "."], "holds no data file"),
        (["attribute", "--data", "exp:1"], "no data at 'exp:1'"),
        (["dataset", "rulebreakers", "--out", "data.xlsx"], "expected a name that ends in"),
        (["dataset", "rulebreakers", "--out", "no/folder/x.csv"], "does not exist; create it"),
        (["report", "nowhere"], "there is no folder nowhere"),
        (["report", str(Path(__file__).parent)], "holds neither a run nor a study"),
        (["probe", "familiarity", "--model", "./missing"], "no model folder"),
    ],
)
def test_wrong_arguments(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused(arguments, capsys)
    assert not list(tmp_path.iterdir())  # nothing was begun


LONG = "x" * 300


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["atribute"], "did you mean attribute?"),
        (["attribute", "--limt", "5"], "did you mean --limit? See interp attribute --help"),
        (
            ["attribute", "--methods", "attention", "captum:deep-lift"],
            "did you mean captum:deep_lift?",
        ),
        (["attribute", "--device", "meta"], "unknown device 'meta'"),
        (["attribute", "--device", "cuda:"], "unknown device 'cuda:'"),
        (["attribute", "--device-map", "cuda"], "unknown device map 'cuda'"),
        (["attribute", "--dtype", "int9"], "unknown dtype 'int9'"),
        (["attribute", "--quantization", "8"], "expected one of 8bit, 4bit"),
        (["attribute", "--model", "llama-shallow"], "did you mean organism/llama-shallow?"),
        (["attribute", "--model", "organism/lama-deep"], "did you mean organism/llama-deep?"),
        (["attribute", "--model", LONG], "is too long"),
        (["attribute", "--data", LONG], "is too long"),
        (["attribute", "--data", ""], "got an empty name"),
        (["attribute", "--out", LONG], "is too long"),
        (["attribute", "--out", "a/" * 3000], "is too long"),
        (["attribute", "--out", ""], "got an empty name"),
        (["status", LONG], "is too long"),
        (["report", LONG], "is too long"),
        (["attribute", "--limit", "9" * 20], "from 1 to 1,000,000,000 pairs"),
        (["attribute", "--limit", "9" * 5000], "..."),
        (["attribute", "--seed", "-1"], "from 0 to 4,294,967,295"),
        (["probe", "linear", "--seed", "-1"], "from 0 to 4,294,967,295"),
        (["attribute", "--seed=--"], "--seed: expected a value"),
        (["patch", "--site=--"], "--site: expected a value"),
        (["attribute", "--workers", "9" * 20], "from 1 to 1,024"),
        (["attribute", "--threads", "0"], "from 1 to 1,024"),
        (["attribute", "--data", "\udcff.csv"], "not valid UTF-8"),
        (["attribute", "--out", "a\0b"], "not valid UTF-8"),
        (["evaluate", "--slurm-options", "partition=gpu\nid #"], "holds a line break"),
        (["evaluate", "--system", "rulebreaker"], "did you mean rulebreakers?"),
        (["run", "rulebreaker"], "did you mean rulebreakers?"),
        (["run"], "got no study; expected one of"),
        (["patch", "--site", "resid_pre", "zz"], "unknown site 'zz'; did you mean z?"),
        (["patch", "--backend", "nnsigth"], "did you mean nnsight?"),
        (["patch", "--layers", "3-1"], "a range such as 0-2"),
        (["patch", "--layers", "0-99999999"], "a range such as 0-2"),
        (["patch", "--heads", "x"], "a range such as 0-2"),
        (["patch", "--verify", "-1"], "from 0 to"),
        (["activation"], "did you mean activations?"),
        (["activations", "--sites", "pattern"], "unknown site 'pattern'"),
        (["activations", "--sites", "resid_pots"], "did you mean resid_post?"),
        (["activations", "--roles", ","], "no role given"),
        (["activations", "--tokens", "first"], "expected one of last, mean, all"),
        (["activations", "--layers", "2-1"], "a range such as 0-2"),
        (["probe", "linar"], "did you mean linear?"),
        (["attribute", "extra"], "unexpected argument 'extra'"),
    ],
)
def test_mistakes_are_told_in_one_line_before_anything_is_loaded(
    arguments, message, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    told = refused(arguments, capsys)
    assert message in told
    assert told.startswith("error: ")
    assert told.count("\n") == 1
    assert len(told) < 700
    assert "loading" not in told
    assert not list(tmp_path.iterdir())


def test_a_file_where_a_folder_belongs_is_refused(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    for name in ("file", "file/deeper"):
        said = refused(["attribute", "--out", str(tmp_path / name)], capsys)
        assert re.search(r"/file\b.*\bfile\b", said)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["attribute", "--methods", "grad"], "see python -m interp attribute --help"),
        (["attribute", "--limt", "5"], "See python -m interp attribute --help"),
        (["attribute", "--model", "x" * 300], "see python -m interp attribute --help"),
        (["run"], "got no study; expected one of"),
        (["train"], "got no task; expected one of"),
    ],
)
def test_a_mistake_is_told_without_torch_or_pandas(arguments, message):
    shown = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "interp", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 2
    assert message in shown.stderr
    assert not re.search(r"\| +(torch|pandas|numpy)$", shown.stderr, re.MULTILINE)


def test_a_context_that_is_too_short(damaged, capsys, tmp_path):
    config = damaged / "config.json"
    text = config.read_text().replace(
        '"max_position_embeddings": 512', '"max_position_embeddings": 20'
    )
    config.write_text(text)
    arguments = ["attribute", "--model", str(damaged), "--device", "cpu", "--limit", "2"]
    assert re.search(r"\b20\b", refused([*arguments, "--out", str(tmp_path / "out")], capsys))


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="premise2"), "lacks the columns premise2"),
        (lambda f: f.iloc[[0, 0, 1]], "has 2 other rows"),
        (lambda f: f.iloc[:3], "has 0 other rows"),
    ],
)
def test_broken_data_files(change, message, capsys, tmp_path):
    file = tmp_path / "data.csv"
    change(system.dataset(seed=0).head(4)).to_csv(file, index=False)
    arguments = ["attribute", "--data", str(file), "--out", str(tmp_path / "out")]
    assert message in refused(arguments, capsys)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_folder_of_a_different_run_keeps_what_it_has(capsys, tmp_path):
    options = ["--device", "cpu", "--out", str(tmp_path / "out")]
    assert main(["attribute", "--limit", "2", *options]) == 0
    capsys.readouterr()
    before = {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    other = ["attribute", "--limit", "2", "--seed", "1", *options]
    assert re.search(r"seed .*\b0\b", refused(other, capsys))
    assert re.search(
        r"\b4 prompts\b.*\b2; .*--limit.*--out\b",
        refused(["attribute", "--limit", "1", *options], capsys),
    )
    assert re.search(
        r"\brun: .*measurement.*attribute.*--out\b",
        refused(["evaluate", "--limit", "2", *options], capsys),
    )
    assert {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()} == before


@pytest.mark.slow
def test_a_report_replaces_only_a_page(capsys, tmp_path):
    run = tmp_path / "run"
    assert main(["evaluate", "--limit", "2", "--device", "cpu", "--out", str(run)]) == 0
    (tmp_path / "text").write_text("no page")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    capsys.readouterr()
    for page, message in {
        **dict.fromkeys(("/", "//", ".", "..", str(tmp_path)), "is a folder; expected a file"),
        "/proc/self/mem": "cannot read /proc/self/mem: ",
        str(tmp_path / "text"): "is not a page; pass another name, or remove the file",
        str(tmp_path / "pipe"): "is not a regular file; pass another name",
        str(tmp_path / "link"): "is not a regular file; pass another name",
        str(tmp_path / "text" / "page.html"): "cannot create the folder",
    }.items():
        assert message in refused(["report", str(run), f"--out={page}"], capsys)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "run", "text"]
    for _ in range(2):  # the second time, it replaces its own page
        assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0
