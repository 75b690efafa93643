"""The end of a command on a run: one command at a time merges the tables and notes its results.

1. Join the shards of all complete models in the folder, whichever command measured them.
2. Let the command write its own tables, as CSV, and sum up.
3. Record checksums, the summary and the end of the call.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from interp.errors import UserError
from interp.files import checksum, inside, locked, remove_unfinished
from interp.runs.folder import IN_USE, RunFolder
from interp.runs.records import Call, RunRecord, now, updated
from interp.runs.shards import merge, read_table
from interp.runs.workers import peak_of_workers


@dataclass
class Conclusion:
    """A command's additions to a run when the tables are merged."""

    run: RunFolder
    """The run as it now is, including the models of other commands."""
    summary: Mapping[str, object]
    """Remarks on each model that the tables do not show."""


@contextmanager
def concluding(folder: Path) -> Iterator[Conclusion]:
    """Within the block the tables of all finished models are merged, and do not change.

    The CSV files that the block writes into the folder, and the summary that it sets, are noted in
    the record.

    Raises:
        UserError: a file cannot be written, or is damaged.
    """
    run = RunFolder.read(folder)
    with locked(folder, "tables"):
        run = RunFolder.read(folder)
        merged = _merge_tables(run)
        conclusion = Conclusion(run, run.record.summary)
        yield conclusion
        _note_end(run, conclusion.summary, merged)
    with locked(folder, IN_USE, wait=False) as unused:
        if unused and not run.missing():
            _tidy(run)


def _merge_tables(run: RunFolder) -> dict[str, str]:
    """Join the shards of all finished models into one file per table.

    Tables that already hold just these shards are left as they are.

    Returns:
        The finished models, each with a hash over its shards.
    """
    models = run.models()
    merged = run.mergeable()
    tables = run.merged_tables() if merged else []
    files = [f"{table}.parquet" for table in tables]
    if merged == run.record.merged and not any(map(run.file_problem, files)):
        return merged
    for table in tables:
        parts = (
            read_table(shard, table, models[model].tables[table])
            for model in merged
            for shard in run.done(model)
        )
        merge(parts, inside(run.folder, f"{table}.parquet"))
    return merged


def _note_end(run: RunFolder, summary: Mapping[str, object], merged: Mapping[str, str]) -> None:
    ended = {
        "summary": dict(summary),
        "files": {file.name: checksum(file) for file in run.table_files()},
        "merged": dict(merged),
    }

    def changes(record: RunRecord) -> dict[str, object]:
        noted = {**ended, "history": [_ended(run, call) for call in record.history]}
        same = all(getattr(record, name) == value for name, value in noted.items())
        # A call that found nothing to do leaves the record as it is.
        return {} if same and record.finished else {**noted, "finished": now()}

    run.change(changes)


def _ended(run: RunFolder, call: Call) -> Call:
    """The call with its end, if everything it was meant to measure is done."""
    if call.finished is not None or run.missing(call.models):
        return call
    peak = peak_of_workers(run.folder, call.id)
    return updated(call, {"finished": now(), "peak_memory_bytes": peak})


def _tidy(run: RunFolder) -> None:
    """Remove claims and unfinished files, which nobody needs when all is done."""
    for model in run.models():
        run.claims(model).clear()
        remove_unfinished(run.shard_folder(model))
    with suppress(OSError, UserError):
        inside(run.folder, "claims").rmdir()
    for folder in ("models", "workers", "figures", "tables"):
        remove_unfinished(inside(run.folder, folder))
    remove_unfinished(run.folder)
