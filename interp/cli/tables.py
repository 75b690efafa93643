"""`python -m interp tables`: the tables of a run, with the meaning and unit of every column."""

import argparse
import sys

from interp.errors import UserError, unknown

HELP = "describe the tables of a run: columns, units, signs"

EXAMPLES = ("tables", "tables answers patches")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "tables", nargs="*", metavar="TABLE", help="those to describe (default: all)"
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        UserError: no measurement fills the named table.
    """
    from interp.report.dictionary import known_tables, page, sections

    tables = known_tables()
    for name in arguments.tables:
        if name not in tables:
            raise UserError(unknown("table", name, tables))
    chosen = {name: tables[name] for name in arguments.tables}
    sys.stdout.write(sections(chosen) if chosen else page(tables))
