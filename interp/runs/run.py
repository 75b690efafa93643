"""A run: one measurement of one prompt set on some models, kept in one folder.

1. Open the folder: take it if it is empty or holds this very run, refuse it otherwise.
2. Write the prompts.
3. Measure model by model, shard by shard; shards that are there already are left alone.
4. Merge the shards of all models that the folder holds into one file a table.
"""

import json
import platform
import re
import resource
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from interp.errors import UserError
from interp.files import write_whole
from interp.measure import Measurement
from interp.models.model import Model
from interp.prompts.chat import has_chat_template
from interp.prompts.prompt_set import PromptSet, prompt_row
from interp.runs.progress import Progress
from interp.runs.shards import (
    SHARD_PROMPTS,
    code_version,
    cut,
    merge,
    remove_unfinished,
    write,
    write_parquet,
)

RECORD = "run.json"

_PACKAGES = ("interp", "torch", "transformers", "tokenizers", "numpy", "pyarrow", "inseq")


@dataclass(frozen=True)
class Run:
    """A run folder that was opened for a prompt set and a kind of measurement."""

    folder: Path
    prompts: PromptSet
    record: dict[str, Any]
    """What run.json says."""

    @classmethod
    def open(
        cls, folder: Path, prompts: PromptSet, *, measurement: str, parameters: Mapping[str, object]
    ) -> "Run":
        """Take a folder for a run, new or resumed; further models may join a run.

        Raises:
            UserError: the folder belongs to a different run, or holds other files.
        """
        origin = {
            "measurement": measurement,
            "parameters": dict(parameters),
            "system": prompts.system,
            "seed": prompts.seed,
            "prompts": len(prompts),
            "data": prompts.description,
            "data_hash": prompts.content_hash(),
            "code": code_version(),
        }
        earlier = _read_record(folder)
        if earlier is not None:
            _check_same_run(folder, earlier["run"], json.loads(json.dumps(origin)))
        elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(
                f"{folder} exists and is not a run folder (it has no {RECORD}); "
                "give an empty or new folder as --out"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the folder {folder}: {error.strerror}") from error
        record = {
            "run": origin,
            "models": earlier["models"] if earlier else {},
            "command": shlex.join(sys.argv),
            "started": _now(),
            "finished": None,
            "versions": _versions(),
        }
        run = cls(folder, prompts, record)
        run._write_record()
        run._write_prompts()
        return run

    def measure(self, measurement: Measurement) -> None:
        """Measure all prompts on one model; what an earlier call finished is not done again."""
        model = measurement.model
        folder = self._shard_folder(model.name)
        folder.mkdir(parents=True, exist_ok=True)
        remove_unfinished(folder)
        shards = cut(measurement, self.prompts, folder)
        done = sum(shard.end - shard.start for shard in shards if shard.done)
        title = f"{measurement.name} {model.name}"
        with Progress(title, total=len(self.prompts), done=done) as progress:
            for shard in shards:
                if not shard.done:
                    prompts = list(self.prompts[shard.start : shard.end])
                    write(shard, measurement, measurement(prompts, done=progress.advance))
        self.record["models"][model.name] = {
            **_model_record(model),
            "shards": [shard.id for shard in shards],
        }
        self._write_record()

    def merge_tables(self) -> list[Path]:
        """Join the shards of all models of the run into one file a table; returns the files."""
        folders = list(self._finished_shards())
        tables = sorted(path.stem for path in folders[0].glob("*.parquet"))
        files = [self.folder / f"{table}.parquet" for table in tables]
        for table, file in zip(tables, files, strict=True):
            merge(table, folders, file)
        return files

    def finish(self, summary: dict[str, Any]) -> None:
        """Note the end of the run and its summary in the record."""
        self.record.update(finished=_now(), peak_memory_bytes=_peak_memory(), summary=summary)
        self._write_record()

    def _shard_folder(self, model: str) -> Path:
        return self.folder / "shards" / re.sub(r"[^A-Za-z0-9.-]+", "_", model).strip("._")

    def _finished_shards(self) -> Iterator[Path]:
        for model, record in self.record["models"].items():
            for shard in record["shards"]:
                yield self._shard_folder(model) / shard

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
        text = json.dumps(self.record, indent=2, ensure_ascii=False) + "\n"
        write_whole(self.folder / RECORD, lambda path: path.write_text(text, encoding="utf-8"))


def _model_record(model: Model) -> dict[str, Any]:
    return {
        **model.source,
        "identity": model.identity,
        "architecture": model.hf.config.model_type,
        "parameters": model.hf.num_parameters(),
        "dtype": model.dtype,
        "device": str(model.device),
        "attn_implementation": model.attn_implementation,
        "chat_template": has_chat_template(model.tokenizer),
    }


def _read_record(folder: Path) -> dict[str, Any] | None:
    file = folder / RECORD
    if not file.exists():
        return None
    try:
        record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        _ = record["run"], record["models"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{file} is not the record of a run; give an empty or new folder as --out"
        ) from error
    return record


def _check_same_run(folder: Path, earlier: dict[str, Any], now: dict[str, Any]) -> None:
    if earlier.get("code") != now["code"]:
        raise UserError(
            f"{folder} was measured by another version of interp, whose numbers may differ; "
            "give another --out"
        )
    for key, value in now.items():
        if earlier.get(key) != value:
            raise UserError(
                f"{folder} belongs to a different run: its {key} is {earlier.get(key)!r}, this "
                f"run's is {value!r}; repeat that run's options, or give another --out"
            )


def _peak_memory() -> dict[str, int]:
    """The most memory that the process has held, in bytes, by device."""
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if platform.system() == "Darwin" else 1024
    peak = {"cpu": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    for index in range(torch.cuda.device_count()):
        peak[f"cuda:{index}"] = torch.cuda.max_memory_allocated(index)
    return peak


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
