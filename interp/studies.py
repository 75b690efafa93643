"""Studies: several measurements of the same models, told in one report; found by entry point.

1. Find the study and its stages: prompts, and what is measured of them.
2. Carry out the work (`interp.runs`): each stage is a run folder, so that an interrupted study goes
   on where it stopped.
3. Report: the study turns what lies on disk into tables and figures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from interp.errors import UserError, unknown
from interp.plugins import STUDIES, plugins
from interp.report.page import Report
from interp.runs.folder import RunFolder
from interp.runs.record import beginning, ending, read_record, write_record
from interp.runs.run import Run, take_folder
from interp.runs.work import Stage, Work
from interp.runs.workers import peak_of_workers

RECORD = "study.json"


@dataclass(frozen=True)
class StudyFolder:
    """What a study has left on disk, whether it is finished or not."""

    folder: Path
    record: dict[str, Any]
    """What study.json says."""
    runs: Mapping[str, RunFolder]
    """The stages that have begun, by name."""

    @classmethod
    def read(cls, folder: Path) -> "StudyFolder":
        """The study in a folder.

        Raises:
            UserError: no study there, or models that were measured on different data.
        """
        record = read_record(folder / RECORD, ("study", "stages", "models"))
        if record is None:
            raise UserError(f"{folder} holds no study (it has no {RECORD})")
        begun = [stage for stage in record["stages"] if (folder / stage).is_dir()]
        return cls(folder, record, {stage: RunFolder.read(folder / stage) for stage in begun})

    def problems(self) -> list[str]:
        """What is missing, a line each."""
        lines = []
        for stage in self.record["stages"]:
            run = self.runs.get(stage)
            for model in self.record["models"]:
                if run is None or run.model_record(model) is None:
                    lines.append(f"{stage}: {model} was not begun")
                elif model in run.missing():
                    shards = run.missing()[model]
                    lines.append(f"{stage}: {model} lacks the shards {', '.join(shards)}")
        return lines


@runtime_checkable
class Study(Protocol):
    """The measurements of a paper or a question, and the report on them."""

    default_limit: int
    """Pairs that are taken unless told otherwise."""

    organisms: str | None
    """Without any model named, the packaged organisms for this system are measured; all if None."""

    def stages(self, *, limit: int | None, seed: int, data: str | None) -> Sequence[Stage]:
        """What is measured of every model."""

    def report(self, folder: StudyFolder) -> Report:
        """Tables and figures from what the study has on disk."""


def find_study(name: str) -> Study:
    """The study of that name.

    Raises:
        UserError: no such study is installed.
    """
    points = plugins(STUDIES)
    if name not in points:
        raise UserError(unknown("study", name, points))
    study: Study = points[name].load()
    return study


@dataclass(frozen=True, kw_only=True)
class StudyWork(Work):
    """The work of a study."""

    study: str
    """Its name."""
    options: Mapping[str, object]
    """What its stages were made with."""

    def open(self) -> list[Run]:
        """Take the study's folder and those of its stages.

        Raises:
            UserError: a folder that holds something else.
        """
        take_folder(self.folder, RECORD)
        earlier = read_record(self.folder / RECORD, ("study", "options", "models"))
        options = dict(self.options)
        if earlier is not None and (earlier["study"], earlier["options"]) != (self.study, options):
            raise UserError(
                f"{self.folder} belongs to a different study: {earlier['study']} with "
                f"{earlier['options']}, this one is {self.study} with {options}; repeat that "
                "study's options, or give another --out"
            )
        known = earlier["models"] if earlier else []
        record = {
            "study": self.study,
            "options": options,
            "stages": [stage.name for stage in self.stages.values()],
            "models": list(dict.fromkeys([*known, *self.models])),
            **beginning(self.command),
        }
        write_record(self.folder / RECORD, record)
        return super().open()

    def finish(self, runs: Sequence[Run]) -> None:
        """Note the end of the study and of its runs in their records."""
        for run in runs:
            run.finish({})
        record = read_record(self.folder / RECORD, ("study",)) or {}
        write_record(self.folder / RECORD, {**record, **ending(peak_of_workers(self.folder))})


def study_work(
    name: str,
    folder: Path,
    *,
    limit: int | None,
    seed: int,
    data: str | None,
    **work: Any,
) -> StudyWork:
    """What a study measures.

    Args:
        name: name of the study.
        folder: where its runs and its record go.
        limit: pairs to take; all if None.
        seed: decides data and selection.
        data: published data in place of generated.
        work: models, load and more, as `Work` has them; models of earlier calls stay in the study.

    Raises:
        UserError: an unknown study, or data that cannot be read.
    """
    stages = find_study(name).stages(limit=limit, seed=seed, data=data)
    return StudyWork(
        folder=folder,
        stages={folder / stage.name: stage for stage in stages},
        study=name,
        options={"limit": limit, "seed": seed, "data": data},
        **work,
    )
