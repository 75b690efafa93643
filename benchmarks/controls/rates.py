"""Rates over simulated studies: how often tests reject and intervals contain the truth."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

LEVEL = 0.05

UNPLANTED = (
    "across entity pairs, gradient ratio, paired accuracy",
    "across entity pairs, familiarity, gradient ratio",
    "across entity pairs, familiarity, attention ratio",
)
"""Tests whose effects cannot be planted together with the others."""


@dataclass(frozen=True)
class Tested:
    """One test of one study."""

    test: str
    p: float
    family: str = ""
    """The table within which p_holm is corrected; empty if the test is not corrected."""
    p_holm: float = np.nan
    naive: float = np.nan
    """p-value of a test that treats prompts as independent."""
    low: float = np.nan
    high: float = np.nan


def table_of(null: pd.DataFrame, planted: pd.DataFrame) -> str:
    """One line per test, with its rates over studies without and with the effect."""
    power = rates(planted)["rejected"].rename("power").drop(UNPLANTED, errors="ignore")
    shares = rates(null).join(power)
    lines = [
        "| test | false positives | over prompts | coverage | power |",
        "|---|---|---|---|---|",
    ]
    for test, row in shares.iterrows():
        numbers = (row["rejected"], row["naive"], row["covered"], row["power"])
        cells = ("" if np.isnan(number) else f"{number:.3f}" for number in numbers)
        lines.append(f"| {test} | {' | '.join(cells)} |")
    return "\n".join(lines)


def rates(found: pd.DataFrame) -> pd.DataFrame:
    """One row per test of the first model.

    The columns are the shares of studies in which the test rejects, in which the test that treats
    prompts as independent rejects, and in which the interval contains the truth.
    """
    name, model = (found["test"].str.partition("@")[part] for part in (0, 2))
    rows = found[model.isin(["", "first"])].assign(test=name)
    judged = pd.DataFrame(
        {
            "test": rows["test"],
            "rejected": _at_most(rows["p"]),
            "naive": _at_most(rows["naive"]),
            "covered": ((rows["low"] <= 0) & (rows["high"] >= 0))
            .astype(float)
            .where(rows["low"].notna()),
        }
    )
    return judged.groupby("test", sort=False).mean()


def _at_most(p: pd.Series) -> pd.Series:
    return (p <= LEVEL + 1e-9).astype(float).where(p.notna())


def families_of(null: pd.DataFrame) -> str:
    """One line per family of corrected tests, and one for all families, without effects."""
    shares = findings(null)
    lines = ["| corrected together | studies with a finding |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {share:.3f} |" for name, share in shares.items())])


def findings(null: pd.DataFrame) -> dict[str, float]:
    """Share of studies in which p_holm is at most 0.05 in each family, or in any."""
    corrected = null[null["family"] != ""].assign(found=lambda rows: _at_most(rows["p_holm"]) == 1)
    by_family = corrected.groupby(["family", "study"], sort=False)["found"].any()
    shares = by_family.groupby("family", sort=False).mean().to_dict()
    any_family = corrected.groupby("study")["found"].any().mean() if len(corrected) else 0.0
    return {**shares, "any of these": float(any_family)}
