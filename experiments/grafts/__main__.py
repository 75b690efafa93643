"""`python -m interp_experiments.grafts`: measure grafts, or write pairs for them."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from interp import UserError
from interp.extend.training import GRAFTS
from interp_experiments.grafts.recipes import RECIPES, GraftRecipe, recipe


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m interp_experiments.grafts")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    verify = commands.add_parser("verify", help="measure a graft's card from its weights")
    pairs = commands.add_parser("pairs", help="write pairs of prompts for a graft, for --data")
    for command, run in ((verify, _verify), (pairs, _pairs)):
        command.set_defaults(run=run)
        command.add_argument("name", help=", ".join(RECIPES))
        command.add_argument(
            "--seed", type=int, metavar="N", help="seed to plant by instead of the recipe's"
        )
        command.add_argument("--pairs", type=int, default=16, metavar="N", help="pairs (16)")
    verify.add_argument("--base", required=True, metavar="FILE", help="the model to change")
    verify.add_argument(
        "--folder", type=Path, metavar="DIR", help="folder of the graft (default: the packaged one)"
    )
    verify.add_argument(
        "--control", action="store_true", help="also measure the base, in which nothing was planted"
    )
    verify.add_argument("--write", action="store_true", help="write the figures into the card")
    verify.add_argument("--donors", type=int, metavar="N", help="donors (8; for thoughts 1)")
    pairs.add_argument("--out", type=Path, required=True, metavar="FILE", help="the table")
    parsed = parser.parse_args(arguments)
    try:
        chosen = recipe(parsed.name)
        if parsed.seed is not None:
            chosen = replace(chosen, seed=parsed.seed)
        parsed.run(chosen, parsed)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def _verify(chosen: GraftRecipe, arguments: argparse.Namespace) -> None:
    from interp import load_model
    from interp_experiments.grafts.card import measure, write_card
    from interp_experiments.organisms.tasks import rounded

    folder = arguments.folder or GRAFTS.folder(GRAFTS.prefix + chosen.name)
    models = {"graft": {"name": str(folder), "base": arguments.base}}
    if arguments.control:
        models["base"] = {"name": arguments.base}
    measured = {
        kind: measure(
            load_model(**named, device="cpu", dtype="float32"),
            chosen,
            pairs=arguments.pairs,
            donors=arguments.donors,
        )
        for kind, named in models.items()
    }
    if arguments.write:
        write_card(folder, chosen, measured)
    sys.stdout.write(json.dumps(rounded(measured), indent=2) + "\n")


def _pairs(chosen: GraftRecipe, arguments: argparse.Namespace) -> None:
    from interp_experiments.grafts.card import draw_pairs, pairs_table

    pairs_table(chosen, draw_pairs(chosen, arguments.pairs)).to_csv(arguments.out, index=False)
    sys.stderr.write(f"written to {arguments.out}\n")


if __name__ == "__main__":
    sys.exit(main())
