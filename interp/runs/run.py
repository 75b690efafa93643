"""A run: one measurement of one prompt set on some models, kept in one folder.

1. Open the folder: take it if it is empty or holds this very run, refuse it otherwise.
2. Write the prompts.
3. Measure model by model, shard by shard; shards that are there already are left alone.
4. Merge the shards of all models that the folder holds whole into one file a table.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from interp.errors import UserError
from interp.measure import Measurement
from interp.models.model import Model
from interp.prompts.chat import has_chat_template
from interp.prompts.prompt_set import PromptSet, prompt_row
from interp.runs.folder import RECORD, RunFolder
from interp.runs.progress import Progress
from interp.runs.record import beginning, ending, read_record, write_record
from interp.runs.shards import (
    SHARD_PROMPTS,
    code_version,
    cut,
    merge,
    remove_unfinished,
    write,
    write_parquet,
)


@dataclass(frozen=True)
class Run(RunFolder):
    """A run folder that was opened for a prompt set and a kind of measurement."""

    prompts: PromptSet

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
        earlier = read_record(folder / RECORD, ("run", "models"))
        if earlier is not None:
            _check_same_run(folder, earlier["run"], json.loads(json.dumps(origin)))
        take_folder(folder, RECORD)
        models = earlier["models"] if earlier else {}
        run = cls(folder, {"run": origin, "models": models, **beginning()}, prompts)
        run._write_record()
        run._write_prompts()
        return run

    def measure(self, measurement: Measurement) -> None:
        """Measure all prompts on one model; what an earlier call finished is not done again."""
        model = measurement.model
        folder = self.shard_folder(model.name)
        folder.mkdir(parents=True, exist_ok=True)
        remove_unfinished(folder)
        shards = cut(measurement, self.prompts, folder)
        self.record["models"][model.name] = {
            **_model_record(model),
            "data_hash": self.record["run"]["data_hash"],
            "shards": [shard.id for shard in shards],
        }
        self._write_record()
        done = sum(shard.end - shard.start for shard in shards if shard.done)
        title = f"{measurement.name} {model.name}"
        with Progress(title, total=len(self.prompts), done=done) as progress:
            for shard in shards:
                if not shard.done:
                    prompts = list(self.prompts[shard.start : shard.end])
                    write(shard, measurement, measurement(prompts, done=progress.advance))

    def merge_tables(self) -> list[Path]:
        """Join the shards of all finished models into one file a table; returns the files."""
        folders = [shard for model in self.finished_models() for shard in self.shards(model)]
        files = [self.folder / f"{table}.parquet" for table in self.tables()]
        for file in files:
            merge(file.stem, folders, file)
        return files

    def finish(self, summary: dict[str, Any]) -> None:
        """Note the end of the run and its summary in the record."""
        self.record.update(ending(), summary=summary)
        self._write_record()

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
        write_record(self.folder / RECORD, self.record)


def take_folder(folder: Path, record: str) -> None:
    """Make a folder for results; one that is there must be empty or hold the named record.

    Raises:
        UserError: it holds other files, or cannot be made.
    """
    taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if taken and not (folder / record).exists():
        raise UserError(
            f"{folder} exists and is not a run folder (it has no {record}); "
            "give an empty or new folder as --out"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder}: {error.strerror}") from error


def _model_record(model: Model) -> dict[str, Any]:
    return {
        **model.source,
        "identity": model.identity,
        "architecture": model.hf.config.model_type,
        "parameters": model.hf.num_parameters(),
        "vocabulary": model.hf.config.get_text_config().vocab_size,
        "dtype": model.dtype,
        "quantization": model.quantization,
        "device": str(model.device),
        "attn_implementation": model.attn_implementation,
        "chat_template": has_chat_template(model.tokenizer),
    }


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
