"""`python -m interp report DIR`: tables, figures and one HTML page from what lies in a folder."""

import argparse
from pathlib import Path

from interp.errors import UserError

HELP = "write tables, figures and one HTML page from a folder of results, finished or not"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="what a command wrote as --out")


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp import studies
    from interp.report.of_patching import report_of_patching
    from interp.report.of_run import report_of_run
    from interp.report.page import write_report
    from interp.runs import folder as runs
    from interp.runs.progress import tell

    folder: Path = arguments.folder
    if (folder / studies.RECORD).exists():
        write_study_report(folder)
    elif (folder / runs.RECORD).exists():
        found = runs.RunFolder.read(folder)
        report_of = report_of_patching if "patches" in found.tables() else report_of_run
        file = write_report(report_of(found), folder)
        tell(f"report written to {file}")
    else:
        raise UserError(
            f"{folder} holds neither a run nor a study ({runs.RECORD}, {studies.RECORD}); "
            "give a folder that a command of interp wrote"
        )


def write_study_report(folder: Path) -> None:
    """Write the report of a study into its folder."""
    from interp.report.page import write_report
    from interp.runs.progress import tell
    from interp.studies import StudyFolder, find_study

    study_folder = StudyFolder.read(folder)
    study = find_study(study_folder.record.study)
    for problem in study_folder.problems():
        tell(f"unfinished: {problem}")
    file = write_report(study.report(study_folder), folder)
    tell(f"report written to {file}")
