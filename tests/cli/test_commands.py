import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import interp
from interp.attribution.registry import method_names
from interp.cli import READER_GONE, USER_ERROR, find_commands, main, parse
from interp.cli.fields import given
from interp.measurements.attribution.show import Attributions
from interp.measurements.specs import Patch
from interp.models.loading import Loading
from interp.models.organisms import DEFAULT, organism_names
from interp.models.packaged import GRAFTS
from interp.runs.folder import RunFolder
from tests.cli.test_help import helped
from tests.measurements.attribution.test_ratios import COLUMNS


def test_the_main_job(tmp_path, capsys):
    folder = tmp_path / "out"
    assert main(["attribute", "--limit", "20", "--device", "cpu", "--out", str(folder)]) == 0
    captured = capsys.readouterr()
    assert DEFAULT in captured.out
    assert "40 prompts of rulebreakers" in captured.err
    told = captured.err.splitlines()
    assert told.index(f"reading {DEFAULT} ...") < told.index(f"loading {DEFAULT} ...")
    table = pd.read_csv(folder / "attribution_table.csv")
    assert list(table.columns) == COLUMNS
    (row,) = table.to_dict("records")
    assert row["model"] == DEFAULT
    assert row["prompts"] == 40
    # The table is what the API gives for the same prompts.
    model, prompts = interp.load_model(DEFAULT, device="cpu"), interp.load_prompts(limit=20)
    result = interp.attribute(model, prompts)
    ratios = result.ratios()
    gradient = ratios[ratios["method"] == "input_gradient"]
    # Prompts of a sample count by how many of the whole data set they represent.
    weight = result.prompts.set_index("prompt_id")["weight"].loc[gradient["prompt_id"]].to_numpy()
    values, sums = gradient["ratio"].to_numpy(), gradient["ratio_unnormalized"].to_numpy()
    assert row["gradient_mean_ratio"] == pytest.approx(np.average(values, weights=weight), rel=1e-6)
    deviations = (sums - np.average(sums, weights=weight)) ** 2
    variance = np.average(deviations, weights=weight) * 40 / 39
    assert row["gradient_unnormalized_sd"] == pytest.approx(variance**0.5, rel=1e-6)
    written = pq.read_table(folder / "segment_scores.parquet").to_pandas()
    columns = ["segment", "tokens", "score", "share", "total"]
    pd.testing.assert_frame_equal(written[columns], result.to_frame()[columns], rtol=1e-6)
    record = json.loads((folder / "run.json").read_text())
    assert record["summary"][DEFAULT] == {"no_answer_share": 0.0, "errors": {}}


@pytest.mark.slow
def test_a_system_without_a_ratio_is_told_by_segment(tmp_path, capsys):
    folder = tmp_path / "out"
    system = ["--system", "logical-forms-introduction", "--limit", "2", "--device", "cpu"]
    assert main(["attribute", *system, "--out", str(folder)]) == 0
    captured = capsys.readouterr()
    assert re.search("by segment.*input_gradient", captured.out)
    assert "premise1" in captured.out
    assert not (folder / "attribution_table.csv").exists()
    table = pd.read_csv(folder / "segment_table.csv")
    shares = table.groupby("method")["share"].sum()
    assert shares.to_numpy() == pytest.approx(1.0, abs=1e-6)
    assert set(table["segment"]) == {"template", "premise1", "question", "conclusion"}
    assert main(["report", str(folder)]) == 0
    assert "Scores by segment" in (folder / "report.html").read_text()
    with pytest.raises(interp.UserError, match="template, premise1, question, conclusion"):
        Attributions.of(RunFolder.read(folder)).ratios()


def printed_without_torch(*command):
    """What a command prints in a process of its own, which does not import torch."""
    code = (
        f"import sys; from interp.cli import main; assert main({list(command)}) == 0; "
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_methods_are_listed_without_torch():
    shown = printed_without_torch("methods")
    assert all(f"\n## {name}" in shown for name in method_names())
    assert "## input_gradient (default)" in shown


def test_tables_are_described_without_torch():
    shown = printed_without_torch("tables", "answers", "pairs")
    headings = [line for line in shown.splitlines() if line.startswith("#")]
    assert headings == ["## answers", "## pairs"]
    assert re.search(r"\| `base_metric` +\| double \| logits \| \w", shown)


def test_a_table_that_no_measurement_fills_is_refused(capsys):
    assert main(["tables", "answer"]) == 2
    assert re.search(r"table 'answer'; .*\banswers\b", capsys.readouterr().err)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_dataset_writes_files_that_are_read_as_they_were(tmp_path, suffix):
    file = tmp_path / f"data{suffix}"
    assert main(["dataset", "rulebreakers", "--out", str(file)]) == 0
    read = interp.load_prompts(limit=12, data=str(file))
    assert list(read) == list(interp.load_prompts(limit=12))


def test_models_lists_every_organism(capsys):
    assert main(["models"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*organism_names(), *GRAFTS.names()))


def test_results_go_to_a_folder_named_after_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for target in ("predicted", "gold"):
        options = ["--limit", "1", "--device", "cpu", "--target", target]
        assert main(["attribute", *options]) == 0
    folders = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert len(folders) == 2
    assert all(name.startswith("attribute-rulebreakers-1-") for name in folders)


def test_a_prompt_that_fails_is_counted_and_the_rest_goes_on(tmp_path, capsys, monkeypatch):
    from interp.measurements.answers import evaluation

    original = evaluation.answer_tables

    def poisoned(model, batch, predictions):
        first = [p.prompt.id.endswith("_rb/follow-yn") for p in batch.prompts]
        for row, poison in enumerate(first):
            if poison:
                predictions.logits.data[row, 0] = float("nan")
        return original(model, batch, predictions)

    monkeypatch.setattr(evaluation, "answer_tables", poisoned)
    folder = tmp_path / "out"
    assert main(["evaluate", "--limit", "48", "--device", "cpu", "--out", str(folder)]) == 0
    errors = pq.read_table(folder / "answers.parquet").to_pandas()["error"]
    poisoned_prompts = int((errors == "non-finite").sum())
    assert 0 < poisoned_prompts < len(errors) == 96
    shown = capsys.readouterr().err
    assert re.search(rf"\b{poisoned_prompts} prompts stopped .*: non-finite", shown)
    record = json.loads((folder / "run.json").read_text())
    assert record["summary"][DEFAULT]["errors"] == {"non-finite": poisoned_prompts}


def test_without_a_command_there_is_the_help(capsys):
    assert helped([], capsys) == helped(["--help"], capsys)


def test_the_version_is_told(capsys):
    assert helped(["--version"], capsys) == f"interp {interp.__version__}\n"


@pytest.mark.parametrize("command", sorted(find_commands()))
def test_examples_in_the_help_are_read_by_the_parser(command, capsys):
    shown = helped([command, "--help"], capsys)
    examples = find_commands()[command].EXAMPLES
    for example in examples:
        assert f"  interp {example}\n" in shown
        parse(shlex.split(example))


def test_lists_take_commas_spaces_and_ranges_and_devices_have_other_names():
    arguments = ["--sites", "resid_pre", "--layers", "0-2,5", "2", "--heads", "1", "--sites", "z,q"]
    _, parsed = parse(["patch", *arguments])
    patch = Patch(**given(parsed, Patch))
    assert patch.sites == ("resid_pre", "z", "q")
    assert patch.layers == (0, 1, 2, 5)
    assert patch.heads == (1,)
    for text, device in (("gpu", "cuda"), ("gpu:1", "cuda:1"), ("cpu", "cpu")):
        _, parsed = parse(["evaluate", "--device", text, "--dtype", "bf16"])
        loading = Loading(**given(parsed, Loading))
        assert (loading.device, loading.dtype) == (device, "bfloat16")


def test_only_public_names_are_listed():
    assert interp.load_prompts is not None
    assert sorted(interp.__all__) == [name for name in dir(interp) if not name.startswith("_")]


@pytest.mark.slow
def test_a_system_is_measured_on_an_organism_that_learned_it(tmp_path, capsys):
    options = ["--device", "cpu", "--limit", "2", "--out", str(tmp_path / "out")]
    assert main(["evaluate", "--system", "logical-forms", *options]) == 0
    shown = capsys.readouterr()
    assert "organism/llama-logic" in shown.out
    assert shown.err.startswith("loading")


@pytest.mark.parametrize("command", ["models", "methods"])
def test_a_closed_pipe_ends_a_command_as_shells_expect(command):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "interp", command],
        check=False,
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (READER_GONE, b"")


def test_standard_output_without_room_is_named():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "interp", "methods"],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == USER_ERROR
    assert done.stderr.startswith(b"error: cannot write to standard output")


def test_names_that_an_encoding_lacks_are_written_as_code_points():
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    code = (
        "import sys; from interp import cli; "
        "cli.parse = lambda arguments: print('\\u043c') or sys.exit(0); cli.main([])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    assert done.stdout == b"\\u043c\n"
