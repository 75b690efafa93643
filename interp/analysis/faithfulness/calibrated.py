"""The packaged maps: what a method's share says about which segment decides, and how surely.

`python -m interp.studies.faithfulness.calibrate` makes the file from a study of organisms.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interp.analysis.faithfulness.calibration import (
    MonotoneMap,
    area_under_curve,
    calibration_error,
    noise_floor,
)
from interp.errors import UserError, shortened

FILE = Path(__file__).parent / "calibration.json"

FEWEST = 10
"""Prompts of an organism that it takes to hold it out."""

Share = Annotated[float, Field(ge=0, le=1)]
Measured = Annotated[float, Field(ge=0, le=1)] | None


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class HeldOut(_Record):
    """How well the map of all other organisms does on one."""

    organism: str
    prompts: int
    error: Measured
    """Expected calibration error."""
    auc: Measured
    """None where one segment decides in all prompts."""


class CalibratedMethod(_Record):
    """The map of one method and way of scoring a segment."""

    method: str
    score: str
    shares: list[Share]
    probabilities: list[Share]
    """Of a segment of such a share of the scores of both: that it decides."""
    error: Measured
    """Mean over organisms held out."""
    auc: Measured
    """Over all organisms, each by the map of the others."""
    held_out: list[HeldOut]

    def map(self) -> MonotoneMap:
        """The map from shares to probabilities."""
        return MonotoneMap(tuple(self.shares), tuple(self.probabilities))


class Calibration(_Record):
    """The maps of all methods, and what they were fitted on."""

    system: str
    segments: list[str]
    """The two that are compared, the first over the second."""
    organisms: list[str]
    prompts: int
    """Of all organisms, with a segment that decides."""
    methods: list[CalibratedMethod]

    @classmethod
    def read(cls, file: Path = FILE) -> "Calibration":
        """The maps in a file, the packaged ones if none is named.

        Raises:
            UserError: there is none, or it is damaged.
        """
        try:
            return cls.model_validate_json(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(f"{file} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise UserError(f"{file} is damaged: {shortened(str(error))}") from None


def fitted(shares: pd.DataFrame, *, system: str, segments: tuple[str, str]) -> Calibration:
    """The maps of every method, fitted on all organisms, and their errors with each one left out.

    Args:
        shares: model, prompt_id, method, score, share and decides of prompts of several organisms.
        system: whose prompts they are.
        segments: the two that are compared.

    Raises:
        UserError: fewer than two organisms with enough prompts.
    """
    known = shares.dropna(subset=["share", "decides"])
    counts = known.groupby("model")["prompt_id"].nunique()
    organisms = [str(name) for name in known["model"].unique() if counts[name] >= FEWEST]
    if len(organisms) < 2:
        raise UserError(
            f"{len(organisms)} organisms have {FEWEST} prompts in which a segment decides; "
            "expected at least two, so that one can be held out"
        )
    known = known[known["model"].isin(organisms)]
    return Calibration(
        system=system,
        segments=list(segments),
        organisms=organisms,
        prompts=int(counts[organisms].sum()),
        methods=[
            _of_method(str(method), str(score), rows)
            for (method, score), rows in known.groupby(["method", "score"], sort=False)
        ],
    )


def _of_method(method: str, score: str, rows: pd.DataFrame) -> CalibratedMethod:
    own = MonotoneMap.fitted(*_arrays(rows))
    predicted = pd.concat(list(_predictions(rows)))
    held_out = [_held_out(str(name), part) for name, part in predicted.groupby("model", sort=False)]
    return CalibratedMethod(
        method=method,
        score=score,
        shares=list(own.shares),
        probabilities=list(own.probabilities),
        error=float(np.mean([part.error for part in held_out if part.error is not None])),
        auc=_rounded(area_under_curve(*_arrays(predicted, "probability"))),
        held_out=held_out,
    )


def _predictions(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The rows of each organism with the probability by the map of all others."""
    for model, part in rows.groupby("model", sort=False):
        others = MonotoneMap.fitted(*_arrays(rows[rows["model"] != model]))
        yield part.assign(probability=others(part["share"].to_numpy(float)))


def _held_out(organism: str, rows: pd.DataFrame) -> HeldOut:
    arrays = _arrays(rows, "probability")
    return HeldOut(
        organism=organism,
        prompts=len(rows),
        error=_rounded(calibration_error(*arrays)),
        auc=_rounded(area_under_curve(*arrays)),
    )


def held_out_table(shares: pd.DataFrame) -> pd.DataFrame:
    """Every organism by the map of all others, best AUC first.

    One row per method and score: these, organisms, prompts, error (the mean over organisms of the
    expected calibration error), floor and floor_high (the mean and 95% quantile of what it is if
    every probability is right, `noise_floor`) and auc (over all prompts).

    Args:
        shares: as in `fitted`.
    """
    known = shares.dropna(subset=["share", "decides"])
    counts = known.groupby("model")["prompt_id"].transform("nunique")
    rows = []
    for (method, score), own in known[counts >= FEWEST].groupby(["method", "score"], sort=False):
        parts = list(_predictions(own))
        arrays = [_arrays(part, "probability") for part in parts]
        floor = noise_floor([probabilities for probabilities, _ in arrays])
        rows.append(
            {
                "method": method,
                "score": score,
                "organisms": len(parts),
                "prompts": sum(map(len, parts)),
                "error": float(np.mean([calibration_error(*pair) for pair in arrays])),
                "floor": floor.mean,
                "floor_high": floor.high,
                "auc": area_under_curve(*_arrays(pd.concat(parts), "probability")),
            }
        )
    return pd.DataFrame(rows).sort_values("auc", ascending=False, ignore_index=True)


def sealed_table(calibration: Calibration, shares: pd.DataFrame) -> pd.DataFrame:
    """The maps on organisms that they have not seen, best AUC first.

    One row per method and score: these, organisms, prompts (in which a segment decides), error
    (expected calibration error over these), floor and floor_high (as in `held_out_table`) and auc.

    Args:
        calibration: the maps.
        shares: as in `fitted`, of other organisms.

    Raises:
        UserError: an organism that the maps were fitted on.
    """
    known = shares.dropna(subset=["share", "decides"])
    seen = set(known["model"]) & set(calibration.organisms)
    if seen:
        raise UserError(
            f"the maps were fitted on {', '.join(sorted(seen))}; give organisms of other seeds"
        )
    rows = []
    for own in calibration.methods:
        part = known[(known["method"] == own.method) & (known["score"] == own.score)]
        probabilities, decides = own.map()(part["share"].to_numpy(float)), _arrays(part)[1]
        floor = noise_floor([probabilities])
        rows.append(
            {
                "method": own.method,
                "score": own.score,
                "organisms": part["model"].nunique(),
                "prompts": len(part),
                "error": calibration_error(probabilities, decides),
                "floor": floor.mean,
                "floor_high": floor.high,
                "auc": area_under_curve(probabilities, decides),
            }
        )
    return pd.DataFrame(rows).sort_values("auc", ascending=False, ignore_index=True)


def _arrays(rows: pd.DataFrame, column: str = "share") -> tuple[np.ndarray, np.ndarray]:
    return rows[column].to_numpy(float), rows["decides"].to_numpy(bool)


def _rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 4)


def calibrated_shares(segment_scores: pd.DataFrame, calibration: Calibration) -> pd.DataFrame:
    """The probability that the first compared segment decides, by each calibrated method.

    One row per model, prompt, method and score: these, share (its part of the absolute scores of
    both), probability, error and auc (of the method, on organisms held out).

    Args:
        segment_scores: rows of the segment_scores table.
        calibration: the maps.
    """
    above, below = calibration.segments
    key = ["model", "prompt_id", "method"]
    pairs = [
        segment_scores.loc[segment_scores["segment"] == name, [*key, "score", "tokens"]]
        for name in (above, below)
    ]
    both = pairs[0].merge(pairs[1], on=key, suffixes=("_above", "_below"), validate="one_to_one")
    parts = [_by_map(both[both["method"] == own.method], own) for own in calibration.methods]
    found = [part for part in parts if len(part)]
    columns = [*key, "score", "share", "probability", "error", "auc"]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=columns)


def _by_map(both: pd.DataFrame, own: CalibratedMethod) -> pd.DataFrame:
    above, below = (
        both[f"score_{side}"].abs() / (both[f"tokens_{side}"] if own.score == "mean" else 1)
        for side in ("above", "below")
    )
    share = above / (above + below).where(lambda total: total > 0)
    table = both[["model", "prompt_id", "method"]].assign(score=own.score, share=share)
    table["probability"] = own.map()(share.to_numpy(float))
    return table.assign(error=own.error, auc=own.auc)


def calibrated_table(shares: pd.DataFrame) -> pd.DataFrame:
    """Means over prompts: model, method, score, prompts, share, probability, error, auc.

    Args:
        shares: rows of `calibrated_shares`.
    """
    groups = shares.groupby(["model", "method", "score"], sort=False)
    table: pd.DataFrame = groups.agg(
        prompts=("share", "count"),
        share=("share", "mean"),
        probability=("probability", "mean"),
        error=("error", "first"),
        auc=("auc", "first"),
    ).reset_index()
    return table
