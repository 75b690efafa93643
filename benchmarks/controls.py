"""False findings, power and coverage of the tests in reports, on simulated studies.

    python -m benchmarks.controls --studies 1000 --jobs 2 --out FOLDER

With a folder, studies are written there as they are done, and those that are there are not
simulated again. Rerun to resume; or simulate other ranges (--first) elsewhere, copy the files into
one folder, and rerun for the tables of all.

No model is run. A study is made of tables with the structure of a real one (`simulated`), with
effects or with none, and the functions that make the report's tables are called on it. Counted are:

- false positives: the share of studies without the effect in which p is at most 0.05;
- the same of a test that takes prompts as independent;
- coverage: the share of these studies whose 95% interval holds the truth, which is no difference;
- power: the share of studies with the effect in which p is at most 0.05;
- findings: the share of studies without any effect in which a table has a p_holm of at most 0.05.
"""

import argparse
import gc
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.simulated import EVERYTHING, NOTHING, logical_forms, rulebreakers
from interp.analysis import clusters, contrasts, discrimination
from interp.analysis.accuracy import pairs_of
from interp.analysis.corrections import holm
from interp.analysis.mixed.design import MixedFormula
from interp.analysis.mixed.linear import MixedModel, fit_mixed_model, wald_test
from interp.analysis.mixed.marginal_means import pairwise_tests
from interp.analysis.mixed.pooling import pool
from interp.analysis.spearman import spearman
from interp.files import write_whole
from interp_experiments.logical_forms.perplexity import rank_correlation
from interp_experiments.rulebreakers import entity_features
from interp_experiments.rulebreakers.prompt_models import prompt_models
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.accuracy import accuracy
from interp_experiments.rulebreakers.tables.confidence import confidence
from interp_experiments.rulebreakers.tables.contrasts import contrasts as contrast_rows
from interp_experiments.rulebreakers.tables.entities import entity_correlations, names_within
from interp_experiments.rulebreakers.tables.familiarity import familiarity
from interp_experiments.rulebreakers.tables.positive_answers import (
    answered_pairs,
    positive_answers,
)
from interp_experiments.rulebreakers.tables.probes import residual_probes
from interp_experiments.rulebreakers.tables.sensitivity import sensitivity
from interp_probes import linear

LEVEL = 0.05

RESAMPLES = 199
"""Of each test by resampling; reports take up to 9,999, which changes the rates little."""


BLOCK = 20
"""Studies that are written at a time."""


@dataclass(frozen=True)
class Tested:
    """One test of one study."""

    test: str
    p: float
    family: str = ""
    """The table over which p_holm is corrected; empty where a test is not corrected."""
    p_holm: float = np.nan
    naive: float = np.nan
    """p of a test that takes prompts as independent."""
    low: float = np.nan
    high: float = np.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first study")
    parser.add_argument("--out", type=Path, help="folder that studies are kept in")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.studies)
    how = {"seed": options.seed, "jobs": options.jobs}
    for kind in KINDS:
        null, planted = (
            kept(options.out, kind, numbers, planted=planted, **how)
            if options.out
            else simulated(kind, numbers, planted=planted, **how)
            for planted in (False, True)
        )
        counts = " and ".join(f"{found['study'].nunique():,}" for found in (null, planted))
        print(f"\n## {kind}: {counts} studies without and with effects\n", flush=True)
        print(f"{table_of(null, planted)}\n\n{families_of(null)}", flush=True)


def kept(
    folder: Path, kind: str, studies: Iterable[int], *, planted: bool, seed: int = 0, jobs: int = 1
) -> pd.DataFrame:
    """What `simulated` gives of these studies and of all others in the folder.

    Studies that are in the folder are not simulated again; others are written there, `BLOCK` at a
    time.
    """
    effects = "effects" if planted else "nothing"
    stem = f"{re.sub('[^a-z]+', '-', kind.lower())}-{effects}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    parts = [pd.read_parquet(file) for file in sorted(folder.glob(f"{stem}-*.parquet"))]
    there = {int(number) for part in parts for number in part["study"].unique()}
    missing = [number for number in studies if number not in there]
    for block in (missing[start : start + BLOCK] for start in range(0, len(missing), BLOCK)):
        parts.append(simulated(kind, block, planted=planted, seed=seed, jobs=jobs))
        file = folder / f"{stem}-{block[0]:06}-{block[-1]:06}.parquet"
        write_whole(file, partial(parts[-1].to_parquet, index=False))
    whole = pd.concat(parts).sort_values("study", kind="stable", ignore_index=True)
    # Ranges that overlap hold the same studies: each is drawn from its own number.
    return whole.drop_duplicates(["study", "test"], ignore_index=True)


def simulated(
    kind: str, studies: Iterable[int], *, planted: bool, seed: int = 0, jobs: int = 1
) -> pd.DataFrame:
    """One row per study and test: study, and the fields of Tested.

    Args:
        kind: a name of `KINDS`.
        studies: the numbers of the studies; what a study draws depends on its number and the seed.
        planted: with effects, or without any.
        seed: decides the draws.
        jobs: processes.
    """
    measure = partial(_study, kind, planted, seed)
    if jobs == 1:
        parts = map(measure, studies)
        return pd.concat(parts, ignore_index=True)
    # statsmodels collects garbage at every correction; what is imported need not be looked at.
    with ProcessPoolExecutor(jobs, initializer=gc.freeze) as pool:
        return pd.concat(pool.map(measure, studies, chunksize=5), ignore_index=True)


def _study(kind: str, planted: bool, seed: int, number: int) -> pd.DataFrame:
    rng = np.random.default_rng([seed, planted, number])
    with few_resamples():
        return pd.DataFrame(KINDS[kind](rng, planted)).assign(study=number)


@contextmanager
def few_resamples() -> Iterator[None]:
    """Tests by resampling take `RESAMPLES` for as long."""
    names = {
        clusters: ("RESAMPLES",),
        discrimination: ("RESAMPLES",),
        contrasts: ("DRAWS", "SHUFFLES"),
        entity_features: ("PERMUTATIONS",),
        linear: ("CONTROLS",),
    }
    former = {(module, name): getattr(module, name) for module in names for name in names[module]}
    for module, name in former:
        setattr(module, name, RESAMPLES)
    try:
        yield
    finally:
        for (module, name), number in former.items():
            setattr(module, name, number)


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
            *_of_table(names_within(results), "names within"),
            *_of_table(_prompt_models(results), "across prompts", by="term"),
            *_of_probes(results),
            *_of_sentences(results, told_apart),
        ]


def _prompt_models(results: Results) -> pd.DataFrame:
    """The regression of one model and method: each takes as long as all other tests together."""
    answers, ratios = results.answers, results.ratios
    return prompt_models(
        replace(
            results,
            answers=answers[answers["model"] == results.models[0]],
            ratios=ratios[ratios["method"] == "attention"],
        )
    )


def _of_table(table: pd.DataFrame, name: str, *, by: str | list[str] = ()) -> Iterator[Tested]:
    """The tests of a table with p and p_holm, one for each row."""
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
    """The contrasts, and chi-square tests that take pairs as independent."""
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
    table = residual_probes(results)
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
    """What sentences of the report are written from: intervals that exclude something."""
    above = table["paired_low"] > table["chance_yes_rate"]
    ends = accuracy(results).set_index(["measure", "model"])[["low", "high"]]
    lower = ends.loc[SIDES[0], "high"] < ends.loc[SIDES[1], "low"]
    for model, more, less in zip(table["model"], above, lower[table["model"]], strict=True):
        yield Tested(f"above chance given the rate of Yes@{model}", 1.0 - more)
        yield Tested(f"rulebreakers answered worse, intervals apart@{model}", 1.0 - less)


def across_models(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """Rank correlations over six models, and what they would be over prompts."""
    x = rng.normal(size=6)
    y = rng.normal(size=6) + 2.5 * x * planted
    found = spearman(pd.Series(x), pd.Series(y))
    rows = (pd.Series(np.repeat(column, 50)) for column in (x, y))
    naive = spearman(*rows).p
    return [Tested("across models, six", found.p, naive=naive, low=found.low, high=found.high)]


FORM = MixedFormula(
    "soft_accuracy",
    ("modality", "argument_form", "relative_perplexity"),
    "model",
    "relative_perplexity",
    ("modality", "argument_form"),
)


def of_one_model(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """Formula 4 with one model: least squares, errors robust to interpretations."""
    effect = {"modality": -0.08, "argument_form": 0.05, "interaction": 0.1, "perplexity": 0.02}
    rows = logical_forms(rng, models=1, **(effect if planted else {}))
    wider = MixedFormula(FORM.response, (*FORM.fixed, "modality:argument_form"), FORM.group)
    valid, name = rows[rows["gold"] == "Yes"], "one model"
    model, naive = (
        fit_mixed_model(valid, FORM, cluster=cluster) for cluster in ("interpretation", None)
    )
    crossed, naively = (
        fit_mixed_model(valid, wider, cluster=cluster) for cluster in ("interpretation", None)
    )
    whole = rank_correlation(rows, within=("form",))
    return [
        *_of_pairs(model, name, naive),
        *(_of_term(model, term, name, naive) for term in FORM.fixed),
        _of_term(crossed, "modality:argument_form", name, naively),
        Tested(
            "one model, rank correlation of perplexity within forms",
            np.nan,
            low=whole["low"],
            high=whole["high"],
        ),
    ]


def of_ten_models(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """Formula 4 over ten models whose effects of modality differ, without a slope by model."""
    rows = logical_forms(rng, models=10, modality=-0.1 * planted, words=0.01)
    rows = rows[rows["gold"] == "Yes"]
    model, naive = (
        fit_mixed_model(
            rows,
            MixedFormula(
                "soft_accuracy", ("modality", "relative_perplexity"), "model", varying=varying
            ),
        )
        for varying in (("modality",), ())
    )
    return [
        *_of_pairs(model, "ten models", naive, factors=("modality",)),
        _of_term(model, "modality", "ten models", naive),
    ]


def pooled_models(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """A contrast of each of ten models, whose true values have a spread of 0.1, pooled."""
    errors = 0.04 * np.sqrt(rng.chisquare(19, 10) / 19)
    estimates = 0.1 * planted + rng.normal(0, 0.1, 10) + rng.normal(0, 0.04, 10)
    found = pool(estimates, errors)
    fixed = np.sum(estimates / errors**2) / np.sqrt(np.sum(1 / errors**2))
    naive = float(2 * stats.norm.sf(abs(fixed)))
    return [Tested("pooled over models", found.p, naive=naive, low=found.low, high=found.high)]


SHOWN = ("box - none", "mp - mt")
"""Pairs of levels that represent the others of their factor."""


def _of_pairs(
    model: MixedModel,
    name: str,
    naive: MixedModel,
    *,
    factors: tuple[str, ...] = ("modality", "argument_form"),
) -> Iterator[Tested]:
    ours, theirs = (
        pd.concat([pairwise_tests(fit, factor) for factor in factors], ignore_index=True)
        for fit in (model, naive)
    )
    ours = holm(ours.drop(columns=["p_holm", "family", "family_size"]), family="")
    for row, other in zip(ours.to_dict("records"), theirs.to_dict("records"), strict=True):
        pair = f"{row['first']} - {row['second']}"
        yield Tested(
            f"{name}, {pair}@{'' if pair in SHOWN else 'other'}",
            row["p"],
            family=f"{name}, pairs of levels",
            p_holm=row["p_holm"],
            naive=float(2 * stats.norm.sf(abs(other["t"]))),
            low=row["low"],
            high=row["high"],
        )


def _of_term(model: MixedModel, term: str, name: str, naive: MixedModel) -> Tested:
    by_rows = wald_test(naive, term)
    chi_square = by_rows["F"] * by_rows["df1"]
    return Tested(
        f"{name}, F of {term}",
        wald_test(model, term)["p"],
        naive=float(stats.chi2.sf(chi_square, by_rows["df1"])),
    )


KINDS: dict[str, Callable[[np.random.Generator, bool], list[Tested]]] = {
    "RULEBREAKERS": of_rulebreakers,
    "RULEBREAKERS, across models": across_models,
    "LogicalForms, one model": of_one_model,
    "LogicalForms, ten models": of_ten_models,
    "LogicalForms, contrasts pooled": pooled_models,
}
"""What is simulated, by name."""


UNPLANTED = (
    "across entity pairs, gradient ratio, paired accuracy",
    "across entity pairs, familiarity, gradient ratio",
    "across entity pairs, familiarity, attention ratio",
)
"""Tests for whose effect there is none to plant beside the others."""


def table_of(null: pd.DataFrame, planted: pd.DataFrame) -> str:
    """One line per test: its rates without and with the effect, over studies."""
    power = rates(planted)["rejected"].rename("power").drop(UNPLANTED, errors="ignore")
    shares = rates(null).join(power)
    lines = [
        "| test | false positives | over prompts | coverage | power |",
        "|---|---|---|---|---|",
    ]
    for test, row in shares.iterrows():
        numbers = (row["rejected"], row["naive"], row["covered"], row["power"])
        cells = ("" if np.isnan(number) else f"{number:.3f}" for number in numbers)
        lines.append(f"| {test} | {' | '.join(cells)} |")
    return "\n".join(lines)


def rates(found: pd.DataFrame) -> pd.DataFrame:
    """One row per test of a first model: rejected, naive and covered, shares of studies."""
    name, model = (found["test"].str.partition("@")[part] for part in (0, 2))
    rows = found[model.isin(["", "first"])].assign(test=name)
    judged = pd.DataFrame(
        {
            "test": rows["test"],
            "rejected": _at_most(rows["p"]),
            "naive": _at_most(rows["naive"]),
            "covered": ((rows["low"] <= 0) & (rows["high"] >= 0))
            .astype(float)
            .where(rows["low"].notna()),
        }
    )
    return judged.groupby("test", sort=False).mean()


def _at_most(p: pd.Series) -> pd.Series:
    return (p <= LEVEL + 1e-9).astype(float).where(p.notna())


def families_of(null: pd.DataFrame) -> str:
    """One line per family of corrected tests, and one of all, in studies without effects."""
    shares = findings(null)
    lines = ["| corrected together | studies with a finding |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {share:.3f} |" for name, share in shares.items())])


def findings(null: pd.DataFrame) -> dict[str, float]:
    """Share of studies in which a family has a p_holm of at most 0.05, and in which any has."""
    corrected = null[null["family"] != ""].assign(found=lambda rows: _at_most(rows["p_holm"]) == 1)
    by_family = corrected.groupby(["family", "study"], sort=False)["found"].any()
    shares = by_family.groupby("family", sort=False).mean().to_dict()
    any_family = corrected.groupby("study")["found"].any().mean() if len(corrected) else 0.0
    return {**shares, "any of these": float(any_family)}


if __name__ == "__main__":
    main()
