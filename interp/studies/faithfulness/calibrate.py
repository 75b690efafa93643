"""`python -m interp.studies.faithfulness.calibrate DIR`: make the packaged calibration file.

DIR is a finished study of several organisms. A map says how often the segment of such a share is
the one that was made to decide or, where a card does not say, has the larger Shapley value.
Printed is how well each organism is predicted by the map of the others; with `--sealed` the maps
are also tried on organisms that they have not seen. The error of a map is to be read next to its
floor: what it would be if every probability were right.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from interp.analysis.faithfulness.calibrated import (
    FILE,
    Calibration,
    fitted,
    held_out_table,
    sealed_table,
)
from interp.analysis.faithfulness.trials import trials_of
from interp.errors import UserError
from interp.files import write_whole
from interp.report.console import print_table
from interp.studies.faithfulness.results import check_measured, shares_of, tables_of
from interp.studies.faithfulness.study import EFFECTS
from interp.studies.folder import StudyFolder


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit the maps and write the file; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m interp.studies.faithfulness.calibrate")
    parser.add_argument("folder", type=Path, metavar="DIR", help="a study by interp faithfulness")
    parser.add_argument(
        "--out", type=Path, default=FILE, metavar="FILE", help="default: the packaged file"
    )
    parser.add_argument(
        "--sealed", type=Path, metavar="DIR", help="a study of others, of which a table is printed"
    )
    parsed = parser.parse_args(arguments)
    try:
        folder = StudyFolder.read(parsed.folder)
        maps = calibrated(folder)
        print_table(held_out_table(_shares(folder)), title="Each organism by the map of the others")
        if parsed.sealed is not None:
            table = sealed_table(maps, _shares(StudyFolder.read(parsed.sealed)))
            print_table(table, title="Calibration of organisms that the maps have not seen")
        text = f"{maps.model_dump_json(indent=1)}\n"
        write_whole(parsed.out, partial(Path.write_text, data=text, encoding="utf-8"))
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def calibrated(folder: StudyFolder) -> Calibration:
    """The maps of a study's methods.

    Raises:
        UserError: too few organisms, or a system that compares no two segments.
    """
    check_measured(folder)
    run = folder.runs[EFFECTS].record.run
    if run.compared is None:
        raise UserError(f"the system {run.system} compares no two segments to be calibrated")
    return fitted(_shares(folder), system=run.system, segments=run.compared)


def _shares(folder: StudyFolder) -> pd.DataFrame:
    models = folder.record.models
    shares = [shares_of(model, trials_of(tables_of(folder, model))) for model in models]
    return pd.concat(shares, ignore_index=True)


if __name__ == "__main__":
    sys.exit(main())
