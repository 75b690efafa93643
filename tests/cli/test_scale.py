"""status, validate, work, and the options of workers and errors."""

import filecmp
import json
import re
import shutil

import pytest

from interp.cli import main
from interp.jobs import Job
from interp.measurements.specs import Evaluate
from interp.measuring.spec import Spec
from interp.models.loading import Loading
from interp.prompts.source import PromptSource
from interp.runs.folder import RunFolder
from interp.runs.records import WorkerRecord, read_record, updated, write_record
from tests.support.runs import work_in

OPTIONS = ["evaluate", "--limit", "4", "--device", "cpu"]

JOB = Job(
    what=Evaluate(), prompts=PromptSource(limit=4), loading=Loading(device="cpu")
).model_dump_json()
"""The same as workers are handed it."""


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(Spec, "shard_prompts", 4)


@pytest.fixture
def folder(tmp_path):
    out = tmp_path / "run"
    assert main([*OPTIONS, "--out", str(out)]) == 0
    return out


def test_status_of_a_run_that_is_under_way(folder, capsys):
    run = RunFolder.read(folder)
    (model,) = run.models()
    capsys.readouterr()
    assert main(["status", str(folder)]) == 0
    assert "done" in capsys.readouterr().out.splitlines()[-2]
    lost = run.shards(model)[1]
    shutil.rmtree(lost)
    assert main(["status", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert " 8 " in shown and " 4 " in shown
    # A worker of this process claims what is missing: then there is a rate, and time left.
    with run.claims(model).take(lost.name) as mine:
        assert mine
        assert main(["status", str(folder)]) == 0
    assert "0:0" in capsys.readouterr().out


def test_status_tells_how_workers_ended(folder, capsys):
    (record,) = (folder / "workers").iterdir()
    for change, told in (
        ({"error": "out of luck"}, "out of luck"),
        ({"finished": None, "job": "12_3"}, "job 12_3): began"),
    ):
        write_record(record, updated(read_record(record, WorkerRecord), change))
        assert main(["status", str(folder)]) == 0
        assert told in capsys.readouterr().err


def test_status_before_any_model_has_begun(tmp_path, capsys):
    work_in(tmp_path / "run").open()
    assert main(["status", str(tmp_path / "run")]) == 0
    assert "tiny gpt2" in capsys.readouterr().out


def test_validate_finds_what_has_changed(folder, capsys):
    assert main(["validate", str(folder)]) == 0
    assert re.search(": 2 shards", capsys.readouterr().err)
    run = RunFolder.read(folder)
    (model,) = run.models()
    file = run.shards(model)[0] / "answers.parquet"
    file.write_bytes(file.read_bytes()[:-1])
    assert main(["validate", str(folder)]) == 2
    told = capsys.readouterr().err
    assert re.search(r"answers\.parquet ", told)
    assert re.search(r"Rerun.*command", told)
    assert main([*OPTIONS, "--out", str(folder)]) == 0
    assert main(["validate", str(folder)]) == 0


@pytest.mark.parametrize("command", ["status", "validate"])
def test_a_folder_without_results_is_refused(tmp_path, capsys, command):
    assert main([command, str(tmp_path)]) == 2
    assert re.search(r"\brun.*study", capsys.readouterr().err)


def test_a_worker_takes_part_in_the_command_that_it_is_given(tmp_path, folder, capsys):
    run = RunFolder.read(folder)
    (model,) = run.models()
    shard = run.shards(model)[1]
    before = (shard / "answers.parquet").read_bytes()
    shutil.rmtree(shard)
    assert main(["work", str(folder), "3", "--call", "0123456789ab", "--", JOB]) == 0
    assert (shard / "answers.parquet").read_bytes() == before
    record = json.loads((folder / "workers" / "0123456789ab-3.json").read_text())
    assert record["error"] is None


def test_a_worker_is_refused_where_there_is_no_run_or_no_job(tmp_path, folder, capsys):
    work = ["work", str(tmp_path / "none"), "0", "--call", "0123456789ab", "--"]
    assert main([*work, JOB]) == 2
    assert re.search(r"no folder .*none", capsys.readouterr().err)
    work[1] = str(folder)
    for text in ("", "status", "[1]", '{"kind": "measurement", "name": "x"}', JOB[:-2]):
        assert main([*work, text]) == 2
        assert capsys.readouterr().err.count("\n") <= 3
    assert main([*work, JOB.replace('"limit":4', '"limit":5')]) == 2
    assert re.search(r"measure 10\b", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--workers", "2"], "2 workers require the local or slurm executor"),
        (["--slurm-options", "mem=1GB"], "got slurm_options without the slurm executor"),
        (["--executor", "local", "--device", "cuda:1"], "got the device cuda:1"),
        (["--workers", "0"], "workers is 0: expected a whole number from 1"),
        (["--fail-on-error", "2"], "got '2', expected a number from 0 to 1"),
        (["--slurm-options", "mem"], "'mem' is not an option such as partition=gpu"),
        (["--executor", "ray"], "'ray'; expected one of inline, local, slurm"),
    ],
)
def test_options_that_do_not_go_together(tmp_path, capsys, options, told):
    assert main([*OPTIONS, *options, "--out", str(tmp_path / "run")]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_prompts_that_cannot_be_read_stop_a_run_or_are_counted(tmp_path, capsys, monkeypatch):
    from interp.models.model import Model

    monkeypatch.setattr(Model, "context_length", 65)
    out = ["--out", str(tmp_path / "run")]
    assert main([*OPTIONS, *out]) == 2
    told = capsys.readouterr().err
    assert re.search(r"--fail-on-error .*\b0\.1\b", told)
    assert re.search(r"\b65\b", told)
    assert main([*OPTIONS, *out, "--fail-on-error", "1"]) == 0
    shown = capsys.readouterr()
    told = [line for line in shown.err.splitlines() if "stopped with" in line]
    # Each error names its prompt: three are printed, then the number of the others.
    assert all(re.search(r": 1 prompt stopped .*: prompt", line) for line in told[:3])
    assert re.search(r"\d+ prompts stopped .*other", told[3])
    answers = RunFolder.read(tmp_path / "run").table("answers")
    failed = (answers["error"] != "").sum()
    assert 0 < failed < 8
    monkeypatch.setattr(Model, "context_length", 512)
    assert main([*OPTIONS, *out, "--retry-errors"]) == 0
    assert re.search(r"errors.*again", capsys.readouterr().err)
    assert (RunFolder.read(tmp_path / "run").table("answers")["error"] == "").all()


@pytest.mark.slow
def test_workers_leave_the_same_bytes(tmp_path):
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    command = ["activations", "--model", "organism/phi3-shallow", "organism/llama-shallow"]
    command += ["--limit", "3", "--device", "cpu", "--sites", "resid_post", "z"]
    command += ["--layers", "0-1", "--tokens", "mean", "--roles", "all"]
    assert main([*command, "--out", str(alone)]) == 0
    assert main([*command, "--out", str(shared), "--executor", "local", "--workers", "2"]) == 0
    names = [path.name for path in alone.glob("activations*")]
    assert len(names) == 3
    assert filecmp.cmpfiles(alone, shared, names, shallow=False) == (names, [], [])
