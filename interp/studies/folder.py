"""A study on disk: its record, and the run folders of its stages."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from interp.errors import UserError, unknown
from interp.files import checksum, inside, is_folder, locked, names_in, open_plain
from interp.runs.folder import RECORD_LOCK, RunFolder, change_in, problems
from interp.runs.records import REPORT_FILE, StudyRecord, read_record, updated, write_record

if TYPE_CHECKING:
    import pandas as pd

RECORD = "study.json"


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

    def places(self) -> dict[str, str]:
        """Where each model on record was found, by name, as in `RunFolder.places`."""
        return {name: place for run in self.runs.values() for name, place in run.places().items()}

    def table(self, name: str) -> "pd.DataFrame":
        """A table of the study's report, from `tables/NAME.csv`.

        Raises:
            UserError: the report has no such table, or has not been written yet.
        """
        import pandas as pd

        tables = inside(self.folder, "tables")
        known = [file.removesuffix(".csv") for file in names_in(tables)]
        if name not in known:
            raise UserError(unknown("table", name, known))
        with open_plain(inside(tables, f"{name}.csv")) as file:
            return pd.read_csv(file)

    def problems(self) -> list[str]:
        """One line for each missing measurement."""
        lines = []
        for stage in self.record.stages:
            run = self.runs.get(stage)
            found = ["not begun"] if run is None else run.unfinished(self.record.models)
            lines += [f"{stage}: {line}" for line in found]
        return lines

    def faults(self) -> list[str]:
        """One line for each thing that is missing, wrong, or changed since it was written."""
        lines = [] if self.record.stages else ["study.json: the study has no stages"]
        for stage in self.record.stages:
            run = self.runs.get(stage)
            found = ["not begun"] if run is None else problems(run, self.record.models)
            lines += [f"{stage}: {line}" for line in found]
        if not self.record.finished:
            return [*lines, "study.json: the study is not finished"]
        return [*lines, *self._problems_of_report()]

    def _problems_of_report(self) -> Iterator[str]:
        if not self.record.report:
            yield f"the report has not been written; run interp report {self.folder}"
        for name, expected in self.record.report.items():
            if problem := change_in(inside(self.folder, *name.split("/")), name, expected):
                yield problem

    def provenance(self) -> dict[str, object]:
        """The record as shown on the page, without checksums of the page's own files."""
        return self.record.model_dump(mode="json", exclude={"report"})

    def note_report(self) -> None:
        """Add the report's files to the record, with checksums."""
        places = [("report.html",)] + [
            (part, name)
            for part in ("tables", "figures")
            for name in names_in(inside(self.folder, part))
        ]
        made = {
            name: checksum(inside(self.folder, *place))
            for place in places
            if re.fullmatch(REPORT_FILE, name := "/".join(place))
        }
        with locked(self.folder, RECORD_LOCK):
            there = read_record(inside(self.folder, RECORD), StudyRecord)
            if there is not None and there.report != made:
                write_record(inside(self.folder, RECORD), updated(there, {"report": made}))
