"""Ctrl-C and SIGTERM, which SLURM and `kill` send, end a run: nothing is lost, and it says so."""

import re
import signal

import pytest

from interp.cli import INTERRUPTED, TERMINATED, main
from interp.files import names_in
from interp.measurements.specs import Evaluate
from interp.runs import run
from interp.runs.workers import worker_records


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGTERM, TERMINATED), (signal.SIGINT, INTERRUPTED)]
)
def test_a_run_that_is_ended_keeps_its_shards_and_goes_on(
    tmp_path, monkeypatch, capsys, sent, code
):
    monkeypatch.setattr(Evaluate, "shard_prompts", 2)
    written = []
    write = run.write

    def stop_before_the_third(shard, *rest, **options):
        if len(written) == 2:
            signal.raise_signal(sent)
        written.append(shard)
        write(shard, *rest, **options)

    command = ["evaluate", "--limit", "4", "--device", "cpu", "--out", str(tmp_path / "out")]
    before = signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patched:
        patched.setattr(run, "write", stop_before_the_third)
        assert main(command) == code
    assert signal.getsignal(signal.SIGTERM) is before
    assert re.search(r"command.*resume", capsys.readouterr().err)
    (record,) = worker_records(tmp_path / "out")
    assert "interrupted" in record.error
    kept = {shard.folder: shard.folder.stat().st_mtime_ns for shard in written}
    assert len(kept) == 2
    (model,) = names_in(tmp_path / "out" / "shards")
    assert len(names_in(tmp_path / "out" / "shards" / model)) == 2  # and nothing half-written
    assert not list((tmp_path / "out" / "claims").rglob("[0-9a-f]*[0-9a-f]/[0-9a-f]*"))
    assert main(command) == 0
    assert {folder: folder.stat().st_mtime_ns for folder in kept} == kept
    assert len(names_in(tmp_path / "out" / "shards" / model)) == 4
