"""A run: one measurement of one prompt set on some models, kept in one folder.

1. Open the folder: take it if it is empty or holds this very run, refuse it otherwise.
2. Write the prompts; remove shards that were damaged.
3. Measure model by model, shard by shard, under claims; what is there already is left alone. Any
   number of workers may do so at once.
4. Merge the shards of all models that the folder holds whole into one file a table.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from interp.errors import UserError
from interp.files import checksum, remove_unfinished, writing
from interp.measurement import Measurement
from interp.prompts.prompt_set import PromptSet, prompt_row
from interp.runs.claims import Claims
from interp.runs.folder import RECORD, RunFolder
from interp.runs.memory import recall_budget, remember_budget
from interp.runs.origin import check_same_model, check_same_run, model_record, run_origin
from interp.runs.progress import Progress
from interp.runs.record import beginning, ending, read_record, write_record
from interp.runs.shards import (
    SHARD_PROMPTS,
    Shard,
    cut,
    damage,
    merge,
    read_manifest,
    write,
    write_parquet,
)
from interp.runs.workers import peak_of_workers


@dataclass(frozen=True)
class Run(RunFolder):
    """A run folder that was opened for a prompt set and a kind of measurement."""

    prompts: PromptSet
    fail_on_error: float
    """Largest share of a model's prompts that may have an error."""
    _claims: dict[str, Claims] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        folder: Path,
        prompts: PromptSet,
        *,
        measurement: str,
        parameters: Mapping[str, object],
        models: Sequence[str] = (),
        fail_on_error: float = 1.0,
        command: str | None = None,
    ) -> "Run":
        """Take a folder for a run, new or resumed; further models may join a run.

        Args:
            folder: where everything goes.
            prompts: what is measured.
            measurement: name of what is measured of them.
            parameters: what else the numbers depend on.
            models: names of the models, in the order of the tables; others join when measured.
            fail_on_error: stop when a larger share of a model's prompts has an error.
            command: the command line, for the record.

        Raises:
            UserError: the folder belongs to a different run, or holds other files.
        """
        origin = run_origin(prompts, measurement, parameters)
        earlier = read_record(folder / RECORD, ("run", "models"))
        if earlier is not None and (folder / "models").exists():
            check_same_run(folder, earlier["run"], origin)
        take_folder(folder, RECORD)
        names = list(dict.fromkeys([*(earlier["models"] if earlier else ()), *models]))
        record = {"run": origin, "models": names, **beginning(command)}
        run = cls(folder, record, prompts, fail_on_error)
        run._write_record()
        run._write_prompts()
        return run

    @classmethod
    def join(
        cls,
        folder: Path,
        prompts: PromptSet,
        *,
        measurement: str,
        parameters: Mapping[str, object],
        fail_on_error: float,
    ) -> "Run":
        """Join, as a worker, a run that another process has opened.

        Raises:
            UserError: the folder holds no run, or a different one.
        """
        record = RunFolder.read(folder).record
        check_same_run(folder, record["run"], run_origin(prompts, measurement, parameters))
        return cls(folder, record, prompts, fail_on_error)

    def offers(self, model: str, origin: Mapping[str, object]) -> bool:
        """Whether there may be something to do for a model that is known by its origin.

        True too where the origin differs from the recorded one: the model may have changed.
        """
        record = self.model_record(model)
        if record is None or record["origin"] != dict(origin):
            return True
        claims = self._claims_of(model)
        return any(not claims.held(shard) for shard in self.missing_of(model))

    def complete(self, model: str) -> bool:
        """Whether every shard of a model is there."""
        return self.model_record(model) is not None and not self.missing_of(model)

    def measure(
        self, measurement: Measurement, *, origin: Mapping[str, object] | None = None
    ) -> bool:
        """Measure the prompts on one model, but for what is done or claimed by another worker.

        Args:
            measurement: what to measure of which model.
            origin: what the model was loaded from, by which a later call knows it again.

        Returns:
            Whether anything was measured.

        Raises:
            UserError: the folder holds another model of this name, too many prompts have an error,
                or the disk is full.
        """
        name = measurement.model.name
        shards = self._begin(measurement, dict(origin or {}))
        claims = self._claims_of(name)
        recall_budget(self.folder, measurement)
        done = sum(shard.end - shard.start for shard in shards if shard.done)
        waiting = [shard for shard in shards if not shard.done]
        measured = False
        title = f"{measurement.name} {name}"
        with Progress(title, total=len(self.prompts), done=done) as progress:
            for shard in waiting:
                with claims.take(shard.id) as mine:
                    if mine and not shard.done:
                        self._measure_shard(measurement, shard, progress)
                        measured = True
                    elif shard.done:
                        progress.advance(shard.end - shard.start)
        self._check_errors(name)
        return measured

    def _measure_shard(self, measurement: Measurement, shard: Shard, progress: Progress) -> None:
        start = time.monotonic()
        prompts = list(self.prompts[shard.start : shard.end])
        measured = measurement.attempt(prompts, done=progress.advance)
        write(shard, measurement, measured, seconds=time.monotonic() - start)
        remember_budget(self.folder, measurement)
        if measured.errors:
            self._check_errors(measurement.model.name)

    def repair(self) -> list[str]:
        """Remove damaged shards, so that they are measured again; a line on each."""
        lines = []
        for model in self.models():
            for shard in self.shards(model):
                problem = damage(shard) if shard.is_dir() else None
                if problem is not None:
                    shutil.rmtree(shard)
                    lines.append(f"shard {shard.name} of {model} is measured again: {problem}")
        return lines

    def forget_errors(self) -> int:
        """Remove the shards that hold errors, so that they are measured again; how many."""
        found = [
            shard
            for model in self.models()
            for shard in self.shards(model)
            if (read_manifest(shard) or {}).get("errors")
        ]
        for shard in found:
            shutil.rmtree(shard)
        return len(found)

    def merge_tables(self) -> list[Path]:
        """Join the shards of all finished models into one file a table; returns the files."""
        models = self.finished_models()
        folders = [shard for model in models for shard in self.shards(model)]
        files = [self.folder / f"{table}.parquet" for table in self.tables()] if folders else []
        for file in files:
            merge(file.stem, folders, file)
        if not self.missing():
            shutil.rmtree(self.folder / "claims", ignore_errors=True)
            remove_unfinished(self.folder)
            for model in models:
                remove_unfinished(self.shard_folder(model))
        return files

    def finish(self, summary: dict[str, Any]) -> None:
        """Note the end of the run, its summary and its tables' checksums in the record."""
        files = {file.name: checksum(file) for file in sorted(self.folder.glob("*.parquet"))}
        self.record.update(ending(peak_of_workers(self.folder)), summary=summary, files=files)
        self._write_record()

    def _begin(self, measurement: Measurement, origin: dict[str, object]) -> list[Shard]:
        """The shards of a model, which is noted in the folder.

        Raises:
            UserError: the folder holds another model, or one loaded differently, of this name.
        """
        model = measurement.model
        shards = cut(measurement, self.prompts, self.shard_folder(model.name))
        record = {
            **model_record(measurement),
            "origin": origin,
            "data_hash": self.record["run"]["data_hash"],
            "shards": [shard.id for shard in shards],
        }
        earlier = self.model_record(model.name)
        if earlier is not None:
            check_same_model(self.folder, earlier, record)
        if model.name not in self.record["models"]:
            self.record["models"].append(model.name)
            self._write_record()
        if earlier is None or earlier["origin"] != origin:
            file = self.model_file(model.name)
            with writing(file):
                file.parent.mkdir(exist_ok=True)
                self.shard_folder(model.name).mkdir(parents=True, exist_ok=True)
            write_record(file, record)
        return shards

    def _claims_of(self, model: str) -> Claims:
        # Kept, since claims remember what they saw, and when.
        return self._claims.setdefault(model, self.claims(model))

    def _check_errors(self, model: str) -> None:
        """Stop when too many prompts have an error.

        Raises:
            UserError: the share of prompts with an error, of all of the run, is too large.
        """
        manifests = [found for shard in self.shards(model) if (found := read_manifest(shard))]
        errors = sum(manifest["errors"] for manifest in manifests)
        units = len(self.prompts) * sum(manifest["units"] for manifest in manifests)
        prompts = sum(manifest["prompts"] for manifest in manifests)
        if errors * prompts > self.fail_on_error * units:
            example = next(found["example"] for found in manifests if found["errors"])
            raise UserError(
                f"{errors:,} prompts of {model} have an error, which is more than the share "
                f"{self.fail_on_error:g} of all that --fail-on-error allows; one of them: {example}"
                ". Mend the cause and add --retry-errors, or allow a larger share"
            )

    def _write_prompts(self) -> None:
        schema = pa.Table.from_pylist([prompt_row(self.prompts[0])]).schema
        parts = (
            pa.Table.from_pylist(
                [prompt_row(prompt) for prompt in self.prompts[start : start + SHARD_PROMPTS]],
                schema=schema,
            )
            for start in range(0, len(self.prompts), SHARD_PROMPTS)
        )
        write_parquet(self.folder / "prompts.parquet", schema, parts)

    def _write_record(self) -> None:
        # Another command may have added models since.
        there = read_record(self.folder / RECORD, ("run", "models")) or {"models": []}
        names = dict.fromkeys([*there["models"], *self.record["models"]])
        self.record["models"] = list(names)
        write_record(self.folder / RECORD, self.record)


def take_folder(folder: Path, record: str) -> None:
    """Make a folder for results; one that is there must be empty or hold the named record.

    Raises:
        UserError: it holds other files, or cannot be made.
    """
    # What begins with a dot was being written when a process was killed, or is right now.
    taken = folder.exists() and (not folder.is_dir() or any(folder.glob("[!.]*")))
    if taken and not (folder / record).exists():
        raise UserError(
            f"{folder} exists and is not a run folder (it has no {record}); "
            "give an empty or new folder as --out"
        )
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
