"""Measured tables, in memory or in a run folder that is read shard by shard."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import pandas as pd

from interp.analysis.accuracy import whole_pairs
from interp.choices import OWN_PAIRS
from interp.errors import UserError, unknown
from interp.measuring.spec import ModelFacts, Spec
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import Decisive, PromptSet
from interp.prompts.systems import dependence_factor
from interp.runs.folder import RunFolder
from interp.runs.shards import Filters

_Tables = TypeVar("_Tables", bound="ResultTables")


@dataclass(frozen=True)
class About:
    """What was measured, and with which prompts."""

    measurement: str
    """Name of the measurement, such as "attribute"."""
    parameters: Mapping[str, Any]
    """The recorded options of the measurement; missing options have their defaults."""
    system: str
    """The prompts' system."""
    seed: int = 0
    """The seed of the prompts."""
    ratio: tuple[str, str] | None = None
    """The two segments that the system compares: numerator, then denominator."""
    decisive: Decisive | None = None
    """The factor that names the deciding segments, if any."""
    data: str = ""
    """What the prompts were read or generated from (`PromptSet.description`)."""

    @property
    def title(self) -> str:
        """The title of pages, such as "Attribute: mine.csv"."""
        source = Path(self.data).name if self.system == OWN_PAIRS else self.system
        return f"{self.measurement.capitalize()}: {source or self.system}"

    @cached_property
    def cluster(self) -> str | None:
        """The factor whose values group dependent prompts, such as their entity, if any."""
        return dependence_factor(self.system)


class ResultTables(ABC):
    """The tables of a measurement; "prompts" is the prompts table."""

    _counted: Sequence[str] | None = None
    """Ids of the prompts to which the tables are limited, if any."""

    @property
    @abstractmethod
    def about(self) -> About:
        """What was measured, and with which prompts."""

    @abstractmethod
    def names(self) -> list[str]:
        """The measured tables, without the prompts table."""

    @abstractmethod
    def models(self) -> list[str]:
        """Names of the models, in the order of the tables."""

    @abstractmethod
    def rows(self, name: str) -> Sequence[Path] | pd.DataFrame:
        """The files of a table, which may be large; for a result in memory, the table itself."""

    @abstractmethod
    def _parts(
        self, name: str, columns: Sequence[str] | None, filters: Filters | None
    ) -> Iterator[pd.DataFrame]:
        """The parts of a table, with the rows of all prompts."""

    def parts(
        self, name: str, columns: Sequence[str] | None = None, *, filters: Filters | None = None
    ) -> Iterator[pd.DataFrame]:
        """A table in parts, each of which fits into memory and contains whole pairs.

        Args:
            name: name of the table.
            columns: the columns to read; all by default.
            filters: column, operator ("==", "!=" or "in") and value of the rows to read.

        Raises:
            UserError: there is no such table, or one of its files is damaged.
        """
        ids = self._counted
        if ids is None:
            yield from self._parts(name, columns, filters)
        elif name == "prompts":  # run folders have no filters for this table
            yield from (p[p["prompt_id"].isin(ids)] for p in self._parts(name, columns, filters))
        else:
            yield from self._parts(name, columns, [*(filters or ()), ("prompt_id", "in", ids)])

    def table(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        *,
        prompts: Iterable[str] | None = None,
    ) -> pd.DataFrame:
        """A table, optionally restricted to given columns or prompts.

        Raises:
            UserError: there is no such table, or one of its files is damaged.
        """
        filters = None if prompts is None else [("prompt_id", "in", list(prompts))]
        parts = list(self.parts(name, columns, filters=filters))
        return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)

    def whole_pairs(self: _Tables, answers: str) -> _Tables:
        """These tables, restricted to the pairs that every model answered in the given table."""
        prompts = self.table("prompts", ["prompt_id", "pair_id"])
        ids = whole_pairs(prompts, self.table(answers, ["model", "prompt_id"]))["prompt_id"]
        limited = copy(self)
        limited._counted = ids.tolist()
        return limited

    def size(self, name: str) -> int:
        """The number of rows in a table."""
        return sum(map(len, self.parts(name)))

    @abstractmethod
    def facts(self) -> Mapping[str, ModelFacts]:
        """What is known about each model besides its tables."""

    def record(self) -> Mapping[str, object]:
        """The records of the run and its models, for the page; empty for tables in memory."""
        return {}

    def problems(self) -> tuple[str, ...]:
        """A line about each model that is not yet completely measured."""
        return ()


class InFolder(ResultTables):
    """The tables of a run folder, finished or not."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run

    @cached_property
    def about(self) -> About:
        """The description of the measurement and its prompts, from the run's record."""
        run = self.run.record.run
        naming = run.decisive
        decisive = Decisive(naming.factor, tuple(naming.among)) if naming else None
        named = (run.measurement, run.parameters, run.system, run.seed, run.ratio)
        return About(*named, decisive, run.data.get("data", ""))

    def names(self) -> list[str]:
        """The tables in the shards."""
        return self.run.tables()

    def models(self) -> list[str]:
        """The models in the record, including models not yet begun."""
        return list(self.run.record.models)

    def _parts(
        self, name: str, columns: Sequence[str] | None, filters: Filters | None
    ) -> Iterator[pd.DataFrame]:
        return self.run.parts(name, columns, filters=filters)

    def rows(self, name: str) -> Sequence[Path]:
        """The table's file in each shard."""
        return self.run.files(name, self.run.models())

    def size(self, name: str) -> int:
        """The number of rows in the shards; only one column is read."""
        tables = {"prompts": {"prompt_id": ""}}
        for record in self.run.models().values():
            tables |= record.tables
        return sum(map(len, self.parts(name, [next(iter(tables[name]))])))

    def facts(self) -> Mapping[str, ModelFacts]:
        """The facts in the models' records."""
        return {
            name: ModelFacts(
                record.dtype,
                record.own_system_prompt,
                record.logit_spacing,
                tuple(record.attention_layers),
                record.reads_tokens_again,
                texts="" if record.texts is None else record.texts.file,
                unfitting=() if record.texts is None else tuple(record.texts.problems),
                surprise=None
                if record.surprise is None
                else (record.surprise.mean, record.surprise.se),
                replies=None
                if (tried := record.replies) is None
                else (
                    *(tried.read, tried.outside, tried.token, tried.templated),
                    *(tried.asked, tried.given),
                ),
            )
            for name, record in self.run.models().items()
        }

    def record(self) -> Mapping[str, object]:
        """The run's record, with the records of its models."""
        models = {name: model.model_dump(mode="json") for name, model in self.run.models().items()}
        # A page must not depend on an earlier page, nor on how many workers there were.
        record = self.run.record.model_dump(mode="json", exclude={"report", "workers"})
        return {**record, "models": models}

    def problems(self) -> tuple[str, ...]:
        """Models not yet begun, and missing shards."""
        return tuple(self.run.unfinished())


_HOLDS = {"==": "eq", "!=": "ne", "in": "isin"}
"""Methods of a column, by the operators of filters."""


class InMemory(ResultTables):
    """Tables in memory."""

    def __init__(
        self,
        spec: Spec,
        prompts: Sequence[Prompt],
        tables: Mapping[str, pd.DataFrame],
        facts: Mapping[str, ModelFacts] = MappingProxyType({}),
    ) -> None:
        self._spec, self._prompts, self._facts = spec, PromptSet.of(prompts), facts
        self._tables = {"prompts": self._prompts.to_frame(), **tables}

    @cached_property
    def about(self) -> About:
        """The description of the measurement, from the spec and the prompts."""
        spec, asked = self._spec, self._prompts
        named = (spec.name, spec.as_json(), asked.system, asked.seed, asked.ratio, asked.decisive)
        return About(*named, asked.description.get("data", ""))

    def names(self) -> list[str]:
        """All tables except the prompts table."""
        return [name for name in self._tables if name != "prompts"]

    def facts(self) -> Mapping[str, ModelFacts]:
        """The facts given with the tables."""
        return self._facts

    def models(self) -> list[str]:
        """The models in the first table."""
        return list(map(str, self.rows(self.names()[0])["model"].unique()))

    def _parts(
        self, name: str, columns: Sequence[str] | None, filters: Filters | None
    ) -> Iterator[pd.DataFrame]:
        rows = self.rows(name)
        for column, holds, value in filters or ():
            rows = rows[getattr(rows[column], _HOLDS[holds])(value)]
        yield rows if columns is None else rows[list(columns)]

    def rows(self, name: str) -> pd.DataFrame:
        """The table itself."""
        if name not in self._tables:
            raise UserError(unknown("table", name, [*self.names(), "prompts"]))
        return self._tables[name]
