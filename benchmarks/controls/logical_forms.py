"""The tests in the report of LogicalForms, run on one simulated study."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.controls.tables import logical_forms
from benchmarks.controls.tested import Tested
from interp.analysis.corrections import holm
from interp.analysis.mixed.design import MixedFormula
from interp.analysis.mixed.linear import MixedModel, fit_mixed_model, wald_test
from interp.analysis.mixed.marginal_means import pairwise_tests
from interp.analysis.mixed.pooling import pool
from interp_experiments.logical_forms.perplexity import rank_correlation

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
