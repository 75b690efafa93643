"""The runs in a folder that a command wrote: its own, or those of a study's stages."""

from pathlib import Path
from typing import TYPE_CHECKING

from interp.errors import UserError
from interp.files import reading
from interp.runs import folder as runs
from interp.runs.folder import RunFolder

if TYPE_CHECKING:
    from interp.studies.folder import StudyFolder


def runs_in(folder: Path) -> dict[str, RunFolder]:
    """The runs that have begun in a folder, by name.

    Raises:
        UserError: the folder holds neither a run nor a study.
    """
    study = study_in(folder)
    if study is not None:
        return dict(study.runs)
    with reading(folder):
        if (folder / runs.RECORD).exists():
            run = RunFolder.read(folder)
            return {run.record.run.measurement: run}
    from interp.studies import folder as studies

    raise UserError(
        f"{folder} holds neither a run nor a study ({runs.RECORD}, {studies.RECORD}); "
        "give a folder that a command of interp wrote"
    )


def study_in(folder: Path) -> "StudyFolder | None":
    """The study in a folder; None if it holds none.

    Raises:
        UserError: the study's record is damaged.
    """
    from interp.studies import folder as studies

    with reading(folder):
        there = (folder / studies.RECORD).exists()
    return studies.StudyFolder.read(folder) if there else None


def answers_run(folder: Path) -> RunFolder:
    """The run in a folder that has answers.

    Raises:
        UserError: no run in the folder has answers.
    """
    found = [run for run in runs_in(folder).values() if "answers" in run.tables()]
    if not found:
        raise UserError(
            f"{folder} holds no answers; give a folder of evaluate, attribute or a study"
        )
    return found[0]
