"""`python -m benchmarks.calibration DIR`: how well shares predict which segment decides.

DIR is a finished study of several organisms. For each method, isotonic regression (pool adjacent
violators) fits a monotone map from a segment's share of the two segments' scores to the probability
that the segment decides. Both segments of a prompt are used, so the map favors neither position;
the second segment has the complementary share. The deciding segment is the planted one or, if a
card names none, the one with the larger Shapley value.

The output says how well each organism is predicted by a map fitted on all other organisms and, with
`--sealed`, how well maps fitted on all organisms of DIR predict further organisms. Compare the
error of a map with its floor, the error that would remain if every probability were right.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

from interp.errors import UserError
from interp.judging import EFFECTS, SCORES
from interp.judging.results import shares_of, tables_of
from interp.judging.trials import trials_of
from interp.report.console import print_table
from interp.studies.folder import StudyFolder

FEWEST = 10
"""Minimum number of prompts for an organism to be held out."""

Shares = Float[np.ndarray, " prompt"]
Decides = Bool[np.ndarray, " prompt"]

BINS = 10
"""Number of equal-width bins for the calibration error."""

DRAWS = 4999
"""Number of times that deciding segments are drawn with the predicted probabilities."""

MOST_KNOTS = 32
"""Number of equal intervals of the share; a map is linear within each."""


@dataclass(frozen=True)
class MonotoneMap:
    """A nondecreasing map that is linear between its knots and constant beyond them."""

    shares: tuple[float, ...]
    """Shares of the score at the knots, rising from 0 to 1."""
    probabilities: tuple[float, ...]

    @classmethod
    def fitted(cls, shares: Shares, decides: Decides) -> "MonotoneMap":
        """The isotonic regression of outcomes on shares, with both segments of each prompt.

        Raises:
            ValueError: there are no prompts.
        """
        x, y = mirrored(shares, decides)
        regression = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(x, y)
        grid = np.linspace(0, 1, MOST_KNOTS + 1)
        found = regression.predict(grid)
        return cls(tuple(np.round(grid, 6).tolist()), tuple(np.round(found, 6).tolist()))

    def __call__(self, shares: Shares) -> Shares:
        """The probability that a segment with this share decides; NaN if the share is NaN."""
        return np.asarray(np.interp(shares, self.shares, self.probabilities))


def mirrored(
    shares: Shares, decides: Decides
) -> tuple[Float[np.ndarray, " segment"], Float[np.ndarray, " segment"]]:
    """The shares of both segments, and whether each decides (1 or 0)."""
    return np.concatenate([shares, 1 - shares]), np.concatenate([decides, ~decides]).astype(float)


def calibration_error(probabilities: Shares, decides: Decides) -> float:
    """The expected calibration error, from 0 to 1 (Naeini et al. 2015); NaN without prompts.

    It is the sum over `BINS` bins of equal width. Each bin adds its share of the prompts times
    |mean probability - share of deciding segments|.
    """
    if not len(probabilities):
        return float("nan")
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, probabilities - decides, minlength=BINS)
    return float(np.abs(gaps).sum() / len(probabilities))


class NoiseFloor(NamedTuple):
    """The calibration error of correct probabilities; NaN without prompts."""

    mean: float
    high: float
    """The 95% quantile: 5% of correct predictors have an error above it."""


def noise_floor(predictions: Sequence[Shares]) -> NoiseFloor:
    """The `calibration_error` of correct probabilities, averaged over groups of prompts.

    For each prompt, the deciding segment is drawn with the predicted probability (consistency
    resampling, Bröcker and Smith 2007, Weather and Forecasting 22).

    Args:
        predictions: for each group, such as an organism, the probabilities of its prompts.
    """
    chance = np.random.default_rng(0)
    known = [sample for sample in predictions if len(sample)]
    if not known:
        return NoiseFloor(float("nan"), float("nan"))
    errors = np.mean([_errors_if_right(sample, chance) for sample in known], axis=0)
    return NoiseFloor(float(errors.mean()), float(np.quantile(errors, 0.95)))


def _errors_if_right(probabilities: Shares, chance: np.random.Generator) -> np.ndarray:
    decides = chance.random((DRAWS, len(probabilities))) < probabilities
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    gaps = (probabilities - decides) @ (bins[:, None] == np.arange(BINS))
    return np.asarray(np.abs(gaps).sum(1) / len(probabilities))


def area_under_curve(shares: Shares, decides: Decides) -> float:
    """The probability that the deciding segment has the larger share; ties count half (AUC).

    NaN if all segments decide or none does.
    """
    if len(set(decides.tolist())) < 2:
        return float("nan")
    return float(roc_auc_score(decides, shares))


def held_out_table(shares: pd.DataFrame) -> pd.DataFrame:
    """Calibration with each organism held out: the map is fitted on all others. Best AUC first.

    One row per method and score. Columns are method, score, organisms, prompts, error (the mean
    over organisms of the expected calibration error), floor and floor_high (the mean and the 95%
    quantile of this error if every probability is right; see `noise_floor`) and auc (over all
    prompts).

    Args:
        shares: the columns model, prompt_id, method, score, share and decides, for several
            organisms.

    Raises:
        UserError: fewer than two organisms have enough prompts.
    """
    rows = []
    for (method, score), own in _known(shares).groupby(["method", "score"], sort=False):
        parts = list(_predictions(own))
        arrays = [_arrays(part, "probability") for part in parts]
        error = float(np.mean([calibration_error(*pair) for pair in arrays]))
        auc = area_under_curve(*_arrays(pd.concat(parts), "probability"))
        counts = {"organisms": len(parts), "prompts": sum(map(len, parts))}
        floor = noise_floor([probabilities for probabilities, _ in arrays])
        rows.append({"method": method, "score": score, **counts, **_columns(error, floor, auc)})
    return pd.DataFrame(rows).sort_values("auc", ascending=False, ignore_index=True)


def sealed_table(fitted: pd.DataFrame, shares: pd.DataFrame) -> pd.DataFrame:
    """The maps, applied to organisms on which they were not fitted; the best AUC comes first.

    One row per method and score. Columns are method, score, organisms, prompts (those in which a
    segment decides), error (the expected calibration error over these prompts), floor and
    floor_high (as in `held_out_table`) and auc.

    Args:
        fitted: the shares that the maps are fitted on, as in `held_out_table`.
        shares: the same for other organisms.

    Raises:
        UserError: there are fewer than two organisms to fit maps on, or an organism is in both
            tables.
    """
    fitted, known = _known(fitted), shares.dropna(subset=["share", "decides"])
    seen = set(known["model"]) & set(fitted["model"])
    if seen:
        raise UserError(
            f"the maps were fitted on {', '.join(sorted(seen))}; expected organisms of other seeds"
        )
    rows = []
    for (method, score), own in fitted.groupby(["method", "score"], sort=False):
        part = known[(known["method"] == method) & (known["score"] == score)]
        probabilities = MonotoneMap.fitted(*_arrays(own))(part["share"].to_numpy(float))
        decides = _arrays(part)[1]
        counts = {"organisms": part["model"].nunique(), "prompts": len(part)}
        error, auc = (
            measure(probabilities, decides) for measure in (calibration_error, area_under_curve)
        )
        floor = noise_floor([probabilities])
        rows.append({"method": method, "score": score, **counts, **_columns(error, floor, auc)})
    return pd.DataFrame(rows).sort_values("auc", ascending=False, ignore_index=True)


def _known(shares: pd.DataFrame) -> pd.DataFrame:
    """The prompts in which a segment decides, for organisms with enough such prompts."""
    known = shares.dropna(subset=["share", "decides"])
    counts = known.groupby("model")["prompt_id"].transform("nunique")
    known = known[counts >= FEWEST]
    if known["model"].nunique() < 2:
        raise UserError(
            f"{known['model'].nunique()} organisms have {FEWEST} prompts in which a segment "
            "decides; expected at least two, so that one can be held out"
        )
    return known


def _predictions(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The rows of each organism, with the probability from the map fitted on the others."""
    for model, part in rows.groupby("model", sort=False):
        others = MonotoneMap.fitted(*_arrays(rows[rows["model"] != model]))
        yield part.assign(probability=others(part["share"].to_numpy(float)))


def _arrays(rows: pd.DataFrame, column: str = "share") -> tuple[np.ndarray, np.ndarray]:
    return rows[column].to_numpy(float), rows["decides"].to_numpy(bool)


def _columns(error: float, floor: NoiseFloor, auc: float) -> dict[str, float]:
    return {"error": error, "floor": floor.mean, "floor_high": floor.high, "auc": auc}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration")
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="a study made by interp faithfulness"
    )
    parser.add_argument(
        "--sealed",
        type=Path,
        metavar="DIR",
        help="a study of organisms on which no map is fitted",
    )
    parsed = parser.parse_args(arguments)
    try:
        shares = _shares(parsed.folder)
        print_table(held_out_table(shares), title="Each organism, by the map fitted on the others")
        if parsed.sealed is not None:
            table = sealed_table(shares, _shares(parsed.sealed))
            print_table(table, title="Organisms on which no map was fitted")
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def _shares(path: Path) -> pd.DataFrame:
    """The shares of all models of a study."""
    folder = StudyFolder.read(path)
    folder.require(EFFECTS, SCORES)
    models = folder.record.models
    shares = [shares_of(model, trials_of(tables_of(folder, model))) for model in models]
    return pd.concat(shares, ignore_index=True)


if __name__ == "__main__":
    sys.exit(main())
