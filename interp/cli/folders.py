"""The run folders behind a folder that a command wrote: its own, or those of a study's stages."""

from pathlib import Path

from interp.errors import UserError
from interp.runs import folder as runs
from interp.runs.folder import RunFolder


def runs_in(folder: Path) -> dict[str, RunFolder]:
    """The runs in a folder that have begun, by name.

    Raises:
        UserError: the folder holds neither a run nor a study.
    """
    from interp import studies

    if (folder / studies.RECORD).exists():
        return dict(studies.StudyFolder.read(folder).runs)
    if (folder / runs.RECORD).exists():
        run = RunFolder.read(folder)
        return {run.record["run"]["measurement"]: run}
    raise UserError(
        f"{folder} holds neither a run nor a study ({runs.RECORD}, {studies.RECORD}); "
        "give a folder that a command of interp wrote"
    )
