"""`python -m interp_experiments.grafts`: train or measure grafts, or write pairs for them."""

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
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    train = commands.add_parser("train", help="train grafts from their recipes")
    verify = commands.add_parser("verify", help="measure a graft's card from its weights")
    pairs = commands.add_parser("pairs", help="write pairs of prompts for a graft, for --data")
    train.add_argument("names", nargs="+", metavar="name", help=", ".join(RECIPES))
    for command in (verify, pairs):
        command.add_argument("name", help=", ".join(RECIPES))
    for command in (train, verify):
        command.add_argument("--base", required=True, metavar="FILE", help="the model to change")
    train.add_argument(
        "--out",
        type=Path,
        default=Path("grafts"),
        metavar="DIR",
        help="folder of the grafts' folders; rerun the same command to resume (default: grafts)",
    )
    for command in (train, verify, pairs):
        command.add_argument(
            "--seed", type=int, metavar="N", help="seed to plant by instead of the recipe's"
        )
    verify.add_argument(
        "--folder", type=Path, metavar="DIR", help="folder of the graft (default: the packaged one)"
    )
    verify.add_argument(
        "--control", action="store_true", help="also measure the base, in which nothing was planted"
    )
    verify.add_argument("--write", action="store_true", help="write the figures into the card")
    for command, default in ((verify, 16), (pairs, 16)):
        command.add_argument("--pairs", type=int, default=default, metavar="N", help="pairs (16)")
    verify.add_argument("--donors", type=int, metavar="N", help="donors (8; for thoughts 1)")
    pairs.add_argument("--out", type=Path, required=True, metavar="FILE", help="the table")
    parsed = parser.parse_args(arguments)
    try:
        {"train": _train, "verify": _verify, "pairs": _pairs}[parsed.command](parsed)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; rerun the same command to resume from the last checkpoint\n")
        return 130
    return 0


def _chosen(name: str, arguments: argparse.Namespace) -> GraftRecipe:
    seed = arguments.seed
    return recipe(name) if seed is None else replace(recipe(name), seed=seed)


def _train(arguments: argparse.Namespace) -> None:
    from interp_experiments.grafts.train import train

    train([_chosen(name, arguments) for name in arguments.names], arguments.base, arguments.out)


def _verify(arguments: argparse.Namespace) -> None:
    from interp import load_model
    from interp_experiments.grafts.card import measure, write_card
    from interp_experiments.organisms.tasks import rounded

    chosen = _chosen(arguments.name, arguments)
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


def _pairs(arguments: argparse.Namespace) -> None:
    from interp_experiments.grafts.card import draw_pairs, pairs_table

    chosen = _chosen(arguments.name, arguments)
    pairs_table(chosen, draw_pairs(chosen, arguments.pairs)).to_csv(arguments.out, index=False)
    sys.stderr.write(f"written to {arguments.out}\n")


if __name__ == "__main__":
    sys.exit(main())
