"""`python -m interp_experiments.organisms`: train or measure organisms, or write their READMEs."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from interp import UserError
from interp.extend.training import PREFIX, organism_folder
from interp_experiments.organisms.recipes import RECIPES, recipe

_OPTIONS: dict[str, dict[str, Any]] = {
    "--device": {"default": "cpu", "help": "cpu or cuda (default: cpu)"},
    "--out": {
        "type": Path,
        "metavar": "DIR",
        "help": "output folder; rerun the same command to resume (default: organisms/NAME)",
    },
    "--seed": {
        "type": int,
        "metavar": "N",
        "help": "seed to use instead of the recipe's, to plant new properties",
    },
    "--folder": {
        "type": Path,
        "metavar": "DIR",
        "help": "folder of the organism (default: the packaged organism's)",
    },
    "--pairs": {
        "type": int,
        "metavar": "N",
        "help": "number of prompt pairs to measure (default: depends on the organism)",
    },
    "--write": {"action": "store_true", "help": "write the measured figures into the card"},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m interp_experiments.organisms")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for run, told, options in (
        (_train, "train an organism from its recipe", ("--device", "--out", "--seed")),
        (
            _verify,
            "measure an organism's card from its weights",
            ("--device", "--folder", "--pairs", "--write"),
        ),
        (_card, "write an organism's README.md from its card.json", ("--folder",)),
    ):
        command = commands.add_parser(run.__name__[1:], help=told)
        command.set_defaults(run=run)
        command.add_argument("name", help=", ".join(RECIPES))
        for option in options:
            command.add_argument(option, **_OPTIONS[option])
    parsed = parser.parse_args(arguments)
    try:
        parsed.run(parsed)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; rerun the same command to resume from the last checkpoint\n")
        return 130
    return 0


def _train(arguments: argparse.Namespace) -> None:
    from interp_experiments.organisms.train import train

    folder = arguments.out or Path("organisms") / arguments.name
    chosen = recipe(arguments.name)
    if arguments.seed is not None:
        chosen = replace(chosen, seed=arguments.seed)
    folder.mkdir(parents=True, exist_ok=True)
    train(chosen, folder, device=arguments.device)
    sys.stderr.write(f"trained organism in {folder}\n")


def _verify(arguments: argparse.Namespace) -> None:
    from interp import load_model
    from interp_experiments.organisms.tasks import measure_card

    chosen = recipe(arguments.name)
    folder = arguments.folder or organism_folder(PREFIX + chosen.name)
    model = load_model(str(folder), device=arguments.device, dtype="float32")
    figures = measure_card(folder, chosen, model, pairs=arguments.pairs, write=arguments.write)
    sys.stdout.write(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")


def _card(arguments: argparse.Namespace) -> None:
    from interp_experiments.organisms.tasks import write_readme

    folder = arguments.folder or organism_folder(PREFIX + recipe(arguments.name).name)
    if not (folder / "card.json").is_file():
        raise UserError(f"{folder} holds no card.json; expected the folder of an organism")
    write_readme(folder)
    sys.stdout.write(f"written to {folder / 'README.md'}\n")


if __name__ == "__main__":
    sys.exit(main())
