"""The effect of the data's seed on accuracy.

A seed determines the names, the wrong answers, and which prompts a limit selects. Entities (or
other clusters) are the same under every seed, so their mean accuracies form a table of entities by
seeds:

    share[entity, seed] = mean + entity + seed + residual

Its variance components are differences of mean squares of entities, of seeds and of residuals
(Searle, Casella and McCulloch, 1992, Variance Components, chapter 4).
"""

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.analysis.accuracy import pairs_of
from interp.errors import UserError
from interp.statistics.clusters import FEWEST, too_few
from interp.statistics.summaries import UPPER, grouped


def judged_pairs(
    answers: pd.DataFrame, prompts: pd.DataFrame, *, model: str, cluster: str
) -> pd.DataFrame:
    """One row per pair: whether the model is right on each side, and on all of them (`paired`).

    Other columns are model, pair_id, the cluster, and weight: the number of pairs of the data set
    that a pair represents. Undefined values are NA, as in `pairs_of`.

    Raises:
        UserError: none of the model's answers was judged.
    """
    judged = answers[(answers["model"] == model) & answers["correct"].notna()]
    if judged.empty:
        raise UserError(f"no answer of {model} was judged, so there is nothing to compare")
    sides = tuple(prompts["side"].unique())
    keep = [] if cluster == "pair_id" else [cluster]
    pairs = pairs_of(judged, prompts, keep=keep, sides=sides)
    # As in `accuracies`, a pair with members from different strata has the weight of the first.
    weights = prompts.groupby("pair_id")["weight"].first()
    return pairs.assign(weight=pairs["pair_id"].map(weights))


def measures_of(pairs: pd.DataFrame, *, cluster: str) -> list[str]:
    """The measures of `judged_pairs` that have values: each side, and `paired`."""
    measures = pairs.drop(columns=["model", "pair_id", "weight", cluster], errors="ignore")
    # Without a whole pair, each measure has a row that says so.
    return list(map(str, measures.dropna(axis=1, how="all") if len(pairs) else measures))


COMPONENTS = (
    *("mean", "sd_of_mean", "sd_low", "sd_high"),
    *("sd_seed", "sd_cluster", "sd_residual", "p"),
)
"""Numbers of an accuracy's spread: its mean over seeds and clusters; the standard deviation between
seeds, with its 95% interval (chi-square, seeds - 1 df); those of seed effects that clusters have in
common, between clusters, and within them, due to names and wrong answers; p, that seeds have no
common effect (F test of seeds against residuals)."""


def seed_components(shares: Float[np.ndarray, "clusters seeds"]) -> dict[str, object]:
    """The `COMPONENTS` of a complete table of shares, seeds and clusters, and note.

    Undefined values are NaN, and the note gives the reason.
    """
    from scipy import stats  # a second of imports, which every evaluation would wait for

    clusters, seeds = shares.shape
    counts = {"seeds": seeds, "clusters": clusters}
    if seeds < 2 or clusters < FEWEST:
        note = too_few(clusters) if seeds > 1 else "undefined: only one seed"
        return {**dict.fromkeys(COMPONENTS, np.nan), **counts, "note": note}
    by_cluster, by_seed = shares.mean(axis=1), shares.mean(axis=0)
    rest = (shares - by_cluster[:, None] - by_seed[None, :] + shares.mean()).round(12)
    freedom = (clusters - 1) * (seeds - 1)
    of_seeds = clusters * float(by_seed.var(ddof=1))
    of_clusters = seeds * float(by_cluster.var(ddof=1))
    of_rest = float((rest**2).sum()) / freedom
    sd = float(by_seed.std(ddof=1))
    low, high = sd * np.sqrt((seeds - 1) / stats.chi2.ppf([UPPER, 1 - UPPER], seeds - 1))
    p = float(stats.f.sf(of_seeds / of_rest, seeds - 1, freedom)) if of_rest > 0 else np.nan
    within = [np.sqrt(max(of_seeds - of_rest, 0.0) / clusters)]
    within += [np.sqrt(max(of_clusters - of_rest, 0.0) / seeds), np.sqrt(of_rest)]
    numbers = map(float, (shares.mean(), sd, low, high, *within, p))
    note = "" if of_rest > 0 else "no test: no cluster differs between seeds"
    return {**dict(zip(COMPONENTS, numbers, strict=True)), **counts, "note": note}


def seed_table(pairs: pd.DataFrame, *, measures: list[str], cluster: str) -> pd.DataFrame:
    """One row per model and measure: model, measure and what `seed_components` gives.

    Rows are those of a model, seed and pair; the values of the cluster, such as the entity, do not
    depend on the seed.
    """
    rows = []
    for cell, of_model in grouped(pairs, ["model"]):
        for measure in measures:
            judged = of_model.dropna(subset=[measure]).astype({measure: float})
            table = judged.pivot_table(index=cluster, columns="seed", values=measure).dropna()
            components = seed_components(table.to_numpy(dtype=float))
            rows.append({**cell, "measure": measure, **components})
    return pd.DataFrame(rows)
