"""A study on disk: its record, and the run folders of its stages."""

import hashlib
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from interp.errors import UserError, unknown
from interp.files import inside, is_folder, locked, names_in, read_bytes, reading
from interp.models.names import absolute
from interp.runs.folder import RECORD as RUN_RECORD
from interp.runs.folder import RECORD_LOCK, RunFolder, problems
from interp.runs.records import StudyRecord, read_record, updated, write_record
from interp.runs.written import faults, noted

if TYPE_CHECKING:
    import pandas as pd

RECORD = StudyRecord.FILE


@dataclass(frozen=True)
class StudyFolder:
    """A study on disk, finished or not."""

    folder: Path
    record: StudyRecord
    """Content of study.json."""
    runs: Mapping[str, RunFolder]
    """The stages begun so far, by name."""

    @classmethod
    def read(cls, folder: Path) -> "StudyFolder":
        """The study in a folder.

        Raises:
            UserError: the folder contains no study, or its record is damaged.
        """
        record = read_record(inside(folder, RECORD), StudyRecord)
        if record is None:
            raise UserError(f"{folder} holds no study (it has no {RECORD})")
        begun = [stage for stage in record.stages if is_folder(inside(folder, stage))]
        return cls(folder, record, {stage: RunFolder.read(folder / stage) for stage in begun})

    def has(self, stage: str) -> bool:
        """Whether anything of a stage has been measured."""
        return stage in self.runs and bool(self.runs[stage].tables())

    def require(self, *stages: str) -> None:
        """Check that something of each stage has been measured."""
        for stage in stages:
            if not self.has(stage):
                raise UserError(
                    f"{self.folder} has no results of the stage {stage!r} yet; rerun the study's "
                    "command to resume"
                )

    def places(self) -> dict[str, str]:
        """Where each model on record was found, by name, as in `RunFolder.places`."""
        return {name: place for run in self.runs.values() for name, place in run.places().items()}

    def table(self, name: str) -> "pd.DataFrame":
        """A table of the study's report, from `tables/NAME.csv`.

        Raises:
            UserError: the report has no such table, or has not been written yet, or the table has
                changed since then.
        """
        import pandas as pd

        tables = inside(self.folder, "tables")
        names = [file.removesuffix(".csv") for file in names_in(tables) if file.endswith(".csv")]
        if name not in names:
            raise UserError(unknown("table", name, names))
        file = inside(tables, f"{name}.csv")
        content = read_bytes(file)
        digest, report = hashlib.sha256(content).hexdigest(), self.record.report
        if report and report.get(f"tables/{name}.csv") != digest:
            raise UserError(
                f"{file} is not the table that the report wrote; run interp report {self.folder}"
            )
        return pd.read_csv(io.BytesIO(content))

    def problems(self) -> list[str]:
        """One line for each missing measurement."""
        return self._by_stage(RunFolder.unfinished)

    def _by_stage(self, lines: Callable[[RunFolder, Sequence[str]], Iterable[str]]) -> list[str]:
        """The lines about each stage's run and the study's models."""
        return [
            f"{stage}: {line}"
            for stage in self.record.stages
            for run in [self.runs.get(stage)]
            for line in (["not begun"] if run is None else lines(run, self.record.models))
        ]

    def faults(self) -> list[str]:
        """One line for each thing that is missing, wrong, or changed since it was written."""
        lines = [] if self.record.stages else ["study.json: the study has no stages"]
        lines += self._by_stage(problems)
        if not self.record.finished:
            lines.append("study.json: the study is not finished")
        elif not self.record.report:
            lines.append(f"the report has not been written; run interp report {self.folder}")
        return [*lines, *faults(self.folder, self.record)]

    def provenance(self) -> dict[str, object]:
        """The record as shown on the page, without what depends on the page or on workers."""
        return self.record.model_dump(mode="json", exclude={"report", "workers"})

    def note_report(self, names: Iterable[str]) -> None:
        """Record the files of a page that was just written, by path within the folder."""
        change(self.folder, lambda record: {"report": noted(self.folder, record, names)})


def change(folder: Path, fields: Callable[[StudyRecord], Mapping[str, object]]) -> None:
    """Change fields of a study's record, if there is one, while no other process does."""
    file = inside(folder, RECORD)
    with locked(folder, RECORD_LOCK):
        record = read_record(file, StudyRecord)
        if record is not None and (changed := updated(record, fields(record))) != record:
            write_record(file, changed)


ANSWERS = ("answers", "completions")
"""The tables with answers, those that count first."""


def runs_in(folder: Path) -> dict[str, RunFolder]:
    """The runs begun in a folder, by name: one run, or one for each stage of a study.

    Raises:
        UserError: the folder holds neither a run nor a study.
    """
    study = study_in(folder)
    if study is not None:
        return dict(study.runs)
    with reading(folder):
        if (folder / RUN_RECORD).exists():
            run = RunFolder.read(folder)
            return {run.record.run.measurement: run}
    if not folder.exists():
        raise UserError(f"there is no folder {folder}; check its name")
    raise UserError(
        f"{folder} holds neither a run nor a study ({RUN_RECORD}, {RECORD}); "
        "expected a folder written by a command of interp"
    )


def study_in(folder: Path) -> StudyFolder | None:
    """The study in a folder; None if the folder holds no study."""
    with reading(folder):
        is_study = (folder / RECORD).exists()
    return StudyFolder.read(folder) if is_study else None


def answers_run(folder: Path) -> tuple[RunFolder, str]:
    """The run in a folder that has answers, and its table with them.

    Generated and stored texts count if there are no other answers.

    Raises:
        UserError: no run in the folder has answers.
    """
    runs = runs_in(folder).values()
    with_answers = [(run, name) for name in ANSWERS for run in runs if name in run.tables()]
    if not with_answers:
        raise UserError(
            f"{folder} holds no answers; expected a folder of evaluate, attribute, generate or a "
            "study"
        )
    return with_answers[0]


def model_named(run: RunFolder, name: str) -> str | None:
    """The model of a run with this name or place, or this last part of its name; else None."""
    if name in run.models():
        return name
    places = run.places()
    matching = [model for model in run.models() if places[model] == absolute(name)]
    matching = matching or [model for model in run.models() if model.endswith(f"/{name}")]
    return matching[0] if len(matching) == 1 else None
