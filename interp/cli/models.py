"""`python -m interp models`: the packaged organisms, with planted and measured values."""

import argparse

HELP = "list the packaged organisms with what was planted and what was measured"

EXAMPLES = ("models",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Take no options."""


def run(arguments: argparse.Namespace) -> None:
    """Print one table for each system that organisms were trained on."""
    import pandas as pd

    from interp.models.organisms import organism_card, organism_layers, organism_names
    from interp.prompts.systems import base_system
    from interp.report.console import print_table

    cards = {name: organism_card(name) for name in organism_names()}
    for trained in sorted({card["system"] for card in cards.values()}):
        system = base_system(trained)
        rows = [
            {
                "model": name,
                "layers": organism_layers(name),
                **({} if system is None else system.organism_row(card)),
            }
            for name, card in cards.items()
            if card["system"] == trained
        ]
        print_table(
            pd.DataFrame(rows),
            title=f"Packaged organisms for {trained}: what was planted | what was measured",
        )
