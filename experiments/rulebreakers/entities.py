"""Entity pairs: their accuracy and its correlates (Appendix G)."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy import stats

from interp.extend import counted, figures, page
from interp.extend.results import column_name
from interp.extend.statistics import FEWEST, grouped, holm, shrunken_shares, spearman_table
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import CLUSTER, Results

PERMUTATIONS = 9999


def entities(results: Results) -> pd.DataFrame:
    """One row per model and entity pair, with the number of its pairs.

    {method}_ratio is the mean of the defined score ratios over both sides; only cities have a
    familiarity, a probability.
    """
    keys = ["model", CLUSTER]
    by_entity = results.judged("entity_group").groupby(keys, sort=False)
    shares = by_entity[[*SIDES, "paired"]].mean().add_suffix("_accuracy").astype(float)
    scores = results.ratios[["model", "prompt_id", "method", "ratio"]].merge(
        results.prompts[["prompt_id", CLUSTER]], on="prompt_id", validate="many_to_one"
    )
    by_method = scores.groupby([*keys, "method"], sort=False)["ratio"].mean().unstack()
    by_method = by_method.rename(columns=column_name).add_suffix("_ratio")
    table = shares.assign(pairs=by_entity.size()).join(by_method)
    table = table.join(results.cities().set_index(keys)["familiarity"])
    table = table.join(by_entity["entity_group"].first()).reset_index()
    return table[[CLUSTER, "model", *table.columns.drop([CLUSTER, "model"])]]


def entity_correlations(results: Results) -> pd.DataFrame:
    """Spearman's correlations across each model's entity pairs (for familiarity, across cities)."""
    ratios = ("gradient_ratio", "attention_ratio")
    pairs = [(name, "paired_accuracy") for name in ("familiarity", *ratios)]
    pairs += [("familiarity", ratio) for ratio in ratios]
    table = spearman_table(entities(results), pairs=pairs, by=["model"])
    return holm(table, family="across entity pairs")


def draw_familiarity(table: pd.DataFrame, correlations: pd.DataFrame) -> Axes:
    """One panel per model, one point per city (rows of `entities`), with `entity_correlations`."""
    chosen = correlations.query("x == 'familiarity' and y == 'paired_accuracy'")
    by_model = chosen.set_index("model")

    def draw(rows: pd.DataFrame, ax: Axes) -> Axes:
        ax = figures.point_cloud(rows, x="familiarity", y="paired_accuracy", size="pairs", ax=ax)
        rho, p = by_model.loc[rows["model"].iloc[0], ["rho", "p_holm"]]
        stated = f"rho {page.number_text(rho)}, p {page.number_text(p, p_value=True)}"
        ax.set_xlabel(f"{ax.get_xlabel()}\n{stated}")
        return ax

    return figures.panel_a_model(table, draw)


def extremes(entities: pd.DataFrame, *, k: int = 10) -> pd.DataFrame:
    """The k entity pairs with the highest estimated accuracy and the k with the lowest.

    Estimates are shrunk towards the overall mean (`interp.statistics.proportions`), since otherwise
    both ends would consist of the entity pairs with the fewest prompts. share: of pairs answered
    correctly, as a mean over models. Ties are ordered by name. None is at both ends: of fewer than
    2 k, the better half is at one. There are no rows if all estimates are equal.
    """
    cells = entities.dropna(subset=["paired_accuracy"])
    ranked = shrunken_shares(cells, group=CLUSTER, by="model", share="paired_accuracy", n="pairs")
    ranked = ranked.rename(columns={"cells": "models"})
    if ranked["estimate"].max() - ranked["estimate"].min() <= 1e-9:
        ranked = ranked[:0]  # they differ by rounding: names would decide who is at which end
    half = (len(ranked) + 1) // 2
    best = ranked.sort_values(["estimate", CLUSTER], ascending=[False, True]).head(min(k, half))
    worst = ranked.drop(best.index).sort_values(["estimate", CLUSTER]).head(k)
    separate = best[["low"]].to_numpy() > worst["high"].to_numpy()
    ends = [
        best.assign(end="most", apart=separate.sum(axis=1)),
        worst.assign(end="least", apart=separate.sum(axis=0)),
    ]
    first = ["end", CLUSTER, "estimate", "low", "high", "apart"]
    last = ["share", "trials", "effective_trials", "models"]
    return pd.concat(ends, ignore_index=True)[[*first, *last]]


def overlap(ends: pd.DataFrame) -> str:
    """A sentence on how far the intervals at the two ends of `extremes` overlap."""
    most, least = (ends[ends["end"] == end] for end in ("most", "least"))
    pairs, apart = len(most) * len(least), int(most["apart"].sum())
    if ends.empty:
        return "All estimates are equal, so no entity pair is listed."
    if not apart:
        return "All intervals at one end overlap those at the other, so this is not a ranking."
    return (
        f"In {apart:,} of {pairs:,} comparisons between the ends, intervals do not overlap; the "
        "other pairs are not ranked."
    )


def names_within(results: Results) -> pd.DataFrame:
    """Cities whose names contain their country's name, compared with other cities (Appendix G)."""
    facts = results.familiarity.drop_duplicates(CLUSTER).set_index(CLUSTER)
    cities = entities(results).query("entity_group == 'geographical'")
    names = facts.loc[cities[CLUSTER], ["entity_a", "entity_b"]].to_numpy()
    named = cities.assign(city_contains_country=[country in city for country, city in names])
    table = feature_contrast(named, "city_contains_country")
    return holm(table, family="cities that contain their country")


def feature_contrast(entities: pd.DataFrame, feature: str) -> pd.DataFrame:
    """Paired accuracy of the entity pairs with a feature minus that of the others, by model.

    p is two-sided: twice the smaller share of reassignments of the boolean column `feature`
    whose difference of means is at least as large, over 9,999 drawn with a fixed seed plus the
    observed one. The test assumes nothing about the distribution of accuracies, many of which
    are 0 or 1; missing ones are left out.
    """
    rows = []
    for of, own in grouped(entities.dropna(subset="paired_accuracy"), ["model"]):
        has, values = own[feature].astype(bool), own["paired_accuracy"].astype(float)
        sides = {"with": values[has], "without": values[~has]}
        p, note = _permuted(sides)
        means = {f"mean_{name}": side.mean() for name, side in sides.items()}
        row = {**of, "feature": feature, "difference": means["mean_with"] - means["mean_without"]}
        counts = {f"n_{name}": len(side) for name, side in sides.items()}
        rows.append({**row, "p": p, **counts, **means, "note": note})
    counted_by = ["n_with", "n_without", "mean_with", "mean_without"]
    return pd.DataFrame(rows, columns=["model", "feature", "difference", "p", *counted_by, "note"])


def _permuted(sides: Mapping[str, pd.Series]) -> tuple[float, str]:
    """The p of a difference of means, or NaN and the reason."""
    for name, side in sides.items():
        if len(side) < FEWEST:
            few = f"{counted(len(side), 'entity pair')} {name} the feature"
            return np.nan, f"not tested, for lack of power: {few}, at least {FEWEST} needed"
    if pd.concat(sides).nunique() == 1:
        return np.nan, "undefined: all values equal"
    found = stats.permutation_test(
        [side.to_numpy() for side in sides.values()],
        lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        vectorized=True,
        n_resamples=PERMUTATIONS,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue), ""


def entity_section(results: Results) -> page.Section:
    """Appendix G."""
    table = entities(results)
    ends = extremes(table)
    return page.Section(
        "Entity pairs",
        "Which entity pairs are answered well? Does it help if the name of a city contains that "
        "of its country?",
        (
            page.TableItem(
                "entity_extremes",
                "Entity pairs with the highest and the lowest estimates (Appendix G)",
                ends,
                f"{overlap(ends)} Estimates are empirical Bayes: the fewer trials an entity pair "
                "has, the more its estimate shrinks towards the overall mean. Intervals are 95%. "
                "If all estimates are equal, entity pairs differ no more than by chance. apart: "
                "number of entity pairs at the other end whose intervals do not overlap. trials: "
                "pairs of prompts times models; effective_trials: number of trials, corrected "
                "for the correlation of a model's answers about one entity pair.",
            ),
            page.TableItem(
                "names_within",
                "Cities that contain their country's name (Appendix G)",
                names_within(results),
                "With fewer than ten such cities, the test has no power and is omitted.",
            ),
            page.TableItem(
                "entities", "All entity pairs", table, "familiarity is defined for cities only."
            ),
        ),
    )
