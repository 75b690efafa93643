"""`python -m interp methods`: the attribution methods, what each computes and what it costs."""

import argparse
import sys

from interp.attribution.registry import DEFAULT_METHODS, Method, find_method, method_names

HELP = "list the attribution methods with formula, paper, sign and cost"

EXAMPLES = ("methods",)

SYMBOLS = (
    "f is the target of `attribute --target`, e_i the embedding of token i, e the prompt, b the\n"
    "baseline, A the attention of the last token, n the number of tokens.\n"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Take no options."""


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    sys.stdout.write(SYMBOLS)
    for name in method_names():
        sys.stdout.write("\n" + _described(find_method(name)))


def _described(method: Method) -> str:
    default = " (default)" if method.name in DEFAULT_METHODS else ""
    lines = {
        "": method.summary,
        "formula": method.formula,
        "paper": method.source,
        "sign": method.sign,
        "cost": method.cost,
    }
    rows = [f"  {label:8}{text}" if label else f"  {text}" for label, text in lines.items()]
    return "\n".join([f"{method.name}{default}", *rows]) + "\n"
