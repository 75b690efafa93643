"""Several commands on one folder: at once, or one after the other."""

import json
import re

import pyarrow.parquet as pq
import pytest

from interp.errors import UserError
from interp.measurements.specs import Attribute, Evaluate
from interp.measuring.core import bind
from interp.measuring.spec import Spec
from interp.runs import execute as execute_module
from interp.runs import run as run_module
from interp.runs.execute import execute
from interp.runs.folder import RunFolder, problems
from interp.runs.merge import merging
from interp.runs.options import ExecutionOptions
from interp.runs.plan import RunPlan
from interp.runs.run import in_use
from tests.support.processes import child, until
from tests.support.prompts import some_prompts
from tests.support.runs import MODELS, PAIRS, SHARD_PROMPTS, hold, run_in, work_in


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(Spec, "shard_prompts", SHARD_PROMPTS)


def record(folder):
    return json.loads((folder / "run.json").read_text())


def test_each_of_several_models_is_counted_when_it_is_loaded(tmp_path, capsys):
    run_in(tmp_path / "one", models=MODELS[:1])
    assert "model 1" not in capsys.readouterr().err
    run_in(tmp_path / "both")
    told = capsys.readouterr().err.splitlines()
    assert [line for line in told if line.startswith("model ")] == [
        f"model {number} of 2: {name}" for number, name in enumerate(MODELS, 1)
    ]


def test_a_command_joins_one_that_is_still_loading_its_model(tmp_path):
    calls = {name: work_in(tmp_path, models=(name,)) for name in MODELS}
    opened = {}
    for name, call in calls.items():
        opened[name] = call.open()
        call.note(opened[name])
    assert record(tmp_path)["models"] == list(MODELS)
    assert [call["models"] for call in record(tmp_path)["history"]] == [[name] for name in MODELS]
    for name, call in calls.items():
        opened[name][0].measure(bind(Evaluate(), call.model(name)))
    with merging(tmp_path):
        pass
    answers = pq.read_table(tmp_path / "answers.parquet")
    assert set(answers["model"].to_pylist()) == set(MODELS)


def test_a_run_of_which_nothing_was_begun_gives_way_to_another(tmp_path, monkeypatch):
    work_in(tmp_path).open()
    monkeypatch.setattr("tests.support.runs.PAIRS", 4)
    run_in(tmp_path, MODELS[:1])
    assert record(tmp_path)["run"]["prompts"] == 8
    assert record(tmp_path)["models"] == list(MODELS[:1])


def test_each_call_that_measured_is_on_record_and_the_last_one_merges_all(tmp_path):
    (first,) = execute(work_in(tmp_path, models=MODELS[:1]))
    # Another command runs from beginning to end before the first one merges its tables.
    run_in(tmp_path, MODELS[1:])
    with merging(first.folder):
        pass
    history = record(tmp_path)["history"]
    assert [call["models"] for call in history] == [list(MODELS[:1]), list(MODELS[1:])]
    for call in history:
        assert call["finished"] and call["versions"]["torch"]
        assert call["peak_memory_bytes"]["cpu"] > 0
    merged = pq.read_table(tmp_path / "answers.parquet")["model"].to_pylist()
    assert set(merged) == set(MODELS)
    assert list(problems(RunFolder.read(tmp_path))) == []
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    run_in(tmp_path, MODELS[1:])
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_larger_limit_keeps_what_was_measured(tmp_path, monkeypatch):
    def measured(folder, pairs):
        written = []
        original = run_module.write
        with monkeypatch.context() as patch:
            patch.setattr(
                run_module, "write", lambda s, *a, **o: (written.append(s.id), original(s, *a, **o))
            )
            patch.setattr("tests.support.runs.PAIRS", pairs)
            run_in(folder)
        return written

    few = measured(tmp_path / "run", 6)
    more = measured(tmp_path / "run", 10)
    assert len(few) == 6 * len(MODELS)
    assert len(more) == 4 * len(MODELS)
    assert not set(few) & set(more)
    assert measured(tmp_path / "fresh", 10)
    for table in ("answers", "prompts"):
        grown, fresh = (tmp_path / folder / f"{table}.parquet" for folder in ("run", "fresh"))
        assert grown.read_bytes() == fresh.read_bytes()
    weights = RunFolder.read(tmp_path / "run").table("prompts")["weight"]
    assert weights.dtype == "float64"
    assert weights.tolist() == some_prompts(10).to_frame()["weight"].tolist()
    with pytest.raises(UserError, match=r"\b20 prompts.*\b12; .*--limit.*--out\b"):
        measured(tmp_path / "run", 6)


def test_a_model_that_is_not_named_again_waits_until_it_is(tmp_path, monkeypatch):
    run_in(tmp_path)
    monkeypatch.setattr("tests.support.runs.PAIRS", 14)
    run_in(tmp_path, MODELS[:1])
    run = RunFolder.read(tmp_path)
    assert run.table("answers")["model"].unique().tolist() == list(MODELS[:1])
    assert any(re.match(r"tiny gpt2 .*begun", line) for line in problems(run))
    run_in(tmp_path, MODELS[1:])
    assert list(problems(RunFolder.read(tmp_path))) == []


def test_a_model_that_cannot_be_loaded_is_not_on_record(tmp_path, monkeypatch):
    original = RunPlan.model

    def load(plan, name):
        if name == "tiny gpt2":
            raise UserError("no such model")
        return original(plan, name)

    monkeypatch.setattr(RunPlan, "model", load)
    with pytest.raises(UserError, match="no such model"):
        execute(work_in(tmp_path))
    assert record(tmp_path)["models"] == ["tiny llama"]


class Hanging:
    """A worker that never ends by itself."""

    number = 0

    def __init__(self):
        self.stopped = False

    def running(self):
        return not self.stopped

    def problem(self):
        return None

    def stop(self):
        self.stopped = True


def test_a_worker_that_hangs_when_all_is_measured_is_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(execute_module, "PATIENCE", 0.1)
    monkeypatch.setattr(execute_module, "POLL", 0.01)
    work = work_in(tmp_path / "run")
    worker = Hanging()

    def start(command, execution):
        for run in work.open():
            for name in MODELS:
                run.measure(bind(Evaluate(), work.model(name)))
        return [worker]

    monkeypatch.setattr("interp.runs.workers.start_local", start)
    execute(work, ExecutionOptions(executor="local"))
    assert worker.stopped
    assert re.search(r"worker \d+ .*running", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("pairs", "spec"), [(4, Evaluate()), (16, Evaluate()), (PAIRS, Attribute())]
)
def test_a_folder_in_use_is_refused_at_once_with_the_true_reason(
    tmp_path, monkeypatch, pairs, spec
):
    """Whether the second command asks for fewer prompts or more, and before a model is begun."""
    (run,) = work_in(tmp_path).open()
    monkeypatch.setattr("tests.support.runs.PAIRS", pairs)
    with in_use(run), pytest.raises(UserError, match=r"evaluate on 24 prompts.*--out\b"):
        run_in(tmp_path, spec=spec)
    assert RunFolder.read(tmp_path).record.run == run.record.run


def test_a_command_whose_folder_was_taken_just_before_says_so(tmp_path, monkeypatch):
    (run,) = work_in(tmp_path).open()
    monkeypatch.setattr("tests.support.runs.PAIRS", 4)
    work_in(tmp_path).open()
    with pytest.raises(UserError, match=r"\b8 prompts.*--out\b"), in_use(run):
        pass


@pytest.mark.slow
def test_a_command_that_was_killed_leaves_the_folder_to_others(tmp_path, monkeypatch):
    with child(hold, tmp_path) as process:
        until((tmp_path / ".use.lock").exists)
        process.kill()
        process.join()
    assert (tmp_path / ".use.lock").exists()
    monkeypatch.setattr("tests.support.runs.PAIRS", 4)
    run_in(tmp_path, MODELS[:1])
    assert record(tmp_path)["run"]["prompts"] == 8


def test_what_a_mistake_leaves_is_not_taken_from_another_command(tmp_path, monkeypatch):
    """The same run, which another command has joined while the model of the first was loaded."""

    def load(plan, name):
        with monkeypatch.context() as patch:
            patch.setattr(RunPlan, "model", original)
            run_in(tmp_path / "run", MODELS[1:])
        raise UserError("no such model")

    original = RunPlan.model
    monkeypatch.setattr(RunPlan, "model", load)
    with pytest.raises(UserError, match="no such model"):
        execute(work_in(tmp_path / "run", models=MODELS[:1]))
    assert record(tmp_path / "run")["models"] == list(MODELS[1:])
    assert list(problems(RunFolder.read(tmp_path / "run"))) == []
