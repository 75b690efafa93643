"""How much accuracy depends on the seed that the data were drawn with: components of variance.

A seed decides the names, the wrong answers, and what a limit takes. Entities are the same under
every seed, so that their mean accuracies are a table of entities by seeds:

    share[entity, seed] = mean + entity + seed + residual

1. Average: the share of each entity (or other cluster) under each seed; each counts once.
2. Analyse its variance (Searle, Casella and McCulloch, 1992, Variance Components, chapter 4): mean
   squares of entities, of seeds and of the rest; a component is the difference of two of them.
3. Say how far the overall accuracy moves from seed to seed.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from interp.analysis.clusters import FEWEST, too_few
from interp.analysis.groups import grouped
from interp.analysis.intervals import UPPER


@dataclass(frozen=True)
class SeedComponents:
    """Standard deviations of an accuracy; NaN where undefined, and then `note` says why."""

    mean: float = np.nan
    """Over seeds and clusters."""
    sd_of_mean: float = np.nan
    """Of the overall accuracy from seed to seed: what another seed would change."""
    sd_low: float = np.nan
    """Lower end of its 95% interval, by the chi-square distribution of seeds - 1."""
    sd_high: float = np.nan
    sd_seed: float = np.nan
    """What is common to all clusters under one seed."""
    sd_cluster: float = np.nan
    """Between clusters, whatever the seed."""
    sd_residual: float = np.nan
    """Of one cluster from seed to seed beyond that: its own names and wrong answers."""
    p: float = np.nan
    """That seeds have nothing in common over clusters (F test of seeds against the rest)."""
    seeds: int = 0
    clusters: int = 0
    """Those that occur under every seed."""
    note: str = ""


def seed_components(shares: Float[np.ndarray, "clusters seeds"]) -> SeedComponents:
    """The components of a table of shares without gaps."""
    clusters, seeds = shares.shape
    if seeds < 2 or clusters < FEWEST:
        note = too_few(clusters) if seeds > 1 else "undefined: one seed only"
        return SeedComponents(seeds=seeds, clusters=clusters, note=note)
    by_cluster, by_seed = shares.mean(axis=1), shares.mean(axis=0)
    rest = (shares - by_cluster[:, None] - by_seed[None, :] + shares.mean()).round(12)
    freedom = (clusters - 1) * (seeds - 1)
    of_seeds = clusters * float(by_seed.var(ddof=1))
    of_clusters = seeds * float(by_cluster.var(ddof=1))
    of_rest = float((rest**2).sum()) / freedom
    sd = float(by_seed.std(ddof=1))
    ends = (seeds - 1) / stats.chi2.ppf([UPPER, 1 - UPPER], seeds - 1)
    low, high = sd * np.sqrt(ends)
    p = float(stats.f.sf(of_seeds / of_rest, seeds - 1, freedom)) if of_rest > 0 else np.nan
    return SeedComponents(
        mean=float(shares.mean()),
        sd_of_mean=sd,
        sd_low=float(low),
        sd_high=float(high),
        sd_seed=float(np.sqrt(max(of_seeds - of_rest, 0.0) / clusters)),
        sd_cluster=float(np.sqrt(max(of_clusters - of_rest, 0.0) / seeds)),
        sd_residual=float(np.sqrt(of_rest)),
        p=p,
        seeds=seeds,
        clusters=clusters,
        note="" if of_rest > 0 else "no test: no cluster differs between seeds",
    )


def seed_table(pairs: pd.DataFrame, *, measures: list[str], cluster: str) -> pd.DataFrame:
    """One row per model and measure: model, measure, the fields of `SeedComponents`.

    Args:
        pairs: one row per model, seed and pair: model, seed, the cluster, and whether each measure
            is true.
        measures: columns of booleans.
        cluster: the column of what is the same under every seed, such as the entity.
    """
    rows: list[dict[str, Any]] = []
    for cell, own in grouped(pairs, ["model"]):
        for measure in measures:
            judged = own.dropna(subset=[measure]).astype({measure: float})
            table = judged.pivot_table(index=cluster, columns="seed", values=measure).dropna()
            found = seed_components(table.to_numpy(dtype=float))
            rows.append({**cell, "measure": measure, **asdict(found)})
    return pd.DataFrame(rows)
