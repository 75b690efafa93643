"""Whatever happens to a run, the same command ends with the same tables, byte for byte."""

import os
import random
import re
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack

import pyarrow.parquet as pq
import pytest
import torch

from interp.errors import UserError
from interp.files import checksum
from interp.measurements.specs import Evaluate, SoftScore
from interp.measuring.core import bind
from interp.measuring.spec import Spec, Stage
from interp.models.model import Model
from interp.runs import identity as origin_module
from interp.runs import shards as shards_module
from interp.runs.execute import execute
from interp.runs.folder import RunFolder, problems, slug
from interp.runs.merge import merging
from interp.runs.options import ComputeOptions, ExecutionOptions
from interp.runs.plan import RunPlan
from interp.runs.run import Run
from interp.runs.workers import worker_records
from tests.support.processes import child, ended, until
from tests.support.prompts import some_prompts
from tests.support.records import edited
from tests.support.runs import (
    MODELS,
    SHARD_PROMPTS,
    SHARDS,
    altered,
    changed,
    hang_in,
    run_and_log,
    run_command,
    run_in,
    run_slowly,
    run_under_a_jumping_clock,
    work_in,
)
from tests.support.tiny import tiny_model

KILLS = 20


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(Spec, "shard_prompts", SHARD_PROMPTS)


def tables(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


@pytest.fixture
def undisturbed(tmp_path):
    folder = tmp_path / "undisturbed"
    run_in(folder)
    return tables(folder)


@pytest.fixture
def one_run(tmp_path, undisturbed):
    """A finished run, and the folder of one of its shards."""
    folder = tmp_path / "run"
    run = run_in(folder)
    return run, run.shards("tiny llama")[3]


@pytest.mark.slow
def test_kill_9_at_twenty_random_moments(tmp_path, undisturbed):
    folder = tmp_path / "run"
    chance = random.Random(0)
    codes = []
    for number in range(KILLS):
        # Spread over the whole run, from its first moment to its last shards.
        shards = number * len(MODELS) * SHARDS // KILLS
        with child(run_in, folder) as process:
            until(lambda: len(list(folder.glob("shards/*/[0-9a-f]*"))) >= shards)  # noqa: B023
            time.sleep(chance.uniform(0, 0.1))
            process.kill()
            codes.append(ended(process))
    assert codes.count(-signal.SIGKILL) >= KILLS // 2
    with child(run_in, folder) as last:
        assert ended(last) == 0
    assert tables(folder) == undisturbed
    assert list(problems(RunFolder.read(folder))) == []
    assert not list((folder / "claims").glob("*/*"))
    assert not list(folder.rglob(".*"))


@pytest.mark.slow
def test_the_command_goes_on_after_kill_9_with_the_same_table(tmp_path):
    shards = tmp_path / "run" / "shards"
    with child(run_command, tmp_path / "undisturbed") as undisturbed:
        assert ended(undisturbed) == 0
    with child(run_command, tmp_path / "run") as process:
        until(lambda: len(list(shards.glob("*/[0-9a-f]*"))) >= 3)
        process.kill()
        assert ended(process) == -signal.SIGKILL
    assert not (tmp_path / "run" / "answers.parquet").exists()
    with child(run_command, tmp_path / "run") as again:
        assert ended(again) == 0
    for name in ("answers.parquet", "prompts.parquet", "accuracy_table.csv"):
        one, other = (tmp_path / folder / name for folder in ("undisturbed", "run"))
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.slow
def test_workers_share_the_shards_and_few_are_measured_twice(tmp_path, undisturbed):
    folder, log = tmp_path / "run", tmp_path / "log"
    with ExitStack() as stack:
        workers = [stack.enter_context(child(run_and_log, folder, log)) for _ in range(4)]
        assert [ended(worker) for worker in workers] == [0] * 4
    lines = [line.split() for line in log.read_text().splitlines()]
    assert len({process for process, _ in lines}) > 1
    assert len({shard for _, shard in lines}) == len(MODELS) * SHARDS
    assert len(lines) <= len(MODELS) * SHARDS + 4
    assert tables(folder) == undisturbed


@pytest.mark.slow
def test_a_worker_waits_for_another_and_takes_over_when_that_dies(tmp_path, undisturbed):
    folder = tmp_path / "run"
    run_in(folder, MODELS[:1])
    claims, shards = (folder / place / slug("tiny gpt2") for place in ("claims", "shards"))
    with child(hang_in, folder) as hanging:
        until(lambda: list(claims.glob("[0-9a-f]*")))
        with child(run_in, folder) as other:
            until(lambda: len(list(shards.glob("[0-9a-f]*"))) == SHARDS - 1)
            time.sleep(0.1)
            assert other.is_alive()
            hanging.kill()
            hanging.join()
            assert ended(other) == 0
    assert tables(folder) == undisturbed


def test_ctrl_c_stops_within_seconds_and_leaves_no_claim(tmp_path, undisturbed):
    folder = tmp_path / "run"
    with child(run_slowly, folder) as process:
        until(lambda: list((folder / "shards").glob("*/[0-9a-f]*")))
        start = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        assert ended(process) == 130
        assert time.monotonic() - start < 5
    assert not list((folder / "claims").glob("*/*"))
    (record,) = worker_records(folder)
    assert "interrupted" in record.error
    run_in(folder)
    assert tables(folder) == undisturbed


def damaged(file, how):
    content = bytearray(file.read_bytes())
    if how == "cut short":
        file.write_bytes(content[: len(content) // 2])
    elif how == "flipped":
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    else:
        file.unlink()


@pytest.mark.quick(2)
@pytest.mark.parametrize("how", ["cut short", "flipped", "removed"])
@pytest.mark.parametrize("name", ["answers.parquet", "manifest.json"])
def test_a_damaged_shard_is_found_and_done_again(one_run, undisturbed, capsys, how, name):
    run, shard = one_run
    before = (shard / "answers.parquet").read_bytes()
    damaged(shard / name, how)
    if (name, how) == ("manifest.json", "flipped"):
        # Whatever the flipped byte hit, the manifest no longer fits the table, or cannot be read.
        manifest = (shard / name).read_text(errors="replace")
        (shard / name).write_text(manifest.replace('"answers.parquet": "', '"answers.parquet": "0'))
    (told,) = problems(RunFolder.read(run.folder))
    assert shard.name in told
    run_in(run.folder)
    assert re.search(f"{shard.name} of tiny llama .*again", capsys.readouterr().err)
    assert (shard / "answers.parquet").read_bytes() == before
    assert tables(run.folder) == undisturbed
    assert list(problems(RunFolder.read(run.folder))) == []


def test_validate_tells_of_columns_and_merged_tables(one_run):
    run, shard = one_run
    file = shard / "answers.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["error"]), file)
    now = {"answers.parquet": checksum(file)}
    edited(shard / "manifest.json", lambda manifest: manifest["files"].update(now))
    (run.folder / "prompts.parquet").write_bytes(b"PAR1")
    wrong = list(problems(RunFolder.read(run.folder)))
    assert re.search(r"answers\.parquet .*columns", wrong[0])
    assert re.fullmatch(r"prompts\.parquet .*changed.*", wrong[1])


def test_columns_that_hold_lists_are_whole(tmp_path):
    stage = Stage("soft", some_prompts(2), SoftScore())
    models = {"tiny llama": tiny_model("llama")}
    (run,) = execute(RunPlan(tmp_path / "run", {tmp_path / "run": stage}, models))
    with merging(run.folder):
        pass
    assert list(problems(RunFolder.read(run.folder))) == []


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small file system takes root and mount")
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    mounted = subprocess.run(mount, check=False, capture_output=True, text=True)
    if mounted.returncode != 0:
        # As in containers, whose root may not mount.
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr.strip()}")
    yield place
    # Lazily: an error that is still at hand may hold a file of it open.
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_loses_nothing_and_the_run_goes_on(small_disk, undisturbed):
    ballast = small_disk / "ballast"
    folder = small_disk / "run"
    ballast.write_bytes(bytes(900 * 1024))
    with pytest.raises(UserError, match="space left on device"):
        run_in(folder)
    done = list((folder / "shards").glob("*/[0-9a-f]*"))
    assert done
    assert all(shards_module.damage(shard) is None for shard in done)
    assert not list((folder / "claims").glob("*/*"))
    ballast.unlink()
    run_in(folder)
    assert tables(folder) == undisturbed


def test_another_model_of_the_same_name_is_refused(tmp_path, undisturbed):
    folder = tmp_path / "run"
    run_in(folder)
    other = tiny_model("qwen2")
    retrained = Model("tiny llama", other.hf, other.tokenizer)
    before = tables(folder)
    with pytest.raises(
        UserError, match=r"tiny llama.*\b[0-9a-f]{64}\b.*\b[0-9a-f]{64}\b.*NAME=PATH"
    ):
        work_in(folder).open()[0].measure(bind(Evaluate(), retrained))
    assert tables(folder) == before


def test_a_worker_of_another_version_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    run_in(folder)
    monkeypatch.setattr(origin_module, "code_version", lambda modules: "0" * 64)
    with pytest.raises(UserError, match=r"version.*interp.*--out\b"):
        work_in(folder).open()


@pytest.mark.slow
def test_clocks_that_jump_change_nothing(tmp_path, undisturbed):
    folder = tmp_path / "run"
    with ExitStack() as stack:
        workers = [
            stack.enter_context(child(run_under_a_jumping_clock, folder, seed)) for seed in (0, 1)
        ]
        assert [ended(worker) for worker in workers] == [0, 0]
    assert tables(folder) == undisturbed


def poisoned(chance, *, share):
    def measure_batch(original, batch):
        rows = original(batch)
        for prompt in rows:
            if chance.random() < share:
                (row,) = prompt["answers"]
                row["error"] = "poisoned"
        return rows

    return altered(measure_batch)


def test_errors_stop_a_run_beyond_their_share_and_are_tried_again(tmp_path, undisturbed):
    folder = tmp_path / "run"
    bad = poisoned(random.Random(0), share=0.6)
    broken = work_in(folder, spec=bad, computing=ComputeOptions(fail_on_error=0.2))
    with pytest.raises(UserError, match=r"\d+ .*llama .*--fail-on-error.*0\.2.*poisoned"):
        execute(broken)
    done = len(list((folder / "shards").glob("*/[0-9a-f]*")))
    assert 0 < done < 24
    # A larger share lets it go on; what has errors stays so until it is asked for again.
    (run,) = execute(work_in(folder, spec=bad, computing=ComputeOptions(fail_on_error=1.0)))
    assert (run.table("answers")["error"] == "poisoned").any()
    (run,) = execute(work_in(folder))
    assert (run.table("answers")["error"] == "poisoned").any()
    (run,) = execute(work_in(folder), ExecutionOptions(retry_errors=True))
    with merging(run.folder):
        pass
    assert tables(folder) == undisturbed


@pytest.mark.slow
def test_the_smaller_budget_is_remembered_by_later_calls(tmp_path):
    sizes = []

    def measure_batch(original, batch):
        sizes.append(len(batch.prompts))
        if len(batch.prompts) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(batch)

    def measurement():
        return changed(bind(Evaluate(), tiny_model("llama")), measure_batch)

    run = Run.open(tmp_path / "run", some_prompts(12), Evaluate())
    run.measure(measurement())
    assert max(sizes) == 2
    for shard in run.shards("tiny llama")[6:]:
        shutil.rmtree(shard)
    sizes.clear()
    run.measure(measurement())
    assert sizes == [1] * 12
