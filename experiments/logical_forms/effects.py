"""The mixed models of the paper (4, 5), with perplexity as a covariate: exploratory.

The effects of all factors vary by model, if there are enough models to estimate how much. Means
adjusted for perplexity may describe questions that do not exist; `contrasts` has the raw ones.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pandas as pd

from interp.errors import UserError
from interp.statistics.decisions import holm, verdicts
from interp.statistics.mixed.design import MixedFormula
from interp.statistics.mixed.linear import (
    MixedModel,
    fit_mixed_model,
    likelihood_ratio_test,
    r_squared,
    wald_test,
)
from interp.statistics.mixed.means import marginal_means, pairwise_tests
from interp_experiments.logical_forms.results import CLUSTER, clustered_means

PERPLEXITY = "relative_perplexity"

FACTORS = ("modality", "argument_form")

RESPONSES = {"soft_accuracy": "soft accuracy", "relative_positive": "share of Yes"}
"""Dependent variables of formulas 4 and 5, in words."""


@dataclass(frozen=True)
class Effects:
    """A mixed model of one dependent variable, with everything that is reported about it."""

    model: MixedModel
    means: pd.DataFrame
    """One row per level of a factor: factor, level, mean, standard_error, low, high (adjusted: the
    other factors in equal parts, perplexity at its mean), raw_mean, raw_low, raw_high (of the
    questions as they are), n, interpretations and note: whether `mean` is extrapolated."""
    tests: pd.DataFrame
    """`tests_of_levels` of the adjusted means."""
    term_tests: pd.DataFrame
    """One row per fixed effect and interaction: the columns of `wald_test`, and chi_square, df and
    p_chi_square of the likelihood-ratio test."""

    @property
    def fit(self) -> pd.DataFrame:
        """One row: formula, rows, groups, R squared and notes on the fit."""
        explained = r_squared(self.model)
        row = {
            "formula": self.model.equation,
            "rows": len(self.model.design.response),
            "models": len(self.model.groups),
            "R2_marginal": explained.marginal,
            "R2_conditional": explained.conditional,
            "note": self.model.note,
        }
        return pd.DataFrame([row])

    @property
    def slopes(self) -> pd.DataFrame:
        """One row per model: its intercept and its slope of perplexity, fixed and random together.

        Columns are model, intercept and the covariate's name; no rows without random effects.
        """
        if not self.model.design.random_columns:
            return pd.DataFrame(columns=["model", "intercept", self.covariate])
        fixed = self.model.coefficients().set_index("term")["estimate"]
        table: pd.DataFrame = self.model.random_effects()[["model", "intercept", self.covariate]]
        return table.assign(
            intercept=table["intercept"] + fixed["Intercept"],
            **{self.covariate: table[self.covariate] + fixed[self.covariate]},
        )

    @property
    def covariate(self) -> str:
        """The column that holds perplexity."""
        return str(self.model.formula.slope)


def effects(
    rows: pd.DataFrame,
    *,
    response: str,
    factors: Sequence[str] = FACTORS,
    covariate: str = PERPLEXITY,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> Effects:
    """Formula 4 or 5: response ~ factors + perplexity + (1 + perplexity | model) + varying factors.

    With too few models it is fitted by least squares, with errors robust to interpretations: all
    forms are asked in the same words.

    Args:
        rows: rows of `Results.pooled`.
        response: "soft_accuracy" (4) or "relative_positive" (5).
        factors: "modality" and "argument_form", or some of them.
        covariate: how perplexity enters: "relative_perplexity", or "perplexity_within_form", which
            does not differ between forms on average.
        pairs: levels of the factor to compare; all pairs if None.

    Raises:
        UserError: there are no rows, or the factors are collinear in them.
    """
    formula = MixedFormula(response, (*factors, covariate), "model", covariate, tuple(factors))
    model = fit_mixed_model(rows, formula, cluster=CLUSTER)
    return Effects(
        model,
        means=by_factor({factor: _means(rows, model, factor) for factor in factors}),
        tests=tests_of_levels(dict.fromkeys(factors, model), pairs=pairs),
        term_tests=term_tests(rows, model),
    )


def tests_of_levels(
    models: Mapping[str, MixedModel], *, pairs: Sequence[tuple[str, str]] | None = None
) -> pd.DataFrame:
    """Tests of the pairs of levels of each factor, by the model given for it.

    Columns are factor, those of `pairwise_tests`, p_holm over the pairs of all factors, and verdict
    (`interp.statistics.decisions`).
    """
    tests = {factor: pairwise_tests(model, factor, pairs=pairs) for factor, model in models.items()}
    table = by_factor(tests).drop(columns=["p_holm", "family", "family_size"])
    corrected = holm(table, family=f"pairs of {' and '.join(models)}")
    return corrected.assign(verdict=verdicts(corrected))


def by_factor(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The tables of the factors stacked, with a first column factor."""
    stacked = pd.concat(tables, names=["factor"])
    return stacked.reset_index("factor").reset_index(drop=True)


def _means(rows: pd.DataFrame, model: MixedModel, factor: str) -> pd.DataFrame:
    """Adjusted and raw means of a factor's levels, and which of the former are extrapolated."""
    response, covariate = model.formula.response, str(model.formula.slope)
    raw = clustered_means(rows.assign(level=rows[factor].astype(str)), response, by=["level"])
    raw = raw.rename(columns={name: f"raw_{name}" for name in ("mean", "low", "high")})
    at = model.design.means[covariate]
    ranges = rows.groupby(rows[factor].astype(str), observed=True)[covariate].agg(["min", "max"])
    outside = (ranges["min"] > at) | (ranges["max"] < at)
    table = marginal_means(model, factor).merge(raw, on="level", validate="one_to_one")
    notes = [
        f"extrapolated: {covariate} is {ranges.loc[level, 'min']:.2f} to "
        f"{ranges.loc[level, 'max']:.2f} here, and the mean is taken at {at:.2f}"
        if outside[level]
        else ""
        for level in table["level"]
    ]
    return table.assign(note=notes)


def term_tests(rows: pd.DataFrame, model: MixedModel) -> pd.DataFrame:
    """Tests of each fixed effect, and of the interaction of two factors in a model that has it.

    Columns are those of `Effects.term_tests`; `model` was fitted to the rows.
    """
    tested = [(model, term) for term in model.formula.fixed]
    crossed = ":".join(model.formula.varying)
    if len(model.formula.varying) == 2:
        wider = replace(model.formula, fixed=(*model.formula.fixed, crossed))
        with suppress(UserError):  # not all combinations occur
            tested.append((fit_mixed_model(rows, wider, cluster=CLUSTER), crossed))
    tests = []
    for fitted, term in tested:
        ratio = likelihood_ratio_test(rows, fitted.formula, without=term)
        tests.append({**wald_test(fitted, term), **ratio.rename({"p": "p_chi_square"})})
    return pd.DataFrame(tests)
