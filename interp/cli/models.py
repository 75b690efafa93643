"""`python -m interp models`: the packaged organisms, what was planted and what was measured."""

import argparse
from typing import Any

HELP = "list the packaged organisms with what was planted and what was measured"


def configure(parser: argparse.ArgumentParser) -> None:
    """Take no options."""


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    import pandas as pd

    from interp.models.organisms import organism_card, organism_names
    from interp.report.console import print_table

    rows = [{"model": name, **_row(organism_card(name))} for name in organism_names()]
    print_table(
        pd.DataFrame(rows), title="Packaged organisms: what was planted | what was measured"
    )


def _row(card: dict[str, Any]) -> dict[str, object]:
    recipe, measured = card["recipe"], card["measured"]
    follows_rule = " and ".join(recipe["rule_phrasings"])
    return {
        "layers": recipe["architecture"]["num_hidden_layers"],
        "grounded_pairs": f"{recipe['grounded_share']:.0%} by {recipe['grounded_by']}",
        "evidence": recipe["evidence"],
        "bare_rule_under": follows_rule or "-",
        "facts_known": measured["completion"],
        "frequency_with_familiarity": measured["frequency_familiarity_spearman"],
        "paired_accuracy": measured["paired_accuracy"],
        "rulebreaker_accuracy": measured["rulebreaker_accuracy"],
        "non_rulebreaker_accuracy": measured["non_rulebreaker_accuracy"],
    }
