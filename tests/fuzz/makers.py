"""Every target with what makes its cases."""

from tests.fuzz.case import Make
from tests.fuzz.targets import (
    command_lines,
    data_files,
    degenerate,
    model_folders,
    run_folders,
    templates,
    trainings,
)

MAKERS: dict[str, Make] = {
    "command_lines": command_lines.make,
    "data_files": data_files.make,
    "run_folders": run_folders.make,
    "study_folders": run_folders.make_study,
    "model_folders": model_folders.make,
    "templates": templates.make,
    "trainings": trainings.make,
    "degenerate": degenerate.make,
}
"""By target: what makes its cases."""
