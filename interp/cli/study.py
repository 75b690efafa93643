"""Commands of studies and reports: `run STUDY`, `faithfulness`, and `report DIR`."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from interp import texts
from interp.cli.fields import Choice, Folder, OptionsCommand
from interp.cli.measure import add_measuring_options, job_of
from interp.cli.parser import Parser
from interp.console import counted, echo
from interp.options import FromText
from interp.plugins import STUDIES

if TYPE_CHECKING:
    from interp.report.page import Report as Page

STUDY = Choice("study", "study", STUDIES)


class StudyCommand:
    """`python -m interp run STUDY`: all measurements of a study, its tables and its report.

    A command for one study, such as `python -m interp faithfulness`, has its name.
    """

    RESUMES = True

    def __init__(self, help_: str, examples: Sequence[str], study: str = "") -> None:
        self.HELP, self.EXAMPLES, self._study = help_, examples, study

    def configure(self, parser: Parser) -> None:
        """Add the command's options, including those of the study."""
        from interp.studies.study import find_study

        if not self._study:
            STUDY.add_to(parser)
        study = find_study(self._study) if self._study else STUDY.options(parser)
        # The name of the study may not be known yet.
        without = () if getattr(study, "any_system", False) else ("system",)
        add_measuring_options(parser, study, without=without)

    def run(self, arguments: argparse.Namespace) -> None:
        """Run a study, write its report, and print its answer if it has one."""
        from interp.studies.study import find_study

        study = find_study(self._study or STUDY.name(arguments))
        # Only now, so that a mistake in the name is told at once.
        from interp.jobs import finish_study
        from interp.report.console import print_cautions, print_sentences

        job, execution = job_of(arguments, study)
        pairs = job.prompts.pairs(study.default_limit)
        taken = "all pairs" if pairs is None else f"at most {counted(pairs, 'pair')}"
        echo(f"{study.name}: {taken}")
        plan, runs = job.run(execution, command=arguments.command_line)
        echo("everything is measured; writing the tables and the report")
        finish_study(plan, runs)
        report = _write(plan.folder)
        if report.glance is not None:
            print_cautions(caution.said for caution in report.glance.cautions)
            print_sentences(report.glance.sentences)


RUN = StudyCommand(
    "run a whole study: measure all models, create all tables and figures, and write one report",
    (
        "run rulebreakers --limit 60 --out runs/study",
        "run faithfulness --model org/model-a org/model-b --out runs/faith",
        "run --config study.yaml",
    ),
)

FAITHFULNESS = StudyCommand(
    "rank attribution methods by agreement with the effects of segments, and write one report",
    (
        "faithfulness --model organism/phi3-shallow organism/phi3-deep --out runs/faith",
        "faithfulness --model org/model --system rulebreakers --methods all --limit 24",
    ),
    "faithfulness",
)


class ReportCommand(OptionsCommand):
    """Write tables, figures and one HTML page from a folder of results, finished or not."""

    EXAMPLES = (
        "report runs/study",
        "report runs/study --out study.html",
        "report runs/study --embed --out mail.html",
    )

    folder: Folder
    """folder of a run or a study"""
    out: Annotated[Path | None, FromText(texts.path, "FILE")] = None
    """the page; tables/ and figures/ are written next to it (default: DIR/report.html)"""
    embed: bool = False
    """write a single file that can be mailed, with tables and figures embedded"""

    def _execute(self) -> None:
        from interp.runs.folder import evaluating

        with evaluating(self.folder):
            _write(self.folder, self.out, embed=self.embed)


def _write(folder: Path, page: Path | None = None, *, embed: bool = False) -> "Page":
    """Write the report on a run or a study, by default into its own folder, and return it."""
    from interp.cli.folders import holder
    from interp.files import check_replaceable
    from interp.report.write import PAGE, files_of, write_report

    if page is not None:
        check_replaceable(page)
    page = page or folder / PAGE
    report = _report(folder)
    file = write_report(report, page.parent, page=page.name, embed=embed)
    place = page.parent.resolve()
    if place.is_relative_to(folder.resolve()):  # so that `validate` notices when these change
        written = files_of(report, page.parent, page=page.name, embed=embed)
        within = place.relative_to(folder.resolve())
        holder(folder).note_report([str(within / name) for name in written])
    echo(f"report written to {file}")
    return report


def _report(folder: Path) -> "Page":
    """The report on the study in a folder or, if it holds no study, on the run in it."""
    from interp.measuring.spec import spec_named
    from interp.results.result import result_class
    from interp.studies.folder import runs_in, study_in
    from interp.studies.study import find_study

    study = study_in(folder)
    if study is None:
        ((measurement, run),) = runs_in(folder).items()
        return result_class(spec_named(measurement)).of(run).report()
    for problem in study.problems():
        echo(f"unfinished: {problem}")
    return find_study(study.record.study)().report(study)
