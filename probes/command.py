"""`python -m interp probe familiarity|knowledge|linear`: what a model knows."""

import argparse

from interp.cli.common import add_measuring_options, measure
from interp.cli.parser import Parser
from interp.measurements.spec import Spec
from interp_probes.specs import Familiarity, Knowledge, Residuals

HELP = "ask what a model knows: familiarity with facts, facts it fails, linear probes"

EXAMPLES = (
    "probe familiarity --model organism/llama-shallow",
    "probe linear --limit 120 --positions last_token premise2",
)

_PROBES: dict[str, tuple[type[Spec], str]] = {
    "familiarity": (Familiarity, "probability that a model begins to say each fact"),
    "knowledge": (Knowledge, "facts whose greedy completion does not name the answer"),
    "linear": (Residuals, "whether a prompt's side is linearly readable from the residual stream"),
}


def configure(parser: Parser) -> None:
    """Add the probes, each with its options."""
    probes = parser.add_subparsers(dest="probe", required=True, metavar="PROBE")
    for name, (spec, help_) in _PROBES.items():
        example = f"probe {name} --model organism/llama-shallow organism/gemma2"
        probe = probes.add_parser(name, help=help_, description=help_, examples=(example,))
        # Facts are few: all of them are asked, in the order of the data.
        unused = () if spec is Residuals else ("limit", "seed")
        add_measuring_options(probe, spec, without=unused)


def run(arguments: argparse.Namespace) -> None:
    """Run one probe."""
    from interp.console import echo

    spec, _ = _PROBES[arguments.probe]
    finished, result = measure(arguments, spec)
    for name in result.derived():
        echo(f"written to {finished.folder / name}.csv")
