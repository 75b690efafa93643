"""`python -m interp methods`: the attribution methods, what each computes and what it costs."""

import argparse

HELP = "list the attribution methods with formula, paper, sign and cost"

EXAMPLES = ("methods",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Take no options."""


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    import pandas as pd

    from interp.attribution.registry import DEFAULT_METHODS, find_method, method_names
    from interp.report.console import print_table

    methods = [find_method(name) for name in method_names()]
    rows = [
        {
            "method": method.name,
            "formula": method.formula,
            "paper": method.source,
            "sign": method.sign,
            "cost": method.cost,
        }
        for method in methods
    ]
    print_table(
        pd.DataFrame(rows),
        title="Attribution methods: f is the target, e_i the embedding of token i, b the baseline, "
        f"A attention; by default {' and '.join(DEFAULT_METHODS)}",
    )
