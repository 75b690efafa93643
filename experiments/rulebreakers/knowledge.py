"""Familiarity of recognized and failed cities (Section 6), and what it measures."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from interp.extend import counted
from interp.extend.page import FigureItem, Number, Section, TableItem, n_units
from interp.extend.statistics import ClusterContrast, cluster_contrast, table_by
from interp_experiments.rulebreakers import sensitivity
from interp_experiments.rulebreakers.results import CLUSTER, WEIGHT, Results

ALL = "all"
"""All cities, by the first token of the country, as in the paper: the comparison that is tested."""

_MORE, _LESS = "recognized more familiar", "recognized less familiar"
_GROUPS = ("recognized", "failed")


def familiarity(results: Results) -> pd.DataFrame:
    """Familiarity of recognized minus failed cities, by model and set of cities (Figure 6).

    Intervals are over cities: a city has one familiarity, however many prompts are about it. Only
    all cities by the first token are tested, as in the paper; further rows would repeat the test.
    """
    pairs = results.pairs()
    tested = sensitivity.judged(
        _compared(pairs, results, "familiarity"), family="familiarity", more=_MORE, less=_LESS
    )
    others = (
        ("own first token", pairs[pairs["shared_with"] == 0], "familiarity"),
        ("all, by P(whole name)", pairs, "whole_name"),
        ("all, after an echo", pairs.dropna(subset="after_echo"), "after_echo"),
    )
    described = [
        _compared(chosen, results, value).assign(cities=name, finding="", p=np.nan)
        for name, chosen, value in others
        if len(chosen)
    ]
    table = pd.concat([tested.assign(cities=ALL), *described], ignore_index=True)
    # pandas turns counts into floats where rows lack them.
    table = table.astype(dict.fromkeys(["n_a_paper", "n_b_paper", "family_size"], "Int64"))
    first = ["model", "cities", "finding", "difference", "low", "high", "p", "p_holm"]
    return table[[*first, *table.columns.drop(first)]]


def _compared(pairs: pd.DataFrame, results: Results, value: str) -> pd.DataFrame:
    trials = sensitivity.of_every_model(pairs, results)
    how = {"value": value, "group": "group", "groups": _GROUPS}
    how |= {"cluster": CLUSTER, "weight": WEIGHT}
    table = table_by(trials, ["model"], ClusterContrast, cluster_contrast, **how)
    names = {
        f"{column}_{letter}": f"{column}_{group}"
        for column in ("mean", "low", "high", "clusters", "trials")
        for letter, group in zip("ab", _GROUPS, strict=True)
    }
    paper = sensitivity.papers_test(pairs, value=value, group="group", groups=_GROUPS)
    return table.rename(columns=names).merge(paper, on="model", how="left")


def familiar(table: pd.DataFrame) -> str:
    """A sentence on familiarity and recognition, over all models."""
    rows = table[table["cities"] == ALL]
    more, less, untested = map(list(rows["finding"]).count, (_MORE, _LESS, sensitivity.NOT_TESTED))
    most, tested = int(rows["clusters"].max()), len(rows) - untested
    n = n_units(most, most, "cities")
    if not tested:
        return (
            "Whether recognized cities are more familiar than failed ones was not tested for "
            f"{'any model' if untested > 1 else 'the model'}: too few of either; {n}."
        )
    return (
        f"Recognized cities proved more familiar than failed ones to {more} of "
        f"{counted(tested, 'model')} tested, less familiar to {less}; {untested} not tested; {n}."
    )


def knowledge_section(results: Results) -> Section:
    """Figure 6 and the knowledge filter."""
    table = familiarity(results)
    return Section(
        "Knowledge and familiarity",
        'Familiarity is the probability of the first token of the country after "Complete the '
        'sentence: [city] is in", as in the paper. A reply that begins by repeating the sentence '
        "makes it low even for known facts, and a token that begins several countries cannot tell "
        "them apart; the further rows of the table do not depend on this.",
        (
            FigureItem(
                "figure6_familiarity",
                "Familiarity of recognized and failed cities (Figure 6)",
                partial(draw_familiarity, table[table["cities"] == ALL], results.pairs()),
                "Dots: cities (a city is in both groups if only some of its pairs are "
                "recognized); area: number of pairs. Large points: mean over pairs; whiskers: "
                "95% interval, bootstrap over cities; n: cities. p: from the same bootstrap, "
                "corrected by Holm's method over the models.",
            ),
            TableItem(
                "familiarity",
                "Familiarity and recognition",
                table,
                "Each model has one test, over all cities asked about. Further rows, which are not "
                "tested, describe how robust the result is: one for the cities whose country "
                "shares its first token with no other country, and two for all cities, by the "
                "probability of the country's whole name and after an echo. Columns that end in "
                "_paper are Welch's test over pairs of prompts, as in the paper, which counts a "
                "city once per question and so finds differences where none exist.",
            ),
            TableItem(
                "facts_by_wording",
                "Facts completed, by wording",
                results.worded,
                "Share of facts whose greedy completion names the answer. All other tables use the "
                "wording of the paper, as asked.",
            ),
            TableItem(
                "unknown_pairs",
                "Entity pairs that a model does not complete as asked",
                results.unknown,
                "In the wording of the paper; a model may complete them in another. Geographical "
                "ones are excluded from the rest of the page for all models (Section 4.1). "
                "Categorical ones are kept, as in the paper, whose authors checked them by hand.",
            ),
        ),
    )


def draw_familiarity(table: pd.DataFrame, pairs: pd.DataFrame) -> Axes:
    """Figure 6, with a dot per city: rows of `familiarity` about all, and `Results.pairs`."""
    columns = {"mean": "familiarity", "low": "low", "high": "high", "clusters": "clusters"}
    means = pd.concat(
        table[["model", "p_holm", *(f"{name}_{group}" for name in columns)]]
        .rename(columns={f"{name}_{group}": shown for name, shown in columns.items()})
        .assign(group=group)
        for group in _GROUPS
    )
    cities = pairs.dropna(subset="familiarity").groupby(["model", CLUSTER, "group"], sort=False)
    dots = cities["familiarity"].agg(familiarity="first", pairs="size").reset_index()
    return sensitivity.draw_clusters(dots, means, x="familiarity")


def familiarity_numbers(results: Results) -> Iterator[Number]:
    """How familiar each model is with the city that a pair is about."""
    for model, rows in results.pairs().dropna(subset="familiarity").groupby("model", sort=False):
        values = dict(zip(rows["pair_id"], rows["familiarity"].astype(float), strict=True))
        yield Number("familiarity", {"model": str(model)}, values)
