"""`python -m interp patch`: effects of patches, and on request attribution scores next to them."""

import argparse
from pathlib import Path

from interp import texts
from interp.cli.measure import Measure
from interp.cli.parser import Parser
from interp.measurements.specs import Patch


class PatchCommand(Measure):
    """The patching command, which also compares effects with scores."""

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
        from interp.report.console import print_items
        from interp.results.attributions import Attributions
        from interp.results.patches import Patches, agreement_items
        from interp.results.result import write_items
        from interp.runs.conclusion import concluding
        from interp.runs.folder import RunFolder

        with concluding(folder) as conclusion:
            attributed = Attributions.of(RunFolder.read(arguments.attributions))
            items = list(agreement_items(Patches.of(conclusion.run), attributed))
            write_items(folder, items)
        print_items(items)


COMMAND = PatchCommand(Patch)
