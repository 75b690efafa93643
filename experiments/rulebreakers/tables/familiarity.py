"""Familiarity of cities and countries, and whether it goes with recognition."""

import pandas as pd

from interp.analysis.clusters import ClusterContrast, cluster_contrast_table
from interp.analysis.corrections import holm
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.columns import CLUSTER, WEIGHT
from interp_experiments.rulebreakers.tables.comparisons import (
    every_model,
    finding_words,
    papers_test,
)


def familiarity(results: Results) -> pd.DataFrame:
    """Familiarity of recognized and failed cities, one row per model and set of cities (Figure 6).

    `difference` is the familiarity of recognized pairs minus that of failed ones, tested over
    cities: a city has one familiarity, however many of its prompts were asked
    (`interp.analysis.clusters`). Once all cities, once those whose country shares no first token
    with another, and once by the probability of the country's whole name, which first tokens that
    countries share do not blur.

    The columns that end in `_paper` are the paper's: Welch's test that counts a city once for each
    of its pairs of prompts, and rejects most true hypotheses of no difference.
    """
    pairs = results.pairs()
    pairs["group"] = pairs["recognized"].map({True: "recognized", False: "failed"})
    sets = {
        "all": (pairs, "familiarity"),
        "own first token": (pairs[pairs["shared_with"] == 0], "familiarity"),
        "all, by P(whole name)": (pairs, "whole_name"),
    }
    tables = []
    for name, (chosen, value) in sets.items():
        groups = ("recognized", "failed")
        table = cluster_contrast_table(
            chosen,
            value=value,
            group="group",
            groups=groups,
            cluster=CLUSTER,
            weight=WEIGHT,
        )
        table = every_model(table, results, ClusterContrast)
        paper = papers_test(chosen, value=value, group="group", groups=groups)
        table.insert(1, "cities", name)
        tables.append(table.merge(paper, on="model", how="left"))
    table = holm(pd.concat(tables, ignore_index=True), family="familiarity")
    words = finding_words(table, more="recognized more familiar", less="recognized less familiar")
    first = ["model", "cities", "finding", "difference", "low", "high", "p", "p_holm"]
    names = {
        f"{value}_{letter}": f"{value}_{group}"
        for value in ("mean", "low", "high", "clusters", "trials")
        for letter, group in zip("ab", groups, strict=True)
    }
    table = table.assign(finding=words).drop(columns=["group_a", "group_b"])
    return table[[*first, *table.columns.drop(first)]].rename(columns=names)


def city_familiarity(results: Results) -> pd.DataFrame:
    """One row per model, city and group: familiarity, group ("recognized", "failed"), pairs."""
    pairs = results.pairs()
    pairs["group"] = pairs["recognized"].map({True: "recognized", False: "failed"})
    grouped = pairs.groupby(["model", "entity_pair", "group"], sort=False)["familiarity"]
    return grouped.agg(familiarity="first", pairs="size").reset_index()


def shared_first_tokens(results: Results) -> pd.DataFrame:
    """How many countries share their first token with another, by model: answers, sharing."""
    cities = results.cities()
    answers = cities.assign(shared=cities["shared_with"] > 0)
    grouped = answers.drop_duplicates(["model", "entity_a"]).groupby("model", sort=False)["shared"]
    return grouped.agg(answers="size", sharing="sum").reset_index()
