"""A run folder as it stands on disk: its record, the shards that are done, and its tables."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from interp.errors import UserError
from interp.runs.record import read_record

RECORD = "run.json"


@dataclass(frozen=True)
class RunFolder:
    """What a run has left, whether it is finished or not."""

    folder: Path
    record: dict[str, Any]
    """What run.json says."""

    @classmethod
    def read(cls, folder: Path) -> "RunFolder":
        """The run in a folder.

        Raises:
            UserError: no run of this version there, or models measured on different data.
        """
        record = read_record(folder / RECORD, ("run", "models"))
        if record is None:
            raise UserError(
                f"{folder} holds no run (it has no {RECORD}); give a folder that "
                "python -m interp attribute, evaluate or run wrote"
            )
        for name, model in record["models"].items():
            if not {"data_hash", "shards"} <= set(model):
                raise UserError(
                    f"the record of {name} in {folder / RECORD} lacks its data hash or its shards, "
                    "as another version of interp wrote it; run the command again with another "
                    "--out"
                )
        hashes = {name: model["data_hash"] for name, model in record["models"].items()}
        if len(set(hashes.values())) > 1:
            listed = ", ".join(f"{name}: {value[:12]}" for name, value in hashes.items())
            raise UserError(
                f"the models of {folder} were measured on different data (hashes {listed}), so "
                "their figures cannot stand in one table; run them again with the same options"
            )
        return cls(folder, record)

    def shard_folder(self, model: str) -> Path:
        """Where the shards of a model are."""
        return self.folder / "shards" / re.sub(r"[^A-Za-z0-9.-]+", "_", model).strip("._")

    def shards(self, model: str) -> list[Path]:
        """The folders of all shards of a model, in the order of the prompts, done or not."""
        return [self.shard_folder(model) / id_ for id_ in self.record["models"][model]["shards"]]

    def missing(self) -> dict[str, list[str]]:
        """Ids of the shards that are not done, by model; models without any are left out."""
        missing = {
            model: [shard.name for shard in self.shards(model) if not shard.is_dir()]
            for model in self.record["models"]
        }
        return {model: ids for model, ids in missing.items() if ids}

    def table(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """A table of the run, from every shard that is done; "prompts" is the prompts table.

        Raises:
            UserError: the run has no such table.
        """
        files = [self.folder / "prompts.parquet"]
        if name != "prompts":
            files = self.files(name, self.record["models"])
        if not files or not all(file.exists() for file in files):
            raise UserError(f"the run in {self.folder} has no table {name!r} yet")
        chosen = None if columns is None else list(columns)
        parts: list[pd.DataFrame] = [pd.read_parquet(file, columns=chosen) for file in files]
        return pd.concat(parts, ignore_index=True)

    def files(self, table: str, models: Iterable[str]) -> list[Path]:
        """The files of a table of some models, one a shard that is done."""
        shards = [shard for model in models for shard in self.shards(model)]
        return [shard / f"{table}.parquet" for shard in shards if shard.is_dir()]

    def finished_models(self) -> list[str]:
        """The models of which no shard is missing."""
        missing = self.missing()
        return [model for model in self.record["models"] if model not in missing]

    def tables(self) -> list[str]:
        """Names of the tables that the finished shards hold."""
        done = [s for model in self.record["models"] for s in self.shards(model) if s.is_dir()]
        return sorted(path.stem for path in done[0].glob("*.parquet")) if done else []
