"""Read a run folder: its record, shards, tables, progress and faults."""

import hashlib
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from interp.errors import UserError, one_line, shortened
from interp.files import inside, is_folder, locked, read_bytes
from interp.runs.claims import Claims
from interp.runs.records import (
    ModelRecord,
    RunRecord,
    read_record,
    updated,
    write_record,
)
from interp.runs.shards import (
    Filters,
    damage,
    manifests,
    read_columns,
    read_manifest,
    read_table,
    unchanged_file,
)
from interp.runs.written import change_in, faults, noted

if TYPE_CHECKING:
    import pandas as pd

RECORD = RunRecord.FILE

PROMPTS = "prompts.parquet"

RECORD_LOCK = "record"
"""The lock that a command holds while changing the record."""

IN_USE = "use"
"""The shared lock of commands and workers that measure in a folder."""

_Run = TypeVar("_Run", bound="RunFolder")


@dataclass
class RunFolder:
    """A run on disk, finished or not."""

    folder: Path
    record: RunRecord
    """The content of run.json when it was read."""

    @classmethod
    def read(cls: type[_Run], folder: Path) -> _Run:
        """Open the run in a folder.

        Raises:
            UserError: there is no run of this format version, or its record is damaged.
        """
        record = read_record(inside(folder, RECORD), RunRecord)
        if record is None:
            raise UserError(
                f"{folder} holds no run (it has no {RECORD}); expected a folder written by "
                "interp attribute, evaluate or run"
            )
        run = cls(folder, record)
        run.models()
        return run

    def models(self) -> dict[str, ModelRecord]:
        """The records of the models that were begun, in the order of the tables.

        One measured on different prompts, such as those of a smaller limit, counts as not begun.
        """
        records = {name: self.begun(name) for name in self.record.models}
        return {name: record for name, record in records.items() if record is not None}

    def begun(self, model: str) -> ModelRecord | None:
        """The record of one of the models that were begun, as in `models`; None for others."""
        record = self.model_record(model) if model in self.record.models else None
        same = record is not None and record.data_hash == self.record.run.data_hash
        return record if same else None

    def places(self) -> dict[str, str]:
        """Where each model on record was found, by name: an absolute path, or its hub name."""
        records = map(self.model_record, self.record.models)
        return {record.name: record.source.get("name", "") for record in records if record}

    def model_record(self, model: str) -> ModelRecord | None:
        """The record of a model, for any prompts; None if the model was never begun.

        Raises:
            UserError: the record is damaged.
        """
        file = self.model_file(model)
        record = read_record(file, ModelRecord)
        if record is not None and record.name != model:
            raise UserError(f"{file} is damaged: it is the record of {record.name[:200]!r}")
        return record

    def model_file(self, model: str) -> Path:
        """The file with the record of a model."""
        return inside(self.folder, "models", f"{slug(model)}.json")

    def shard_folder(self, model: str) -> Path:
        """The folder with the shards of a model."""
        return inside(self.folder, "shards", slug(model))

    def claims(self, model: str) -> Claims:
        """The claims on the shards of a model."""
        inside(self.folder, "claims", slug(model))
        return Claims(self.folder, ("claims", slug(model)))

    def shards(self, model: str) -> list[Path]:
        """The folders for a model's shards, done or not, in the order of the prompts."""
        record, home = self.begun(model), self.shard_folder(model)
        return [home / id_ for id_ in record.shards] if record else []

    def done(self, model: str) -> list[Path]:
        """The folders of a model's finished shards."""
        return [shard for shard in self.shards(model) if is_folder(shard)]

    def missing(self, models: Iterable[str] | None = None) -> dict[str, list[str] | None]:
        """The missing shards of each incomplete model (by default, of all); None if not begun."""
        missing: dict[str, list[str] | None] = {}
        for model in self.record.models if models is None else models:
            record, home = self.begun(model), self.shard_folder(model)
            if record is None:
                missing[model] = None
            elif ids := [id_ for id_ in record.shards if not is_folder(home / id_)]:
                missing[model] = ids
        return missing

    def unfinished(self, models: Iterable[str] | None = None) -> list[str]:
        """A line about each model that lacks shards (`missing`)."""
        return [
            f"{model} was not begun, or was measured on different prompts"
            if ids is None
            else f"{model} lacks {len(ids)} of {len(self.shards(model))} shards: {', '.join(ids)}"
            for model, ids in self.missing(models).items()
        ]

    def finished_models(self) -> list[str]:
        """The models on record with all their shards."""
        missing = self.missing()
        return [model for model in self.record.models if model not in missing]

    def table(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        *,
        prompts: Iterable[str] | None = None,
    ) -> "pd.DataFrame":
        """A table from all finished shards, or the table "prompts"; by default, all columns of it.

        `prompts` are ids of the prompts whose rows are read (by default, all); not for the prompts
        table.
        """
        import pandas as pd

        chosen = None if prompts is None else [("prompt_id", "in", list(prompts))]
        return pd.concat(self.parts(name, columns, filters=chosen), ignore_index=True)

    def parts(
        self, name: str, columns: Sequence[str] | None = None, *, filters: Filters | None = None
    ) -> "Iterator[pd.DataFrame]":
        """A table, with one shard in memory at a time; each shard contains whole pairs.

        All columns and rows are read by default; `filters` are not for the prompts table.

        Raises:
            UserError: the run has no such table, or one of its files is damaged.
        """
        tables = [self._prompts(columns)] if name == "prompts" else None
        found = False
        for table in tables or self._tables_of_shards(name, columns, filters):
            found = True
            yield table.to_pandas()
        if not found:
            raise UserError(f"the run in {self.folder} has no table {name!r} yet")

    def _tables_of_shards(
        self, name: str, columns: Sequence[str] | None, filters: Filters | None
    ) -> Iterator[pa.Table]:
        for model, record in self.models().items():
            for shard in self.done(model):
                if name in record.tables:
                    expected = record.tables[name]
                    table = read_table(shard, name, expected, columns=columns, filters=filters)
                    self._check_ids(shard / f"{name}.parquet", table, model)
                    yield table

    def _check_ids(self, file: Path, table: pa.Table, model: str) -> None:
        """Check that the rows of a shard are about its model and the prompts of the run."""
        allowed = {"model": pa.array([model]), **self._known}
        for column in allowed.keys() & set(table.column_names):
            ids = pc.unique(table[column]).drop_null()  # a pair that fails has no prompts
            strange = ids.filter(pc.invert(pc.is_in(ids, value_set=allowed[column])))
            if len(strange):
                raise UserError(
                    f"{file} has rows of another {column}, {shortened(str(strange[0]))}; rerun the "
                    "command that wrote it"
                )

    @cached_property
    def _known(self) -> Mapping[str, pa.Array]:
        """The ids of the prompts and pairs, by the columns that refer to them."""
        table = self._prompts(["prompt_id", "pair_id"])
        ids = table["prompt_id"].combine_chunks()
        names = ("prompt_id", "clean_prompt_id", "corrupt_prompt_id")
        return {**dict.fromkeys(names, ids), "pair_id": table["pair_id"].combine_chunks()}

    def _prompts(self, columns: Sequence[str] | None) -> pa.Table:
        file = inside(self.folder, PROMPTS)
        try:
            content = read_bytes(file)
        except FileNotFoundError:
            raise UserError(f"the run in {self.folder} has no table 'prompts' yet") from None
        if hashlib.sha256(content).hexdigest() != self.record.files.get(PROMPTS):
            raise UserError(
                f"{file} has changed since it was written; rerun the command that wrote it"
            )
        table = read_columns(content, columns)
        if "prompt_id" in table.column_names and len(table["prompt_id"].unique()) < len(table):
            raise UserError(f"{file} names a prompt twice; rerun the command that wrote it")
        return table

    def files(self, table: str, models: Iterable[str]) -> list[Path]:
        """A table's unchanged files for the given models, one per shard."""
        return [unchanged_file(shard, table) for model in models for shard in self.done(model)]

    def merged_tables(self) -> list[str]:
        """The tables that are merged into one file with the rows of all models."""
        return [table for table in self.tables() if table not in self.record.unmerged]

    def tables(self) -> list[str]:
        """The tables in the finished shards."""
        measured = (record for model, record in self.models().items() if self.done(model))
        return sorted(next((record.tables for record in measured), {}))

    def shards_hash(self, model: str) -> str:
        """A hash of the contents of a model's shards, computed from their manifests."""
        digest = hashlib.sha256()
        for manifest in manifests(self.done(model)):
            digest.update(manifest.model_dump_json().encode())
        return digest.hexdigest()

    def mergeable(self) -> dict[str, str]:
        """The models with all their shards, each with a hash of its shards."""
        return {model: self.shards_hash(model) for model in self.finished_models()}

    def change(self, changes: Callable[[RunRecord], Mapping[str, object]]) -> None:
        """Reread the record, which other commands may have changed, and apply changes to it."""
        with locked(self.folder, RECORD_LOCK):
            record = RunFolder.read(self.folder).record
            self.record = updated(record, changes(record))
            if self.record != record:
                write_record(inside(self.folder, RECORD), self.record)

    def note_report(self, names: Iterable[str]) -> None:
        """Record the files of a page that was just written, by path within the folder."""
        self.change(lambda record: {"report": noted(self.folder, record, names)})

    def file_problem(self, name: str) -> str | None:
        """A line about what is wrong with a file that should be on record; None if nothing is."""
        expected = self.record.files.get(name)
        if expected is None:
            return f"{name} is not on record"
        return change_in(self.folder, name, expected)


@contextmanager
def evaluating(*folders: Path) -> Iterator[None]:
    """Turn an error of calculations with the tables of folders into one message.

    Checksums show that files have changed, unless whoever changed them wrote new checksums.

    Raises:
        UserError: the block raised an error other than those that have their own message.
    """
    try:
        yield
    except (UserError, OSError, MemoryError):
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = " and ".join(map(str, folders))
        raise UserError(
            f"the tables in {where} do not fit together: {type(error).__name__}, "
            f"{one_line(str(error), 160)} ({Path(place.filename).name}, line {place.lineno}). "
            "Rerun the command that wrote them with another --out; if that does not help, this is "
            "a fault of interp: please report it"
        ) from error


def slug(model: str) -> str:
    """A file name that is unique to a model."""
    readable = re.sub(r"[^A-Za-z0-9.-]+", "_", model).strip("._")[:80]
    return f"{readable}-{hashlib.sha256(model.encode(errors='surrogatepass')).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """How far a run is with one model."""

    model: str
    prompts: int
    done: int
    """Number of prompts on disk."""
    failed: int
    """Number of prompts with an error, or of pairs if pairs are measured."""
    running: int
    """Number of claimed shards."""
    rate: float
    """Prompts per second: one worker's rate on the finished shards, times `running`. NaN if nothing
    is claimed or no shard is done.
    """

    @property
    def seconds_left(self) -> float:
        """Estimated time for the remaining prompts; NaN if the rate is."""
        return (self.prompts - self.done) / self.rate


def progress(run: RunFolder) -> Iterator[ModelProgress]:
    """The progress of a run with each of its models."""
    for model in run.record.models:
        shards, claims = list(manifests(run.done(model))), run.claims(model)
        done, seconds = (sum(getattr(m, name) for m in shards) for name in ("prompts", "seconds"))
        running = sum(map(claims.held, claims.all()))
        yield ModelProgress(
            model,
            prompts=run.record.run.prompts,
            done=done,
            failed=sum(manifest.errors for manifest in shards),
            running=running,
            rate=running * done / seconds if running and done and seconds else float("nan"),
        )


def problems(run: RunFolder, models: Iterable[str] | None = None) -> Iterator[str]:
    """A line about everything that is missing, wrong or changed since it was written.

    A run should contain the given models or, by default, those on record.
    """
    if not run.record.models:
        yield "no model was named"
    yield from run.unfinished(models)
    for model, record in run.models().items():
        yield from _problems_of_model(run, model, record)
    if run.record.finished is None:
        yield "the run is not finished: the tables were not merged"
    else:
        expected = (PROMPTS, *(f"{table}.parquet" for table in run.merged_tables()))
        names = dict.fromkeys([*expected, *run.record.files])
        yield from filter(None, map(run.file_problem, names))
    yield from faults(run.folder, run.record)


def _problems_of_model(run: RunFolder, model: str, record: ModelRecord) -> Iterator[str]:
    done = run.done(model)
    damaged = {shard: line for shard in done if (line := _problem_of_shard(shard, record))}
    for shard, problem in damaged.items():
        yield f"shard {shard.name} of {model}: {problem}"
    if damaged or len(done) < len(record.shards):
        return
    prompts = sum(read_manifest(shard).prompts for shard in done)
    if prompts != run.record.run.prompts:
        yield f"{model}: the shards hold {prompts:,} of {run.record.run.prompts:,} prompts"
    if run.record.finished and run.record.merged.get(model) != run.shards_hash(model):
        yield f"the tables lack the shards of {model}; rerun the command to merge them again"


def _problem_of_shard(shard: Path, record: ModelRecord) -> str | None:
    problem = damage(shard)
    if problem is not None:
        return problem
    files, expected = read_manifest(shard).files, {f"{table}.parquet" for table in record.tables}
    if set(files) != expected:
        return f"it holds {', '.join(files)}; expected {', '.join(sorted(expected))}"
    try:
        for table, columns in record.tables.items():
            read_table(shard, table, columns)
    except UserError as error:
        return str(error)
    return None
