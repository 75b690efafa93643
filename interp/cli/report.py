"""`python -m interp report DIR`: tables, figures and one HTML page from the files of a folder."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from interp import texts
from interp.errors import UserError

if TYPE_CHECKING:
    from interp.report.page import Report

HELP = "write tables, figures and one HTML page from a folder of results, finished or not"

REPORTED = "a study, or a run of attribute, evaluate, generate or patch"
"""What there are reports of."""

EXAMPLES = (
    "report runs/study",
    "report runs/study --out study.html",
    "report runs/study --embed --out mail.html",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "folder", type=texts.path, metavar="DIR", help=f"what a command wrote as --out: {REPORTED}"
    )
    parser.add_argument(
        "--out",
        type=texts.path,
        metavar="FILE",
        help="the page, in a folder that takes tables/ and figures/ too (default: DIR/report.html)",
    )
    parser.add_argument(
        "--embed",
        action="store_true",
        help="write one file alone, which holds tables/ and figures/ and can be mailed",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        UserError: a folder with nothing to report, or a place that cannot be written to.
    """
    write(arguments.folder, arguments.out, embed=arguments.embed)


def write(folder: Path, page: Path | None = None, *, embed: bool = False) -> "Report":
    """Write the report on a run or a study, into its own folder by default; returns it."""
    from interp.console import echo
    from interp.report.write import PAGE, write_report

    page = page or folder / PAGE
    report = _report(folder)
    file = write_report(report, page.parent, page=page.name, embed=embed)
    if page == folder / PAGE:
        _note(folder)
    echo(f"report written to {file}")
    return report


def _note(folder: Path) -> None:
    """Note the report of a study in its record, so that `validate` notices what has changed."""
    from interp.studies import folder as studies

    if (folder / studies.RECORD).exists():
        studies.StudyFolder.read(folder).note_report()


def _report(folder: Path) -> "Report":
    from interp.runs import folder as runs
    from interp.studies import folder as studies

    if (folder / studies.RECORD).exists():
        return _report_of_study(folder)
    if (folder / runs.RECORD).exists():
        return _report_of_run(folder)
    raise UserError(
        f"{folder} holds neither a run nor a study ({runs.RECORD}, {studies.RECORD}); "
        "give a folder that a command of interp wrote"
    )


def _report_of_run(folder: Path) -> "Report":
    from interp.measurements.spec import find_spec
    from interp.results.result import result_class
    from interp.runs.folder import RunFolder

    run = RunFolder.read(folder)
    return result_class(find_spec(run.record.run.measurement)).of(run).report()


def _report_of_study(folder: Path) -> "Report":
    from interp.console import echo
    from interp.studies.folder import StudyFolder
    from interp.studies.plan import find_study

    study_folder = StudyFolder.read(folder)
    study = find_study(study_folder.record.study)()
    for problem in study_folder.problems():
        echo(f"unfinished: {problem}")
    return study.report(study_folder)
