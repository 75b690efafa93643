"""False findings and power of the test for edges whose effects vary with the phrasing.

    python -m benchmarks.phrasings --studies 400

Each simulated study has 60 pairs in 12 clusters, 100 edges, both directions, and ten phrasings
(five for each pair of answer options). Over the studies, the columns are:

- any finding: the share of studies in which p is below 0.05 for at least one edge whose effect does
  not vary with the phrasing;
- power: the share of studies in which p is below 0.05 for the one additional edge with half of its
  variance between phrasings;
- covered: the share of 95% intervals for an edge's phrasing share that contain the planted share.
"""

import argparse
from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd

from benchmarks.side_by_side import machine
from interp.measurements.edges.phrasings import component_table

OPTIONS = {"tf": ("True", "False"), "yn": ("Yes", "No")}

DESIGNS: Mapping[str, Mapping[str, object]] = {
    "normal": {},
    "skewed": {"skewed": True},
    "clusters differ": {"of_cluster": 1.0},
    "options differ in scale": {"scales": (1.0, 5.0)},
    "every instance in every phrasing": {"crossed": True, "of_cluster": 1.0},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=400)
    options = parser.parse_args()
    print(machine())
    rows = [{"design": name, **rates(options.studies, design)} for name, design in DESIGNS.items()]
    print(pd.DataFrame(rows).round(3).to_string(index=False))


def rates(studies: int, design: Mapping[str, object]) -> dict[str, float]:
    """The columns for one design."""
    found, power, covered = [], [], []
    for seed in range(studies):
        edges, *rest = study(seed, sizes=(0, 0, 0, 1), edges=100, **design)
        switched = study(seed, sizes=(1, 0, 0, 1), edges=1, **design)[0]
        both = pd.concat([edges, switched.assign(reader="with_switch")])
        table = component_table(both, *rest).set_index("reader")
        known = table.drop("with_switch")
        found.append(known["p"].min() < 0.05)
        power.append(table.loc["with_switch", "p"] < 0.05)
        covered.append(((known["phrasing_low"] <= 0) & (known["phrasing_high"] >= 0)).mean())
    return {
        "any finding": float(np.mean(found)),
        "power": float(np.mean(power)),
        "covered": float(np.mean(covered)),
    }


def study(
    seed: int,
    *,
    clusters: int = 12,
    sizes: tuple[float, float, float, float] = (1, 1, 1, 1),
    edges: int = 1,
    directions: int = 2,
    skewed: bool = False,
    of_cluster: float = 0.0,
    scales: tuple[float, float] = (1.0, 1.0),
    crossed: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, str], dict[str, int]]:
    """Effects of edges with planted variances of phrasing, side, their interaction, and instance.

    Returns:
        Rows of the edges table and of the pairs table, and each pair's phrasing and cluster.

    Args:
        seed: the study's seed.
        clusters: number of clusters; each has five pairs or, if crossed, one in each phrasing.
        sizes: the four variances.
        edges: number of edges.
        directions: 1 for noising only, 2 for both directions.
        skewed: whether instance effects are exponential instead of normal.
        of_cluster: variance that the pairs of a cluster share.
        scales: factors by which effects are multiplied, one for each pair of options.
        crossed: whether each cluster is one instance in every phrasing.
    """
    chance, order = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    phrasings = [f"{verb}-{form}" for verb, form in product("abcde", OPTIONS)]
    of_phrasing = chance.normal(0, np.sqrt(sizes[0]), (len(phrasings), edges))
    of_side = chance.normal(0, np.sqrt(sizes[1]), (2, edges))
    of_both = chance.normal(0, np.sqrt(sizes[2]), (len(phrasings), 2, edges))
    of_clusters = chance.normal(0, np.sqrt(of_cluster), (clusters, edges))
    rows: list[dict[str, object]] = []
    pairs: list[dict[str, str]] = []
    phrasing_of: dict[str, str] = {}
    cluster_of: dict[str, int] = {}
    for number in range(clusters * (len(phrasings) if crossed else 5)):
        cluster = number % clusters
        which = number // clusters if crossed else int(order.integers(len(phrasings)))
        pair_id = f"p{number}"
        phrasing_of[pair_id], cluster_of[pair_id] = phrasings[which], cluster
        form = phrasings[which][-2:]
        scale = scales[list(OPTIONS).index(form)]
        positive, negative = OPTIONS[form]
        pairs.append({"pair_id": pair_id, "positive_option": positive, "negative_option": negative})
        drawn = chance.exponential(1, (2, edges)) - 1 if skewed else chance.normal(0, 1, (2, edges))
        own = np.sqrt(sizes[3]) * drawn + of_clusters[cluster]
        for side, direction in enumerate(("noising", "denoising")[:directions]):
            y = scale * (of_phrasing[which] + of_side[side] + of_both[which, side] + own[side])
            key = {"model": "m", "method": "exact", "pair_id": pair_id, "direction": direction}
            sign = 1 if direction == "denoising" else -1
            rows += [
                {**key, "writer": "input", "reader": f"m{edge}", "effect": sign * y[edge]}
                for edge in range(edges)
            ]
    return pd.DataFrame(rows), pd.DataFrame(pairs), phrasing_of, cluster_of


if __name__ == "__main__":
    main()
