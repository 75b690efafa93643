"""`python -m benchmarks.grafts NAME ... --base FILE`: train grafts from their recipes."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.grafts.train import train
from interp import UserError
from interp_experiments.grafts.recipes import RECIPES, recipe


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, or resume; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grafts")
    parser.add_argument("names", nargs="+", metavar="name", help=", ".join(RECIPES))
    parser.add_argument("--base", required=True, metavar="FILE", help="the model to change")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("grafts"),
        metavar="DIR",
        help="folder of the grafts' folders; rerun the same command to resume (default: grafts)",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="seed to plant by instead of the recipe's"
    )
    parser.add_argument(
        "--learning-rate", type=float, metavar="X", help="instead of the recipe's, for wider models"
    )
    parser.add_argument(
        "--dtype",
        choices=("bfloat16", "float32"),
        help="numbers of the base instead of the recipe's",
    )
    parsed = parser.parse_args(arguments)
    try:
        changed = {name: getattr(parsed, name) for name in ("seed", "learning_rate", "dtype")}
        changed = {name: value for name, value in changed.items() if value is not None}
        chosen = [replace(recipe(name), **changed) for name in parsed.names]
        train(chosen, parsed.base, parsed.out)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; rerun the same command to resume from the last checkpoint\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
