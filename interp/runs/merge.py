"""The end of a command on a run: merging the shards into tables, and recording the results.

Only one command at a time does this in a folder. It includes all finished models, even those that
other commands measured.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from interp.errors import UserError
from interp.files import checksum, inside, locked, names_in, remove_unfinished
from interp.runs.folder import IN_USE, RunFolder
from interp.runs.records import RESULT_FILE, RunRecord, now
from interp.runs.shards import read_table, write_parquet
from interp.runs.workers import ended_call
from interp.runs.written import noted, worker_names


@dataclass
class Merged:
    """A run whose tables have just been merged."""

    run: RunFolder
    """The run as it is now, including models that other commands added."""
    summary: Mapping[str, object]
    """Remarks about each model that the tables do not show."""
    figures: Sequence[str] = ()
    """The figures that were drawn, by path within the folder."""


@contextmanager
def merging(folder: Path) -> Iterator[Merged]:
    """Merge the tables of all finished models; no other command changes them during the block.

    At the end, the record lists the CSV files that the block wrote, and the figures and the summary
    that it set.
    """
    run = RunFolder.read(folder)
    with locked(folder, "tables"):
        run = RunFolder.read(folder)
        models = _merge_tables(run)
        merged = Merged(run, run.record.summary)
        yield merged
        _note_end(merged, models)
    with locked(folder, IN_USE, wait=False) as unused:
        if unused and not run.missing():
            _tidy(run)


def _merge_tables(run: RunFolder) -> dict[str, str]:
    """Join shards into one file per table, if it is not up to date; the finished models, hashed."""
    models = run.models()
    merged = run.mergeable()
    tables = run.merged_tables() if merged else []
    changed = any(run.file_problem(f"{table}.parquet") for table in tables)
    if merged != run.record.merged or changed:
        for table in tables:
            parts = (
                read_table(shard, table, models[model].tables[table])
                for model in merged
                for shard in run.done(model)
            )
            first = next(parts)  # one part is in memory at a time
            file = inside(run.folder, f"{table}.parquet")
            write_parquet(file, first.schema, chain([first], parts))
    return merged


def _note_end(ended: Merged, merged: Mapping[str, str]) -> None:
    run = ended.run
    names = [name for name in names_in(run.folder) if re.fullmatch(RESULT_FILE, name)]
    files = {name: checksum(inside(run.folder, name)) for name in names}

    def changes(record: RunRecord) -> dict[str, object]:
        history = [
            call
            if call.finished is not None or run.missing(call.models)
            else ended_call(run.folder, call)
            for call in record.history
        ]
        facts = {
            "summary": dict(ended.summary),
            "files": files,
            "merged": merged,
            "history": history,
            "report": noted(run.folder, record, ended.figures),
            "workers": worker_names(run.folder),
        }
        same = all(getattr(record, name) == value for name, value in facts.items())
        # If a call found nothing to do, leave the record unchanged.
        return {} if same and record.finished else {**facts, "finished": now()}

    run.change(changes)


def _tidy(run: RunFolder) -> None:
    """Remove claims and unfinished files, which are no longer needed once everything is done."""
    for model in run.models():
        run.claims(model).clear()
        remove_unfinished(run.shard_folder(model))
    with suppress(OSError, UserError):
        inside(run.folder, "claims").rmdir()
    for folder in ("models", "workers", "figures", "tables"):
        remove_unfinished(inside(run.folder, folder))
    remove_unfinished(run.folder)
