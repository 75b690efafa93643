"""`python -m interp report DIR`: tables, figures and one HTML page from the files of a folder."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from interp import texts

if TYPE_CHECKING:
    from interp.report.page import Report

HELP = "write tables, figures and one HTML page from a folder of results, finished or not"

EXAMPLES = (
    "report runs/study",
    "report runs/study --out study.html",
    "report runs/study --embed --out mail.html",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "folder",
        type=texts.path,
        metavar="DIR",
        help="a run or a study: what a command wrote",
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
        UserError: the folder has nothing to report, or a file cannot be written.
    """
    write(arguments.folder, arguments.out, embed=arguments.embed)


def write(folder: Path, page: Path | None = None, *, embed: bool = False) -> "Report":
    """Write the report on a run or a study, by default into its own folder; returns the report."""
    from interp.cli.folders import study_in
    from interp.console import echo
    from interp.report.write import PAGE, write_report

    page = page or folder / PAGE
    report = _report(folder)
    file = write_report(report, page.parent, page=page.name, embed=embed)
    study = study_in(folder)
    if study is not None and page == folder / PAGE:
        # So that `validate` notices changed files.
        study.note_report()
    echo(f"report written to {file}")
    return report


def _report(folder: Path) -> "Report":
    """The report on the study in a folder, or else on the run there.

    Raises:
        UserError: the folder holds neither a study nor a run, or nothing was measured yet.
    """
    from interp.cli.folders import runs_in, study_in
    from interp.console import echo
    from interp.measurements.spec import find_spec
    from interp.results.result import result_class
    from interp.studies.study import find_study

    study = study_in(folder)
    if study is None:
        ((measurement, run),) = runs_in(folder).items()
        return result_class(find_spec(measurement)).of(run).report()
    for problem in study.problems():
        echo(f"unfinished: {problem}")
    return find_study(study.record.study)().report(study)
