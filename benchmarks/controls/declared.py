"""Coverage of the intervals of declared tables, and the level of their tests.

    python -m benchmarks.controls.declared --studies 2000

Each row of a simulated table is one study: clusters are drawn from a distribution with a known
mean, and the table's own declaration computes the interval and p. Clusters have two trials each, or
one to six. Of a ratio of means, the mean below is 2, with a standard deviation of a half.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import pandas as pd

from interp.estimates.compute import CLUSTER, estimate
from interp.estimates.declared import Mean, Table
from interp.measurements.circuits.tables import CIRCUITS
from interp.measurements.edges.show import EDGES
from interp.measurements.patching.tables import EFFECTS, NODE_SETS
from interp.measurements.steering.show import STEERING

TABLES = (EFFECTS, EDGES, STEERING, NODE_SETS, CIRCUITS)

DRAWS = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0),
    "gamma(0.5)": (lambda rng, shape: rng.gamma(0.5, size=shape), 0.5),
    "lognormal": (lambda rng, shape: rng.lognormal(size=shape), float(np.exp(0.5))),
}
"""For each distribution of clusters, how they are drawn, and their mean."""

CLUSTERS = (10, 20)

BELOW = 2.0
"""The mean below the line of a ratio."""


def rates(
    table: Table, number: Mean, *, studies: int, seed: int = 0
) -> Iterator[dict[str, object]]:
    """One row per distribution, sizes and number of clusters: coverage and, if tested, level."""
    for clusters in CLUSTERS:
        for sizes in ("equal", "unequal"):
            rng = np.random.default_rng(seed)
            trials = np.full(clusters, 2) if sizes == "equal" else rng.integers(1, 7, clusters)
            for name, (draw, mean) in DRAWS.items():
                found = _studies(table, number, draw(rng, (studies, clusters)) - mean, trials, rng)
                low, high = (found[end].to_numpy() for end in number.interval or ())
                # Of a ratio the truth is the mean above, 0 here, plus one, over the mean below.
                truth = 1 / BELOW if number.over else 0.0
                row = {"table": table.name, "number": number.name, "clusters": clusters}
                covered = ((low <= truth) & (truth <= high)).mean()
                level = (found["p"] <= 0.05).mean() if number is table.tested else np.nan
                yield {**row, "sizes": sizes, "of": name, "coverage": covered, "level": level}


def _studies(
    table: Table,
    number: Mean,
    values: np.ndarray,
    trials: np.ndarray,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """The table of studies, one per row: each cluster's value in all of its trials."""
    studies, clusters = values.shape
    of_trial = np.repeat(np.arange(clusters), trials)
    rows: dict[str, object] = dict.fromkeys(table.by, "x")
    for each in table.numbers:
        rows |= {each.column: np.nan, getattr(each, "over", "") or each.column: np.nan}
    rows[table.by[-1]] = np.repeat(np.arange(studies), len(of_trial))
    rows[CLUSTER] = np.tile(of_trial, studies)
    shown = values[:, of_trial].ravel()
    if number.over:
        rows[number.over] = rng.normal(BELOW, 0.5, values.shape)[:, of_trial].ravel()
        shown = shown + 1
    rows[number.column] = shown
    return estimate(table, pd.DataFrame(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for table in TABLES:
        for number in table.numbers:
            if isinstance(number, Mean):
                how = {"studies": options.studies, "seed": options.seed}
                shown = pd.DataFrame(rates(table, number, **how)).round(3)
                print(shown.to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
