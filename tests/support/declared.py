"""Every declared table, and small trials for each."""

import re
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

from interp.estimates.declared import Share, Table

ROOT = Path(__file__).parents[2]
IMPORTED = re.compile(
    r"estimates(\.| import )declared|interp\.extend(\.estimates import| import.*estimates)"
)
PACKAGES = {"interp": "interp", "probes": "interp_probes", "experiments": "interp_experiments"}


@cache
def declared_tables() -> dict[str, Table]:
    """The tables of all modules that import the declarations, by name."""
    found = {}
    for folder, package in PACKAGES.items():
        for file in sorted((ROOT / folder).rglob("*.py")):
            if IMPORTED.search(file.read_text(encoding="utf-8")):
                inside = file.relative_to(ROOT / folder).with_suffix("").parts
                module = import_module(".".join([package, *inside]))
                tables = [own for own in vars(module).values() if isinstance(own, Table)]
                for own in tables:
                    if found.setdefault(own.name, own) is not own:
                        found[f"{own.name} of {file.parent.name}"] = own
    return found


def quick(table: Table) -> Table:
    """The table with few resamples."""
    return replace(table, resamples=399)


def columns_of(table: Table) -> dict[str, str]:
    """The columns of the trials' values: `share` of 0 or 1, `over` of divisors, `size` above 0."""
    kinds = {}
    for number in table.numbers:
        share = isinstance(number, Share) or not number.interval
        kinds.setdefault(number.column, "share" if share else "value")
        if minus := getattr(number, "minus", ""):
            kinds.setdefault(minus, "share")
        if getattr(number, "logs", False):
            kinds[number.column] = "size"
        if over := getattr(number, "over", ""):
            kinds[over] = "over"
    return kinds


KINDS = (
    "plain",
    "weights",
    "ties",
    "zeros",
    "constant",
    "missing",
    "unmeasured",
    "one cluster",
    "few clusters",
    "unequal clusters",
)


def trials_of(table: Table, kind: str, *, rows: int = 3, seed: int = 0) -> pd.DataFrame:
    """Trials of two models, a number of rows each, most of which have an effect.

    The last column of `by` but the model is a number, missing in the last row.
    """
    last = [name for name in table.by if name != "model"][-1]
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, 14) if kind == "unequal clusters" else np.full(14, 2)
    cluster = np.repeat([f"c{number:02}" for number in range(14)], counts)
    if kind == "one cluster":
        cluster[:] = "c"
    if kind == "few clusters":
        cluster = np.char.add("c", (np.arange(len(cluster)) % 9).astype(str))
    names = [f"p{number:02}" for number in range(len(cluster))]
    parts = []
    for model in ("first", "second"):
        for row in range(rows):
            by = {name: f"{name} {row % 2}" for name in table.by}
            by |= {last: row + 1.0 if row + 1 < rows else np.nan, "model": model}
            part = pd.DataFrame({**by, "cluster": cluster, table.key: names, "pair_id": names})
            for column, own in columns_of(table).items():
                drawn = values_of(rng, len(names), kind, own, row)
                part[column] = np.abs(drawn) if own == "size" else drawn
            parts.append(part)
    trials = pd.concat(parts, ignore_index=True)
    if kind == "weights":
        trials["weight"] = rng.choice([0.5, 1.0, 6.0, np.nan], len(trials))
    if kind == "missing":
        holes = rng.random((len(trials), len(columns_of(table)))) < 0.2
        trials[[*columns_of(table)]] = trials[[*columns_of(table)]].astype(float).mask(holes)
    if kind == "unmeasured":
        trials.loc[trials[last] == 1.0, [*columns_of(table)]] = np.nan
    return trials


def values_of(rng: np.random.Generator, count: int, kind: str, own: str, row: int) -> np.ndarray:
    """The values of one column in one row of a table."""
    if own == "over":
        return rng.uniform(1.0, 3.0, count)
    if own == "share":
        return (rng.random(count) < 0.4).astype(float)
    match kind:
        case "ties":
            return rng.choice([-1.0, 0.0, 1.0], count)
        case "zeros":
            return np.zeros(count)
        case "constant":
            return np.full(count, -0.3)
        case _:
            return rng.normal(0.8 * row, 1.0, count)


def in_a_loop(number: object, trials: pd.DataFrame) -> float:
    """The number of trials of one row, added up one by one."""
    above = below = 0.0
    over, minus = (getattr(number, name, "") for name in ("over", "minus"))
    logs, each = getattr(number, "logs", False), []
    for trial in trials.to_dict("records"):
        value, divisor = trial[number.column], trial[over] if over else 1.0
        value = value - trial[minus] if minus else value
        if pd.isna(value) or pd.isna(divisor) or pd.isna(trial["cluster"]):
            continue
        weight = trial.get("weight", 1.0)
        weight = 1.0 if pd.isna(weight) else weight
        each.append((float(value), weight))
        above += weight * (np.log(value) if logs and value else -np.inf if logs else float(value))
        below += weight * float(divisor)
    if number.how is not None:
        return number.how(*np.array(sorted(each)).T) if each else float("nan")
    mean = above / below if below else float("nan")
    return np.exp(mean) if logs else mean


def rows_of(trials: pd.DataFrame, row: pd.Series, by: list[str]) -> pd.DataFrame:
    """The trials of a row."""
    same = [(trials[name] == row[name]) | (trials[name].isna() & pd.isna(row[name])) for name in by]
    return trials[np.logical_and.reduce(same)]
