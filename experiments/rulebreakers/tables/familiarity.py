"""Familiarity of cities and countries, and whether it goes with recognition."""

import numpy as np
import pandas as pd

from interp.statistics.clusters import ClusterContrast, cluster_contrast_table
from interp.statistics.decisions import holm
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.columns import CLUSTER, WEIGHT
from interp_experiments.rulebreakers.tables.comparisons import (
    every_model,
    finding_words,
    papers_test,
)

ALL = "all"
"""The comparison that is tested: all cities, by the first token of the country, as in the paper."""


def familiarity(results: Results) -> pd.DataFrame:
    """Familiarity of recognized and failed cities, one row per model and set of cities (Figure 6).

    `difference` is the familiarity of recognized pairs minus that of failed ones, with an interval
    over cities: a city has one familiarity, however many of its prompts were asked
    (`interp.statistics.clusters`). Tested are all cities, by the probability of the first token, as
    the paper defines familiarity: one test a model. The others only describe how robust it is, and
    have neither p nor finding, since they would be the same test again: the cities whose country
    shares its first token with no other, where there are any, and all cities by the probability of
    the country's whole name.

    The columns that end in `_paper` are the paper's: Welch's test that counts a city once for each
    of its pairs of prompts, and rejects most true hypotheses of no difference.
    """
    pairs = results.pairs()
    pairs["group"] = pairs["recognized"].map({True: "recognized", False: "failed"})
    tested = _compared(results, pairs, "familiarity")
    table = holm(tested.assign(cities=ALL), family="familiarity")
    words = finding_words(table, more="recognized more familiar", less="recognized less familiar")
    described = [
        _compared(results, chosen, value).assign(cities=name, finding="", p=np.nan)
        for name, chosen, value in (
            ("own first token", pairs[pairs["shared_with"] == 0], "familiarity"),
            ("all, by P(whole name)", pairs, "whole_name"),
        )
        if len(chosen)
    ]
    table = pd.concat([table.assign(finding=words), *described], ignore_index=True)
    first = ["model", "cities", "finding", "difference", "low", "high", "p", "p_holm"]
    return table[[*first, *table.columns.drop(first)]]


def _compared(results: Results, pairs: pd.DataFrame, value: str) -> pd.DataFrame:
    """Recognized against failed pairs by one measure of familiarity, and the paper's test of it."""
    groups = ("recognized", "failed")
    table = cluster_contrast_table(
        pairs, value=value, group="group", groups=groups, cluster=CLUSTER, weight=WEIGHT
    )
    table = every_model(table, results, ClusterContrast).drop(columns=["group_a", "group_b"])
    names = {
        f"{column}_{letter}": f"{column}_{group}"
        for column in ("mean", "low", "high", "clusters", "trials")
        for letter, group in zip("ab", groups, strict=True)
    }
    paper = papers_test(pairs, value=value, group="group", groups=groups)
    return table.rename(columns=names).merge(paper, on="model", how="left")


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
