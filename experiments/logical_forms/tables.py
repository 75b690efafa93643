"""The tables of the study of LogicalForms (paper, Tables 1, A2 and A3, and the figures)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import logit

from interp.extend import statistics
from interp_experiments.logical_forms.effects import RESPONSES
from interp_experiments.logical_forms.forms import ARGUMENT_FORMS, MODALITIES, distribution_forms
from interp_experiments.logical_forms.results import (
    CLUSTER,
    Results,
    clustered_means,
    typical_perplexity,
)
from interp_experiments.logical_forms.system import YES

SMALLEST_SHARE = 1e-6
"""Shares are kept at least this far from 0 and 1, so that their log-odds are finite."""

FORM_CHANGES = [
    *((f"{m} {form}", f"{m} base") for m in MODALITIES[1:] for form in ("theorem", "spurious")),
    *((f"box {form}", f"diamond {form}") for form in ("base", "theorem", "spurious")),
]
"""Comparisons in Appendix C.2: forms within a modality, and modalities within a form."""


def models(results: Results) -> pd.DataFrame:
    """One row per model: whether it answers, its perplexities, and whether mixed models include it.

    Perplexities are geometric means.
    """
    by_set = {stage: rows.groupby("model") for stage, rows in results.scores.items()}
    main = by_set["questions"]
    table = pd.DataFrame(
        {
            "model": results.models,
            "in_mixed_models": [model in results.competent for model in results.models],
            "why_not": [results.incompetence[model] for model in results.models],
            "probability_of_Yes_and_No": main["answered"].mean()[results.models].to_numpy(),
            "vocabulary": [results.vocabulary[model] for model in results.models],
        }
    )
    for stage, groups in by_set.items():
        table[f"perplexity_{stage}"] = typical_perplexity(groups)[results.models].to_numpy()
    return table


def accuracy(rows: pd.DataFrame) -> pd.DataFrame:
    """Soft accuracy, one row per model (Table 1): overall, by modality and form; and n."""
    by_model = rows.groupby("model", sort=False)
    columns = {"overall": by_model["soft_accuracy"].mean()}
    for factor, levels in (("modality", MODALITIES), ("argument_form", tuple(ARGUMENT_FORMS))):
        means = rows.groupby(["model", factor], observed=True)["soft_accuracy"].mean().unstack()
        means = means.reindex(columns=list(levels))
        columns |= {level: means[level] for level in levels}
    columns["n"] = by_model.size()
    return pd.DataFrame(columns).rename_axis("model").reset_index()


def intervals(rows: pd.DataFrame) -> pd.DataFrame:
    """Means of soft and hard accuracy (measure) with 95% intervals, by model, factor and level."""
    parts = []
    for factor in ("all", "modality", "argument_form"):
        chosen = rows.assign(all="all").dropna(subset=factor)
        chosen = chosen.assign(factor=factor, level=chosen[factor].astype(str))
        for score in ("soft_accuracy", "hard_accuracy"):
            part = _with_interval(chosen, score, by=["model", "factor", "level"])
            part.insert(3, "measure", score.replace("_", " "))
            parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _with_interval(rows: pd.DataFrame, value: str, *, by: Sequence[str]) -> pd.DataFrame:
    """Like `clustered_means`, but the interval for hard accuracy is that of a proportion."""
    if value != "hard_accuracy":
        return clustered_means(rows, value, by=by)
    table = statistics.proportions(rows, values=[value], by=by, cluster=CLUSTER)
    table = table.rename(columns={"share": "mean", "clusters": "interpretations"})
    return table[[*by, "mean", "low", "high", "n", "interpretations"]]


def _several_means(rows: pd.DataFrame, values: Sequence[str], *, by: Sequence[str]) -> pd.DataFrame:
    """`by`; VALUE, VALUE_low and VALUE_high for each of several scores; n, interpretations."""
    parts = []
    for value in values:
        names = {"mean": value, "low": f"{value}_low", "high": f"{value}_high"}
        parts.append(_with_interval(rows, value, by=by).rename(columns=names).set_index(list(by)))
    means = [part.drop(columns=["n", "interpretations"]) for part in parts[:-1]]
    return pd.concat([*means, parts[-1]], axis="columns").reset_index()


def cells(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the distribution forms with an added column `cell`, such as "box theorem".

    The factors modality and form do not cross (without modality there is no scope), so their
    interaction is coded as one factor with a level for each form.
    """
    names = rows["modality"].astype(str) + " " + rows["argument_form"].astype(str)
    order = [f"{form.modality} {form.group}" for form in distribution_forms()]
    return rows.assign(cell=pd.Categorical(names, order))


def distribution(rows: pd.DataFrame) -> pd.DataFrame:
    """`RESPONSES` and hard accuracy with intervals, one row per model and form (Table A3)."""
    keys = ["model", "modality", "argument_form", "formula", "gold"]
    return _several_means(rows, [*RESPONSES, "hard_accuracy"], by=keys)


def by_form(results: Results) -> pd.DataFrame:
    """One row per model, form and set (questions, nonsense): mean scores and perplexity.

    The mean of the soft accuracy has its 95% interval; perplexities are geometric means.
    """
    keys = ["model", "form", "modality", "argument_form", "gold"]
    parts = []
    for stage in ("questions", "nonsense"):
        groups = results.scores[stage].groupby(keys, observed=True, sort=False)
        means = groups[["soft_accuracy", "hard_accuracy", "relative_positive"]].mean()
        means["perplexity"] = typical_perplexity(groups)
        ends = clustered_means(results.scores[stage], "soft_accuracy", by=keys).set_index(keys)
        for place, end in enumerate(("low", "high"), 1):
            means.insert(place, f"soft_accuracy_{end}", ends[end])
        parts.append(means.assign(n=groups.size()).reset_index().assign(set=stage))
    return pd.concat(parts, ignore_index=True)


def affirmation(results: Results) -> pd.DataFrame:
    """The inclination to Yes separated from ability, by model and modality, in log-odds.

    bias is the mean log-odds of Yes over theorems and fallacies in equal parts: above 0 for a bias
    to Yes. sensitivity is the mean log-odds of the correct answer: 0 if answers do not depend on
    validity. In signal detection with logistic noise (DeCarlo, 1998, Psychological Methods 3),
    sensitivity is half of d, and bias is the criterion with the opposite sign.
    """
    rows = results.pooled("questions").sort_values("modality", kind="stable")
    scores = {"bias": "relative_positive", "sensitivity": "soft_accuracy"}
    inside = rows[list(scores.values())].clip(SMALLEST_SHARE, 1 - SMALLEST_SHARE)
    odds = {name: logit(inside[score]) for name, score in scores.items()}
    each = rows.assign(modality=rows["modality"].astype(str), **odds)
    rows = pd.concat([each.assign(modality="all"), each])
    return _several_means(rows, ["bias", "sensitivity"], by=["model", "modality"])


TOGETHER = "all that answer and read"
"""The value in the column model for rows that combine several models."""


def perplexity_correlations(results: Results) -> pd.DataFrame:
    """Spearman's correlation of perplexity with soft accuracy.

    Across forms it includes the effects of the forms themselves: necessity makes a question
    both longer and harder. Within a form only names and verb phrases differ.

    One row per model, set and selection of forms: rho, low, high, n, interpretations; first one
    (`TOGETHER`) for all models that answer and read this set, whose questions are ranked together
    by perplexity in standard deviations from each model's own mean. The 95% interval is a
    percentile bootstrap over interpretations, each of which has the same words in all forms.
    """
    rows = []
    for stage in ("questions", "nonsense"):
        scores = results.scores[stage]
        of_each = {model: scores[scores["model"] == model] for model in results.models}
        together = scores[scores["model"].isin(results.reading(stage))]
        for name, asked in {TOGETHER: together, **of_each}.items():
            for words, within in (("", ()), ("within ", ("model", "form"))):
                for which, chosen in (("valid", asked[asked["gold"] == YES.name]), ("all", asked)):
                    of = {"model": name, "set": stage, "forms": f"{words}{which} forms"}
                    rows.append({**of, **rank_correlation(chosen, within)})
    return pd.DataFrame(rows)


def rank_correlation(rows: pd.DataFrame, within: Sequence[str] = ()) -> dict[str, float]:
    """Spearman's rho between relative perplexity and soft accuracy, with a bootstrap over clusters.

    Ranks are taken and centered in groups of equal `within`; rho is the mean over equal groups.
    """
    counted = {"n": len(rows), "interpretations": rows[CLUSTER].nunique()}
    x, y = (_ranks(rows, name, within) for name in ("relative_perplexity", "soft_accuracy"))
    if len(rows) < 3 or not (np.ptp(x) and np.ptp(y)):
        return {"rho": float("nan"), "low": float("nan"), "high": float("nan"), **counted}
    products = np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y])
    sums = pd.DataFrame(products).groupby(rows[CLUSTER].to_numpy()).sum().to_numpy()
    rho = float(_correlation(sums.sum(axis=0)[None, :])[0])
    resampled = _correlation(statistics.bootstrap_sums(sums, resamples=2_000))
    low, high = statistics.percentile_interval(resampled[~np.isnan(resampled)])
    return {"rho": rho, "low": low, "high": high, **counted}


def _ranks(rows: pd.DataFrame, name: str, within: Sequence[str]) -> Float[np.ndarray, " rows"]:
    groups = [rows[column] for column in within] or [pd.Series(0, rows.index)]
    ranks = rows[name].groupby(groups, observed=True).rank()
    return np.asarray(ranks - ranks.groupby(groups, observed=True).transform("mean"), dtype=float)


def _correlation(sums: Float[np.ndarray, "samples 6"]) -> Float[np.ndarray, " samples"]:
    """Pearson's correlation from n and the sums of x, y, x x, y y and x y."""
    n, x, y, xx, yy, xy = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((n * xy - x * y) / np.sqrt((n * xx - x**2) * (n * yy - y**2)))
