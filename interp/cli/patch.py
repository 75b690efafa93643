"""`python -m interp patch`: its effects, and on request attribution scores next to them."""

import argparse
from pathlib import Path

from interp import texts
from interp.cli.measure import Measure
from interp.cli.parser import Parser
from interp.measurements.specs import Patch


class PatchCommand(Measure):
    """The command of patching, which also compares effects with scores."""

    def configure(self, parser: Parser) -> None:
        """Add the options of the command."""
        super().configure(parser)
        parser.add_argument(
            "--attributions",
            type=texts.path,
            metavar="DIR",
            help="folder of a run of attribute on the same prompts, to compare scores with effects",
        )

    def conclude(self, arguments: argparse.Namespace, folder: Path) -> None:
        """Print effects next to attribution scores, and write the tables and figures of both."""
        if arguments.attributions is None:
            return
        from interp.jobs import write_results
        from interp.report.console import print_table
        from interp.report.results_of_patches import scores_beside_effects
        from interp.runs.conclusion import concluding
        from interp.runs.folder import RunFolder

        with concluding(folder) as conclusion:
            results = scores_beside_effects(conclusion.run, RunFolder.read(arguments.attributions))
            write_results(conclusion.run, results)
        for title, table in results.shown:
            print_table(table, title=title)


COMMAND = PatchCommand(Patch)
