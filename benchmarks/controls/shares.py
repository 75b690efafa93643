"""Intervals of mean continuous shares (wide, tight or skewed), and of concordances, with tests."""

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import expit

from benchmarks.controls.rates import Tested
from interp.statistics.discrimination import mean_concordance
from interp.statistics.proportions import proportions

SHARES: Mapping[str, Callable[[np.random.Generator, int], Float[np.ndarray, " clusters"]]] = {
    "beta(36, 564)": lambda rng, size: rng.beta(36, 564, size),
    "uniform from 0.1 to 0.9": lambda rng, size: rng.uniform(0.1, 0.9, size),
    "beta(1, 15)": lambda rng, size: rng.beta(1, 15, size),
    "beta(0.3, 6)": lambda rng, size: rng.beta(0.3, 6, size),
    "beta(0.1, 2)": lambda rng, size: rng.beta(0.1, 2, size),
    "logit-normal(-4, 1)": lambda rng, size: expit(rng.normal(-4, 1, size)),
    "logit-normal(-4, 1.5)": lambda rng, size: expit(rng.normal(-4, 1.5, size)),
    "beta(15, 1)": lambda rng, size: rng.beta(15, 1, size),
    "0.05, rarely 0.8": lambda rng, size: np.where(
        rng.random(size) < 0.05, rng.beta(80, 20, size), rng.beta(5, 95, size)
    ),
}
"""Distributions of the clusters' shares."""

TRUE = {name: float(draw(np.random.default_rng(0), 10**6).mean()) for name, draw in SHARES.items()}
"""Their means, over a million draws."""


def of_shares(rng: np.random.Generator, _: bool) -> list[Tested]:
    """The ends of each interval, relative to the true mean; nothing is tested or planted."""
    found = []
    for clusters, name, unequal in product((10, 30, 100), SHARES, (False, True)):
        trials = rng.integers(1, 31, clusters) if unequal else np.ones(clusters, dtype=int)
        rows = pd.DataFrame(
            {"all": "", "cluster": range(clusters), "share": SHARES[name](rng, clusters)}
        )
        rows = rows.loc[rows.index.repeat(trials)]
        table = proportions(rows, values=["share"], by=["all"], cluster="cluster", continuous=True)
        low, high = (float(table.loc[0, end]) - TRUE[name] for end in ("low", "high"))
        words = f"share, {name}, {clusters}{' unequal' * unequal} clusters"
        found.append(Tested(words, np.nan, low=low, high=high))
    return found


def of_concordance(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """Concordances of pairs, in order with a probability that varies between clusters.

    The mean probability is 0.5, where p is that of the truth, or with effects 0.7 and 0.9.
    """
    found = []
    for clusters, pairs, mean in product(
        (10, 12, 20, 40), (1, 4), (0.7, 0.9) if planted else (0.5,)
    ):
        # Pairs of one cluster have a correlation of 1/3, whatever the mean.
        order = rng.random((clusters, pairs)) < rng.beta(2 * mean, 2 - 2 * mean, (clusters, 1))
        each = np.repeat(np.arange(clusters), pairs)
        rows = pd.DataFrame({"order": order.ravel().astype(float), "cluster": each, "weight": 1.0})
        row = mean_concordance(rows, value="order", cluster="cluster", weight="weight")
        name = f"concordance of {mean}, {clusters} clusters of {pairs}"
        found.append(Tested(name, row.p, low=row.low - mean, high=row.high - mean))
    return found
