"""A run folder as it stands on disk: its record, the shards that are done, and its tables."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from interp.errors import UserError
from interp.runs.claims import Claims
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
        run = cls(folder, record)
        hashes = {name: model["data_hash"] for name, model in run.models().items()}
        if len(set(hashes.values())) > 1:
            listed = ", ".join(f"{name}: {value[:12]}" for name, value in hashes.items())
            raise UserError(
                f"the models of {folder} were measured on different data (hashes {listed}), so "
                "their figures cannot stand in one table; run them again with the same options"
            )
        return run

    def models(self) -> dict[str, dict[str, Any]]:
        """What is recorded of each model that was begun, in the order that they joined the run.

        Raises:
            UserError: a record that another version of interp wrote.
        """
        return {
            name: model
            for name in self.record["models"]
            if (model := self.model_record(name)) is not None
        }

    def model_record(self, model: str) -> dict[str, Any] | None:
        """What is recorded of a model, by whoever began to measure it; None if nobody has.

        Raises:
            UserError: a record that another version of interp wrote.
        """
        file = self.model_file(model)
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            record = {}
        if not {"name", "data_hash", "shards", "tables"} <= set(record):
            raise UserError(
                f"{file} is not the record of a model, or another version of interp wrote it; run "
                "the command again with another --out"
            )
        found: dict[str, Any] = record
        return found

    def model_file(self, model: str) -> Path:
        """Where the record of a model is."""
        return self.folder / "models" / f"{_slug(model)}.json"

    def shard_folder(self, model: str) -> Path:
        """Where the shards of a model are."""
        return self.folder / "shards" / _slug(model)

    def claims(self, model: str) -> Claims:
        """Who measures which shard of a model."""
        return Claims(self.folder / "claims" / _slug(model))

    def shards(self, model: str) -> list[Path]:
        """The folders of all shards of a model that was begun, in the order of the prompts."""
        record = self.model_record(model)
        return [self.shard_folder(model) / id_ for id_ in record["shards"]] if record else []

    def missing(self) -> dict[str, list[str]]:
        """Ids of the shards that are not done, by model that was begun, if it has any."""
        missing = {model: self.missing_of(model) for model in self.models()}
        return {model: ids for model, ids in missing.items() if ids}

    def missing_of(self, model: str) -> list[str]:
        """Ids of the shards of a model that are not done; none if it was not begun."""
        return [shard.name for shard in self.shards(model) if not shard.is_dir()]

    def table(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        *,
        prompts: Iterable[str] | None = None,
    ) -> pd.DataFrame:
        """A table of the run, from every shard that is done; "prompts" is the prompts table.

        Args:
            name: of the table.
            columns: those to read; all if not given.
            prompts: ids of the prompts whose rows to read; all if not given.

        Raises:
            UserError: the run has no such table.
        """
        chosen = None if prompts is None else [("prompt_id", "in", list(prompts))]
        return pd.concat(self.parts(name, columns, filters=chosen), ignore_index=True)

    def parts(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        *,
        filters: list[tuple[str, str, Any]] | None = None,
    ) -> Iterator[pd.DataFrame]:
        """A table shard by shard, which keeps one shard in memory; pairs are whole in each.

        Args:
            name: of the table.
            columns: those to read; all if not given.
            filters: column, operator and value, as pyarrow takes them, of the rows to read.

        Raises:
            UserError: the run has no such table.
        """
        files = [self.folder / "prompts.parquet"]
        if name != "prompts":
            files = self.files(name, self.models())
        if not files or not all(file.exists() for file in files):
            raise UserError(f"the run in {self.folder} has no table {name!r} yet")
        chosen = None if columns is None else list(columns)
        for file in files:
            yield pd.read_parquet(file, columns=chosen, filters=filters)

    def files(self, table: str, models: Iterable[str]) -> list[Path]:
        """The files of a table of some models, one a shard that is done."""
        shards = [shard for model in models for shard in self.shards(model)]
        return [shard / f"{table}.parquet" for shard in shards if shard.is_dir()]

    def finished_models(self) -> list[str]:
        """The models that were begun and of which no shard is missing."""
        missing = self.missing()
        return [model for model in self.models() if model not in missing]

    def tables(self) -> list[str]:
        """Names of the tables that the finished shards hold."""
        done = [s for model in self.models() for s in self.shards(model) if s.is_dir()]
        return sorted(path.stem for path in done[0].glob("*.parquet")) if done else []


def _slug(model: str) -> str:
    """A model's name as the name of a file."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", model).strip("._")
