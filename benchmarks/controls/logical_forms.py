"""The tests in the report of LogicalForms, run on one simulated study."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import expit, roots_hermitenorm

from benchmarks.controls.rates import Tested
from benchmarks.controls.tables import logical_forms
from interp.statistics.decisions import holm
from interp_experiments.logical_forms.effects import (
    FACTORS,
    PERPLEXITY,
    RESPONSES,
    SHOWN,
    level_means,
    level_tests,
    pooled_contrasts,
)
from interp_experiments.logical_forms.mixed.linear import (
    MixedFormula,
    MixedModel,
    fit_mixed_model,
    wald_test,
)
from interp_experiments.logical_forms.mixed.means import pairwise_tests, pool
from interp_experiments.logical_forms.results import CLUSTER
from interp_experiments.logical_forms.tables import rank_correlation

RAW = MixedFormula(SHOWN, FACTORS, "model", varying=FACTORS)
"""The model without perplexity, as for the confirmatory contrasts."""

WIDER = MixedFormula(SHOWN, (*FACTORS, "modality:argument_form"), "model", varying=FACTORS)

ADJUSTED = MixedFormula(SHOWN, (*FACTORS, PERPLEXITY), "model", PERPLEXITY, FACTORS)
"""The paper's formula 4."""

MEAN, SD = 0.6, float(np.hypot(0.05, 0.15))
"""Mean and standard deviation of a form's soft accuracy, for one model without effects."""

SKEWED = (2.2, 8.0)
"""The a and b of skewed scores, expit(a + b (score - `MEAN`)); most such scores are near 1."""

MODELS = (2, 3, 4, 6, 10, 20)

SPREADS = (0.0, 0.5, 1.0, 2.0, 5.0)
"""Standard deviations of the models' true values, in units of the mean standard error."""

ERRORS = (0.01, 0.06)
"""Smallest and largest standard error of a model's contrast."""

SHAPE = 4.0
"""Shape of the gamma distribution for skewed true values; it gives a skewness of 1."""


def of_one_model(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """Raw means and formula 4 for one model, with errors clustered by interpretation."""
    effect = {"modality": -0.08, "argument_form": 0.05, "interaction": 0.1, "perplexity": 0.02}
    rows = logical_forms(rng, models=1, **(effect if planted else {}))
    valid, name = rows[rows["gold"] == "Yes"], "one model"
    whole = rank_correlation(rows, within=("form",))
    return [
        *_of_pairs(level_tests(valid, SHOWN), name, valid),
        _of_a_mean(valid, name, MEAN),
        *_of_terms(valid, _fitted(valid, RAW), name, FACTORS),
        *_of_terms(valid, _fitted(valid, WIDER), name, ["modality:argument_form"]),
        *_adjusted(valid, name),
        Tested(
            f"{name}, rank correlation of perplexity within forms",
            np.nan,
            low=whole["low"],
            high=whole["high"],
        ),
    ]


def of_skewed_answers(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """Raw means for one model whose soft accuracies are near 1 and skewed."""
    rows = logical_forms(rng, models=1, argument_form=0.05 * planted, modality=-0.08 * planted)
    middle, slope = SKEWED
    skewed = rows.assign(soft_accuracy=expit(middle + slope * (rows[SHOWN] - MEAN)))
    valid, name = skewed[skewed["gold"] == "Yes"], "one model, skewed"
    points, weights = roots_hermitenorm(99)
    mean = float(weights @ expit(middle + slope * SD * points) / weights.sum())
    return [
        *_of_pairs(level_tests(valid, SHOWN), name, valid),
        _of_a_mean(valid, name, mean),
        *_of_terms(valid, _fitted(valid, RAW), name, FACTORS),
    ]


def of_ten_models(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """The pooled contrasts of ten models whose effects differ, and formula 4."""
    return _of_models(rng, 10, planted)


def of_three_models(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """The pooled contrasts of three models whose effects differ, and formula 4."""
    return _of_models(rng, 3, planted)


def pooled_models(rng: np.random.Generator, planted: bool) -> list[Tested]:
    """Contrasts pooled over models, and prediction intervals for the contrast of one further model.

    Every number in `MODELS` is combined with every spread in `SPREADS` and with normal and skewed
    true contrasts. The models' errors are unequal and estimated with 39 degrees of freedom.
    """
    found = []
    for count, spread, skewed in [
        (n, s, k) for n in MODELS for s in SPREADS for k in (False, True)
    ]:
        tau = spread * float(np.mean(ERRORS))
        true = 0.1 * planted + tau * _deviations(rng, count + 1, skewed=skewed)
        errors = rng.uniform(*ERRORS, count + 1)
        measured = true + errors * rng.normal(size=count + 1)
        estimated = errors[:-1] * np.sqrt(rng.chisquare(39, count) / 39)
        pooled = pool(measured[:-1], estimated)
        fixed = np.sum(measured[:-1] / estimated**2) / np.sqrt(np.sum(1 / estimated**2))
        shape = "skewed" if skewed else "normal"
        name = f"{count} models, spread {spread:g}, {shape}"
        p, lower, upper, low, high = (
            float(str(pooled[name]))
            for name in ("p", "low", "high", "predicted_low", "predicted_high")
        )
        naive = float(2 * stats.norm.sf(abs(fixed)))
        found += [
            Tested(f"pooled, {name}", p, naive=naive, low=lower, high=upper),
            Tested(
                f"measured next, {name}", np.nan, low=low - measured[-1], high=high - measured[-1]
            ),
            Tested(f"true next, {name}", np.nan, low=low - true[-1], high=high - true[-1]),
        ]
    return found


def _deviations(rng: np.random.Generator, count: int, *, skewed: bool) -> np.ndarray:
    """Draws from a distribution with mean 0 and standard deviation 1."""
    if skewed:
        return (rng.gamma(SHAPE, 1, count) - SHAPE) / np.sqrt(SHAPE)
    return rng.normal(size=count)


def _of_models(rng: np.random.Generator, count: int, planted: bool) -> list[Tested]:
    rows = logical_forms(rng, models=count, modality=-0.1 * planted, words=0.01)
    rows, name = rows[rows["gold"] == "Yes"], f"{count} models"
    own = [
        level_tests(of_model, SHOWN).assign(response=RESPONSES[SHOWN])
        for _, of_model in rows.groupby("model", sort=False)
    ]
    pooled = pooled_contrasts(pd.concat(own)).rename(columns={"estimate": "difference"})
    return [
        *_of_pairs(pooled, name, rows),
        *_of_terms(rows, _fitted(rows, RAW), name, FACTORS),
        *_adjusted(rows, name),
    ]


SHOWN_PAIRS = ("box - none", "none - box", "mp - mt")
"""Pairs of levels that are shown as examples of all pairs of their factor."""


def _of_pairs(tests: pd.DataFrame, name: str, rows: pd.DataFrame | None = None) -> Iterator[Tested]:
    """Tests of pairs of levels, and naive tests that treat the rows as independent."""
    naive = dict.fromkeys(range(len(tests)), np.nan)
    if rows is not None:
        alone = rows.assign(model="all")
        fits = {
            factor: fit_mixed_model(alone, MixedFormula(SHOWN, (factor,), "model"))
            for factor in FACTORS
        }
        by_rows = pd.concat([pairwise_tests(fit, factor) for factor, fit in fits.items()])
        naive = dict(enumerate(2 * stats.norm.sf(by_rows["t"].abs())))
    for place, row in enumerate(tests.to_dict("records")):
        pair = f"{row['first']} - {row['second']}"
        yield Tested(
            f"{name}, {pair}@{'' if pair in SHOWN_PAIRS else 'other'}",
            row["p"],
            family=f"{name}, pairs of levels",
            p_holm=row["p_holm"],
            naive=float(naive[place]),
            low=row["low"],
            high=row["high"],
        )


def _of_a_mean(rows: pd.DataFrame, name: str, mean: float) -> Tested:
    """The interval of the mean of the first modality, minus the true mean without effects."""
    first = level_means(rows, SHOWN).iloc[0]
    return Tested(
        f"{name}, mean of a modality", np.nan, low=first["low"] - mean, high=first["high"] - mean
    )


def _fitted(rows: pd.DataFrame, formula: MixedFormula) -> MixedModel:
    return fit_mixed_model(rows, formula, cluster=CLUSTER)


def _adjusted(rows: pd.DataFrame, name: str) -> Iterator[Tested]:
    """The exploratory tests of formula 4."""
    model, name = _fitted(rows, ADJUSTED), f"{name}, adjusted"
    tests = pd.concat([pairwise_tests(model, factor) for factor in FACTORS], ignore_index=True)
    tests = holm(tests, family="")
    yield from _of_pairs(tests, name)
    yield from _of_terms(rows, model, name, ADJUSTED.fixed)


def _of_terms(
    rows: pd.DataFrame, model: MixedModel, name: str, terms: Sequence[str]
) -> Iterator[Tested]:
    """F tests, and naive F tests that treat rows as independent and have no random effects."""
    by_rows = fit_mixed_model(rows.assign(model="all"), model.formula)
    for term in terms:
        naive = wald_test(by_rows, term)
        chi_square = naive["F"] * naive["df1"]
        yield Tested(
            f"{name}, F of {term}",
            wald_test(model, term)["p"],
            naive=float(stats.chi2.sf(chi_square, naive["df1"])),
        )
