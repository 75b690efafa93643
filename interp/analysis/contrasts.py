"""Comparisons that are named before the data are seen: differences of accuracy, and their power.

1. Sum up: hits and trials of each cluster (such as an entity pair) at each level of the factor.
2. Difference: of the two levels' shares. A cluster's contribution to it is linear in its deviations
   from these shares, whether it is found at both levels (a paired comparison) or at one.
3. Interval: by the contributions' sum of squares, with Student's t.
4. Test: random signs of the clusters' contributions where clusters have both levels; where each
   cluster has one level, random orders of the clusters' shares.
5. Spread: of a factor with many levels, best minus worst, against that of levels in random order
   within clusters; the interval holds for every pair of levels at once.
6. Correct: Holm's method over the contrasts that a system names. Others are exploratory: they are
   shown without a corrected p-value.

benchmarks/controls counts how often these tests reject true and false null hypotheses in
simulated studies.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd
from scipy.special import stdtrit
from scipy.stats import binomtest

from interp.analysis.clusters import FEWEST, RESAMPLES
from interp.analysis.corrections import holm
from interp.analysis.groups import grouped
from interp.analysis.intervals import LEVEL, UPPER
from interp.analysis.resampling import permutation_sums, random_sign_sums, share_as_far

POWER = 0.8
"""Chance of finding the minimal detectable effect."""

SHUFFLES = 999
"""Random orders of the levels within clusters, for the test of a spread."""

ROUNDING = 1e-12
"""Differences of shares up to this size are none but for rounding."""

MODEL = "model"
"""The factor of contrasts between models."""

CONFIRMATORY, EXPLORATORY = "confirmatory", "exploratory"
"""Whether a contrast was named before the data were seen."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """A comparison of two levels of a factor, or of the extremes of all its levels."""

    factor: str
    """A factor of prompts, or "model"."""
    levels: tuple[str, str] | None = None
    """a and b of the difference a - b; None compares the best level with the worst, or, of models,
    each pair of them."""


@runtime_checkable
class SystemWithContrasts(Protocol):
    """A system that names its contrasts and what its answers cluster by."""

    cluster: str
    contrasts: tuple[Contrast, ...]


@dataclass(frozen=True)
class Difference:
    """A difference of two shares; NaN where undefined, and then `note` says why."""

    difference: float
    """share_a - share_b."""
    low: float = np.nan
    high: float = np.nan
    """Ends of its 95% interval."""
    p: float = np.nan
    """Two-sided."""
    detectable: float = np.nan
    """The difference that a test at 5% finds with a power of 80%, given these data's spread."""
    share_a: float = np.nan
    share_b: float = np.nan
    clusters: int = 0
    paired: bool = False
    """Whether clusters have both levels."""
    note: str = ""


def contrast_table(
    pairs: pd.DataFrame,
    *,
    named: Sequence[Contrast],
    exploratory: Sequence[Contrast] = (),
    cluster: str,
    weight: str | None = None,
) -> pd.DataFrame:
    """One row per contrast, and per model unless models are compared.

    Columns are model (of contrasts between models, empty), factor, contrast ("a - b"), status
    ("confirmatory": named in advance, or "exploratory"), then the fields of `Difference`, with
    p_holm beside p, corrected over all confirmatory rows.

    Args:
        pairs: one row per model and pair, with the factors (`interp.analysis.accuracy.pairs_of`),
            and `paired`, whether all its sides are answered correctly.
        named: the contrasts that the system fixes before the data are seen.
        exploratory: others that are worth a look.
        cluster: the column of the clusters within which outcomes are correlated.
        weight: the column that says how many pairs of the population each represents.
    """
    mass = pairs[weight].astype(float) if weight else 1.0
    counted = pairs.assign(hits=pairs["paired"].astype(float) * mass, trials=mass)
    tables = [
        pd.DataFrame(
            [
                {**where, "status": status, **asdict(found)}
                for contrast in contrasts
                for where, found in _rows(counted, contrast, cluster)
            ],
            columns=["model", "factor", "contrast", "status", *Difference.__dataclass_fields__],
        )
        for status, contrasts in ((CONFIRMATORY, named), (EXPLORATORY, exploratory))
    ]
    corrected = holm(tables[0], family="named contrasts").drop(columns=["family", "family_size"])
    return pd.concat([corrected, tables[1].assign(p_holm=np.nan)]).reset_index(drop=True)


def _rows(
    pairs: pd.DataFrame, contrast: Contrast, cluster: str
) -> Iterator[tuple[dict[str, str], Difference]]:
    """What is compared, and the difference."""
    factor = contrast.factor
    for cell, rows in grouped(pairs, [] if factor == MODEL else [MODEL]):
        of_level = {
            str(level): _sums(found, cluster) for level, found in rows.groupby(factor, sort=False)
        }
        where = {"model": str(cell.get(MODEL, "")), "factor": factor}
        if contrast.levels is None and factor != MODEL:
            if len(of_level) > 1:
                name, found = spread(of_level)
                yield {**where, "contrast": name}, found
            continue
        named = combinations(of_level, 2) if contrast.levels is None else (contrast.levels,)
        for a, b in named:
            if a in of_level and b in of_level:
                found = difference(of_level[a], of_level[b])
                yield {**where, "contrast": f"{a} - {b}"}, found


def _sums(rows: pd.DataFrame, cluster: str) -> pd.DataFrame:
    return rows.groupby(cluster, sort=False)[["hits", "trials"]].sum()


def difference(a: pd.DataFrame, b: pd.DataFrame) -> Difference:
    """The difference of two shares, from tables of hits and trials by cluster (their index)."""
    share_a, share_b = _share(a), _share(b)
    added = _added(a, share_a).sub(_added(b, share_b), fill_value=0.0).to_numpy()
    paired = 2 * len(a.index.intersection(b.index)) > min(len(a), len(b))
    clusters = len(added)
    fewest = clusters if paired else min(len(a), len(b))
    found = Difference(
        share_a - share_b, share_a=share_a, share_b=share_b, clusters=clusters, paired=paired
    )
    if fewest < FEWEST:
        return replace(found, note=f"no test: fewer than {FEWEST} clusters")
    error = float(np.sqrt(clusters / (clusters - 1) * (added**2).sum()))
    half, more = (float(stdtrit(fewest - 1, level)) * error for level in (UPPER, POWER))
    return replace(
        found,
        low=found.difference - half,
        high=found.difference + half,
        p=(_by_signs if paired else _by_relabelling)(a, b, found.difference),
        detectable=half + more,
    )


def _share(sums: pd.DataFrame) -> float:
    return float(sums["hits"].sum() / sums["trials"].sum())


def _added(sums: pd.DataFrame, share: float) -> pd.Series:
    """What each cluster adds to the distance of the share from another one."""
    return (sums["hits"] - share * sums["trials"]) / sums["trials"].sum()


def _by_signs(a: pd.DataFrame, b: pd.DataFrame, found: float) -> float:
    """Random signs of what each cluster adds to the difference of two shares that are equal."""
    both = _share(pd.concat([a, b]))
    added = _added(a, both).sub(_added(b, both), fill_value=0.0).to_numpy()
    return share_as_far(random_sign_sums(added, resamples=RESAMPLES), found, rounding=ROUNDING)


def _by_relabelling(a: pd.DataFrame, b: pd.DataFrame, found: float) -> float:
    """The clusters' shares in random order over the clusters, which keep their level and trials.

    Trials may weigh more at one level than at the other: were they to change levels with their
    shares, a share at the lighter level would hardly ever count as much again.
    """
    sums = pd.concat([a, b])
    trials = sums["trials"].to_numpy(dtype=float)
    first = np.arange(len(trials)) < len(a)
    weights = np.column_stack([trials * first, trials * ~first])
    shares = sums["hits"].to_numpy(dtype=float) / trials
    drawn = permutation_sums(shares, weights / weights.sum(axis=0), resamples=RESAMPLES)
    return share_as_far(drawn[:, 0] - drawn[:, 1], found, rounding=ROUNDING)


def spread(of_level: Mapping[str, pd.DataFrame]) -> tuple[str, Difference]:
    """The best level minus the worst, by name, and the difference; at least two levels.

    Choosing extremes makes their difference large by itself: p is the share of random orders of the
    levels within clusters whose extremes are as far apart, and the interval extends to either side
    by the 95% quantile of these distances, so that it holds for all pairs of levels together.
    """
    shares = {level: _share(sums) for level, sums in of_level.items()}
    best, worst = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    plain = difference(of_level[best], of_level[worst])
    if plain.note:
        return f"{best} - {worst}", plain
    clusters = list(dict.fromkeys(name for table in of_level.values() for name in table.index))
    sums = np.stack(
        [t.reindex(clusters, fill_value=0.0).to_numpy(float) for t in of_level.values()]
    )
    chance = np.random.default_rng(0)
    widths = np.empty(SHUFFLES)
    for draw in range(SHUFFLES):
        order = chance.random(sums.shape[:2]).argsort(axis=0)
        hits, trials = np.take_along_axis(sums, order[..., None], axis=0).sum(axis=1).T
        widths[draw] = np.ptp(hits / trials)
    half = float(np.quantile(widths, LEVEL))
    more = plain.detectable - (plain.high - plain.difference)
    return f"{best} - {worst}", replace(
        plain,
        low=max(plain.difference - half, 0.0),
        high=min(plain.difference + half, 1.0),
        p=share_as_far(widths, plain.difference, rounding=ROUNDING),
        detectable=half + more,
    )


def mcnemar(a: Sequence[bool], b: Sequence[bool]) -> float:
    """McNemar's exact test of two judgements of the same, independent, things; two-sided p."""
    first, second = np.asarray(a, dtype=bool), np.asarray(b, dtype=bool)
    only_a, only_b = int((first & ~second).sum()), int((~first & second).sum())
    return float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0
