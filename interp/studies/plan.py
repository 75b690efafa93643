"""Studies: several measurements of the same models in one report; found by entry point.

1. Find the study and its stages: prompts and measurements.
2. Execute the work (`interp.runs`): each stage is a run folder, so an interrupted study can be
   resumed.
3. Report: the study turns the results on disk into tables and figures.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from interp.errors import UserError
from interp.files import inside, locked, names_in, remove_plain
from interp.options import Options
from interp.plugins import STUDIES, load_plugin
from interp.prompts.source import PromptSource
from interp.runs.conclusion import concluding
from interp.runs.execute import Plan, Stage
from interp.runs.folder import RECORD_LOCK
from interp.runs.identity import run_identity
from interp.runs.records import Call, StudyRecord, now, read_record, updated, write_record
from interp.runs.run import Run, check_free, take_folder
from interp.runs.workers import peak_of_workers
from interp.studies.folder import RECORD, StudyFolder

if TYPE_CHECKING:
    from interp.report.page import Report


class Study(Options, ABC):
    """The measurements of a paper or a question, and the report on them.

    A subclass sets the names below, has its own options as fields, and is registered under the
    entry point group `interp.studies`.
    """

    name: ClassVar[str]
    default_limit: ClassVar[int]
    """Number of pairs taken by default."""
    any_system: ClassVar[bool] = False
    """Whether the study takes the prompts of any system."""
    organisms: ClassVar[tuple[str, ...]] = ()
    """The systems whose packaged organisms are measured if no model is named; all organisms if
    empty."""

    def organisms_for(self, source: PromptSource) -> tuple[str, ...]:
        """The systems whose organisms are measured if no model is named."""
        return self.organisms

    @abstractmethod
    def stages(self, source: PromptSource) -> Sequence[Stage]:
        """The stages measured for every model."""

    @abstractmethod
    def report(self, folder: StudyFolder) -> "Report":
        """Tables and figures from the study's results on disk."""


def find_study(name: str) -> type[Study]:
    """The study with this name.

    Raises:
        UserError: no such study is installed, or it cannot be loaded.
    """
    study: type[Study] = load_plugin(STUDIES, "study", name, base=Study)
    return study


@dataclass(frozen=True, kw_only=True)
class StudyPlan(Plan):
    """The plan of a study: one run folder per stage, and a record of the whole."""

    study: str
    """Name of the study."""
    options: Mapping[str, object]
    """Options from which the stages were made."""
    made: list[Path] = field(default_factory=list)
    """The folders made for the study, innermost first; none if its record was there."""

    @classmethod
    def of(cls, study: Study, source: PromptSource, *, folder: Path, **plan: Any) -> "StudyPlan":
        """The plan of a study; models of earlier calls stay in it.

        Raises:
            UserError: the data cannot be read.
        """
        pairs = source.pairs(study.default_limit)
        chosen: dict[str, object] = {"limit": pairs, "seed": source.seed, "data": source.data}
        if source.template:
            chosen["template"] = list(source.template)
        return cls(
            folder=folder,
            stages={folder / stage.name: stage for stage in study.stages(source)},
            study=study.name,
            options={**chosen, **study.as_json()},
            **plan,
        )

    def open(self, *, joins: bool = False) -> list[Run]:
        """Take the study's folder and those of its stages.

        Raises:
            UserError: a folder holds something else.
        """
        if joins:
            return super().open(joins=True)
        made = take_folder(self.folder, RECORD)
        stages = [stage.name for stage in self.stages.values()]
        new = {"options": dict(self.options), "stages": stages}
        for folder, stage in self.stages.items():
            check_free(folder, run_identity(stage.prompts, stage.spec))
        with locked(self.folder, RECORD_LOCK):
            earlier = self._read()
            if earlier is None:
                self.made.extend(made)
                earlier = StudyRecord.model_validate(
                    {**new, "study": self.study, "models": [], "history": []}
                )
            self._check_same(earlier)
            models = list(dict.fromkeys([*earlier.models, *self.models]))
            self._write(updated(earlier, {**new, "models": models}))
        return super().open()

    def note(self, runs: Sequence[Run]) -> None:
        """Note the call in the history of the study and of its runs."""
        with locked(self.folder, RECORD_LOCK):
            record = self._read()
            if record is not None:
                history = [*record.history, self.this_call()]
                self._write(updated(record, {"history": history, "finished": None}))
        super().note(runs)

    def withdraw(self, runs: Sequence[Run]) -> None:
        """Leave no trace of a call that has failed before it measured anything in new folders."""
        super().withdraw(runs)
        there = [name for name in names_in(self.folder) if not name.startswith(".")]
        with suppress(OSError):
            if self.made and there == [RECORD]:
                remove_plain(self.folder, [RECORD])  # ours: it was written into a new folder
            for folder in self.made:
                folder.rmdir()

    def finish(self, runs: Sequence[Run]) -> None:
        """Merge the tables of the runs, and note the end of the study."""
        for run in runs:
            with concluding(run.folder):
                pass
        with locked(self.folder, RECORD_LOCK):
            record = self._read()
            if record is not None and record.finished is None:
                history = [self._ended(call) for call in record.history]
                self._write(updated(record, {"history": history, "finished": now()}))

    def _ended(self, call: Call) -> Call:
        if call.id != self.call:
            return call
        peak = peak_of_workers(self.folder, call.id)
        return updated(call, {"finished": now(), "peak_memory_bytes": peak})

    def _check_same(self, earlier: StudyRecord) -> None:
        """Check that the folder holds this study, perhaps with fewer pairs.

        Raises:
            UserError: the folder holds another study.
        """
        # The path of the data may change; whether it is the same data is checked by the stages.
        before, now = (_without(o, "limit", "data") for o in (earlier.options, self.options))
        if earlier.study != self.study or before != now or _shrinks(earlier.options, self.options):
            raise UserError(
                f"{self.folder} belongs to a different study: {earlier.study} with "
                f"{earlier.options}, this one is {self.study} with {dict(self.options)}; repeat "
                "that study's options (--limit may grow), or give another --out"
            )

    def _read(self) -> StudyRecord | None:
        return read_record(inside(self.folder, RECORD), StudyRecord)

    def _write(self, record: StudyRecord) -> None:
        if record != self._read():
            write_record(self.folder / RECORD, record)


def _without(options: Mapping[str, object], *names: str) -> dict[str, object]:
    return {name: value for name, value in options.items() if name not in names}


def _shrinks(earlier: Mapping[str, object], now: Mapping[str, object]) -> bool:
    """Whether the limit has become smaller; None means all."""
    before, limit = (
        float("inf") if options.get("limit") is None else options["limit"]
        for options in (earlier, now)
    )
    return (
        not (isinstance(before, int | float) and isinstance(limit, int | float)) or limit < before
    )
