"""Does perplexity go with soft accuracy: over all forms, over valid ones, and within a form.

Over several forms a correlation is mixed with what the forms themselves do: necessity makes a
question both longer and harder. Within a form only names and verb phrases differ.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.statistics.resampling import bootstrap_sums
from interp.statistics.summaries import percentile_interval
from interp_experiments.logical_forms.means import CLUSTER
from interp_experiments.logical_forms.results import Results

RESAMPLES = 2_000

TOGETHER = "all that answer and read"
"""Stands for a model's name where models are taken together."""

_SELECTIONS: dict[str, tuple[bool, tuple[str, ...]]] = {
    "valid forms": (True, ()),
    "all forms": (False, ()),
    "within valid forms": (True, ("model", "form")),
    "within all forms": (False, ("model", "form")),
}
"""Which questions: only valid ones, and what they are ranked within."""


def perplexity_correlations(results: Results) -> pd.DataFrame:
    """Spearman's correlation of perplexity with soft accuracy.

    One row per model, set of questions and selection of forms, and before them one of all models
    that answer and read, `TOGETHER`: model, set, forms, rho, low, high, n, interpretations. The
    interval is the 95% percentile bootstrap over interpretations, which have the same words in all
    forms. All models together are ranked by perplexity in standard deviations of their own
    questions.
    """
    rows = [
        {"model": name, "set": stage, "forms": forms, **rank_correlation(chosen, within)}
        for stage, name, scores in _parts(results)
        for forms, (valid, within) in _SELECTIONS.items()
        for chosen in [scores[scores["gold"] == "Yes"] if valid else scores]
    ]
    columns = ["model", "set", "forms", "rho", "low", "high", "n", "interpretations"]
    return pd.DataFrame(rows, columns=columns)


def rank_correlation(rows: pd.DataFrame, within: Sequence[str] = ()) -> dict[str, float]:
    """Spearman's rho of relative perplexity and soft accuracy, with a bootstrap over clusters.

    `within` names columns in whose groups the ranks are taken and centred: rho is then the mean of
    those of the groups, if these are of equal size.
    """
    counted = {"n": len(rows), "interpretations": rows[CLUSTER].nunique()}
    ranks = np.column_stack(
        [_ranks(rows, name, within) for name in ("relative_perplexity", "soft_accuracy")]
    )
    if len(rows) < 3 or (np.ptp(ranks, axis=0) == 0).any():
        return {"rho": float("nan"), "low": float("nan"), "high": float("nan"), **counted}
    x, y = ranks.T
    products = np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y])
    sums = pd.DataFrame(products).groupby(rows[CLUSTER].to_numpy()).sum().to_numpy()
    rho = float(_correlation(sums.sum(axis=0)[None, :])[0])
    resampled = _correlation(bootstrap_sums(sums, resamples=RESAMPLES))
    low, high = percentile_interval(resampled[~np.isnan(resampled)])
    return {"rho": rho, "low": low, "high": high, **counted}


def _parts(results: Results) -> Iterator[tuple[str, str, pd.DataFrame]]:
    for stage in ("questions", "nonsense"):
        scores = results.scores[stage]
        together = scores[scores["model"].isin(results.competent)]
        yield stage, TOGETHER, together
        for model in results.models:
            yield stage, model, scores[scores["model"] == model]


def _ranks(rows: pd.DataFrame, name: str, within: Sequence[str]) -> Float[np.ndarray, " rows"]:
    if not within:
        ranks = rows[name].rank()
        return np.asarray(ranks - ranks.mean(), dtype=float)
    groups = [rows[column] for column in within]
    ranks = rows[name].groupby(groups, observed=True).rank()
    return np.asarray(ranks - ranks.groupby(groups, observed=True).transform("mean"), dtype=float)


def _correlation(sums: Float[np.ndarray, "samples 6"]) -> Float[np.ndarray, " samples"]:
    """Pearson's correlation from n and the sums of x, y, x x, y y and x y."""
    n, x, y, xx, yy, xy = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((n * xy - x * y) / np.sqrt((n * xx - x**2) * (n * yy - y**2)))
