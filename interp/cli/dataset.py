"""`python -m interp dataset SYSTEM --out FILE`: write a generated data set."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from interp.cli import values
from interp.errors import UserError
from interp.files import write_whole
from interp.plugins import SYSTEMS, plugins

if TYPE_CHECKING:
    import pandas as pd

HELP = "write a system's generated data set as Parquet, CSV or JSONL"

EXAMPLES = (
    "dataset rulebreakers --out rulebreakers.parquet",
    "dataset logical-forms --seed 1 --out forms.csv",
)

_WRITERS: dict[str, Callable[["pd.DataFrame", Path], object]] = {
    ".parquet": lambda frame, path: frame.to_parquet(path, index=False),
    ".csv": lambda frame, path: frame.to_csv(path, index=False, lineterminator="\n"),
    ".jsonl": lambda frame, path: frame.to_json(
        path, orient="records", lines=True, force_ascii=False
    ),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "system",
        type=values.one_of("system", plugins(SYSTEMS)),
        metavar="SYSTEM",
        help="name of the system, such as rulebreakers",
    )
    parser.add_argument(
        "--out",
        type=values.path,
        required=True,
        metavar="FILE",
        help="where to write; the suffix decides the format: .parquet, .csv or .jsonl",
    )
    parser.add_argument(
        "--seed",
        type=values.whole_number(0, values.LARGEST_SEED),
        default=0,
        metavar="N",
        help="seed (default: 0)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.prompts.systems import find_system
    from interp.runs.progress import tell

    file: Path = arguments.out
    if file.suffix not in _WRITERS:
        raise UserError(f"cannot write {file}: expected a name that ends in {', '.join(_WRITERS)}")
    if not file.parent.is_dir():
        raise UserError(f"cannot write {file}: the folder {file.parent} does not exist; make it")
    frame = find_system(arguments.system).dataset(seed=arguments.seed)
    write_whole(file, lambda path: _WRITERS[file.suffix](frame, path))
    tell(f"{len(frame):,} rows written to {file}")
