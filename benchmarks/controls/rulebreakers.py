"""The tests in the report of RULEBREAKERS, run on one simulated study."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.controls.rates import Tested
from benchmarks.controls.tables import EVERYTHING, NOTHING, rulebreakers
from interp.analysis.accuracy import pairs_of
from interp.statistics import contrasts
from interp.statistics.classical import spearman
from interp_experiments.rulebreakers.accuracy import accuracy
from interp_experiments.rulebreakers.accuracy import contrasts as contrast_rows
from interp_experiments.rulebreakers.entities import entity_correlations
from interp_experiments.rulebreakers.knowledge import familiarity
from interp_experiments.rulebreakers.prompt_models import prompt_models
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.sensitivity import (
    answered_pairs,
    confidence,
    positive_answers,
    sensitivity,
)
from interp_probes.linear.probes import linear_probes


def of_rulebreakers(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """Every test in the report of RULEBREAKERS."""
    with TemporaryDirectory() as folder:
        results = rulebreakers(rng, EVERYTHING if planted else NOTHING, Path(folder))
        told_apart = sensitivity(results)
        return [
            *_of_table(familiarity(results), "familiarity", by="cities"),
            *_of_table(confidence(results), "confidence within pairs"),
            *_of_concordance(results, told_apart),
            *of_contrasts(results),
            *_of_table(entity_correlations(results), "across entity pairs", by=["x", "y"]),
            *_of_table(_prompt_models(results), "across prompts", by="term"),
            *_of_probes(results),
            *_of_sentences(results, told_apart),
        ]


def _prompt_models(results: Results) -> pd.DataFrame:
    """The regression for one model and method, which takes as long as all other tests combined."""
    answers, ratios = results.answers, results.ratios
    return prompt_models(
        replace(
            results,
            answers=answers[answers["model"] == results.models[0]],
            ratios=ratios[ratios["method"] == "attention"],
        )
    )


def _of_table(table: pd.DataFrame, name: str, *, by: str | list[str] = ()) -> Iterator[Tested]:
    """One test per row of a table with p and p_holm."""
    keys = [by] if isinstance(by, str) else list(by)
    for row in table.to_dict("records"):
        label = ", ".join([name, *(str(row[key]).replace("_", " ") for key in keys)])
        yield Tested(
            f"{label}@{row['model']}",
            row["p"],
            family=name,
            p_holm=row["p_holm"],
            naive=row.get("p_paper", np.nan),
            low=row.get("low", np.nan),
            high=row.get("high", np.nan),
        )


def _of_concordance(results: Results, table: pd.DataFrame) -> Iterator[Tested]:
    pairs = answered_pairs(positive_answers(results))
    higher = pairs[f"relative_{SIDES[1]}"] > pairs[f"relative_{SIDES[0]}"]
    for row in table.to_dict("records"):
        own = higher[pairs["model"] == row["model"]]
        naive = stats.binomtest(int(own.sum()), len(own)).pvalue
        yield Tested(
            f"concordance@{row['model']}",
            row["p"],
            family="concordance",
            p_holm=row["p_holm"],
            naive=float(naive),
            low=row["low"] - 0.5,
            high=row["high"] - 0.5,
        )


def of_contrasts(results: Results) -> Iterator[Tested]:
    """The contrasts, and chi-square tests that treat pairs as independent."""
    pairs = pairs_of(
        results.answers,
        results.prompts,
        keep=["rule", "entity_group", "phrasing", "question_verb"],
        sides=SIDES,
    )
    pairs["paired"] = pairs[list(SIDES)].all(axis=1)
    for row in contrast_rows(results).to_dict("records"):
        factor = row["factor"]
        rows = pairs if factor == "model" else pairs[pairs["model"] == row["model"]]
        named = row["status"] == contrasts.CONFIRMATORY
        yes = rows["paired"].groupby(rows[factor]).agg(["sum", "size"]).to_numpy(float)
        counts = np.column_stack([yes[:, 0], yes[:, 1] - yes[:, 0]]) + 1e-9
        yield Tested(
            f"contrast, {factor.replace('_', ' ')}@{row['model']}",
            row["p"],
            family="named contrasts" if named else "",
            p_holm=row["p_holm"],
            naive=float(stats.chi2_contingency(counts).pvalue),
            low=row["low"],
            high=row["high"],
        )


def _of_probes(results: Results) -> Iterator[Tested]:
    table = linear_probes(results.residuals, results.probed, results.probed_answers)
    for row in table[(table["prompts"] == "all")].to_dict("records"):
        counted = (round(row["accuracy"] * row["n_prompts"]), row["n_prompts"])
        yield Tested(
            f"linear probe, layer {row['layer']}@{row['model']}",
            row["p"],
            family="linear probes of a model",
            p_holm=row["p_family"],
            naive=float(stats.binomtest(*counted, alternative="greater").pvalue),
            low=row["accuracy_low"] - 0.5,
            high=row["accuracy_high"] - 0.5,
        )


def _of_sentences(results: Results, table: pd.DataFrame) -> Iterator[Tested]:
    """The intervals on which the report bases its sentences about excluded differences."""
    above = table["paired_low"] > table["chance_yes_rate"]
    ends = accuracy(results).set_index(["measure", "model"])[["low", "high"]]
    lower = ends.loc[SIDES[0], "high"] < ends.loc[SIDES[1], "low"]
    for model, more, less in zip(table["model"], above, lower[table["model"]], strict=True):
        yield Tested(f"above chance given the rate of Yes@{model}", 1.0 - more)
        yield Tested(f"rulebreakers answered worse, intervals apart@{model}", 1.0 - less)


def across_models(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """Rank correlations over six models, and naive ones that treat prompts as independent."""
    x = rng.normal(size=6)
    y = rng.normal(size=6) + 2.5 * x * planted
    found = spearman(pd.Series(x), pd.Series(y))
    rows = (pd.Series(np.repeat(column, 50)) for column in (x, y))
    naive = float(stats.spearmanr(*rows).pvalue)
    return [Tested("across models, six", found.p, naive=naive, low=found.low, high=found.high)]
