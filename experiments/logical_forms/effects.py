"""Differences between modalities and argument forms: raw means, and the paper's mixed models.

Confirmatory contrasts compare raw means. The mixed models (4, 5) are exploratory: a question's
perplexity comes mostly from its form, so a mean adjusted for perplexity may describe questions that
were never asked. If there are enough models, the effects of factors vary by model.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pandas as pd

from interp import UserError
from interp.extend.statistics import grouped, holm, verdicts
from interp_experiments.logical_forms.mixed import linear
from interp_experiments.logical_forms.mixed.linear import MixedFormula, MixedModel
from interp_experiments.logical_forms.mixed.means import (
    POOLED,
    marginal_means,
    pairwise_tests,
    pool,
)
from interp_experiments.logical_forms.results import CLUSTER, Results, clustered_means

PERPLEXITY = "relative_perplexity"

FACTORS = ("modality", "argument_form")

RESPONSES = {"soft_accuracy": "soft accuracy", "relative_positive": "share of Yes"}
"""Names of the dependent variables in formulas 4 and 5."""

SHOWN = "soft_accuracy"
"""The dependent variable of the confirmatory contrasts."""

NOBODY = "no model both answers Yes or No often enough and has a perplexity below that of guessing"


@dataclass(frozen=True)
class Effects:
    """The effects of factors on one dependent variable, with the tables that report them."""

    model: MixedModel
    """The regression whose terms are tested."""
    means: pd.DataFrame
    """One row per factor and level. Of `effects`: mean, standard_error, low, high (averaged over
    the other factor with equal weights, at mean perplexity), raw_mean, raw_low, raw_high
    (unadjusted), n, interpretations and note, which says if `mean` is extrapolated."""
    tests: pd.DataFrame
    """Pairwise tests of the means: factor, first, second, difference (first - second), low, high,
    p, p_holm over all rows, excluded_below, excluded_above, verdict, and the other columns of
    `pairwise_tests` or `pool`."""
    term_tests: pd.DataFrame

    @property
    def fit(self) -> pd.DataFrame:
        """One row: formula, rows, groups, R squared and notes on the fit."""
        model, (marginal, conditional) = self.model, linear.r_squared(self.model)
        row = {
            "model_formula": model.equation,
            "rows": len(model.response),
            "models": len(model.groups),
            "R2_marginal": marginal,
            "R2_conditional": conditional,
            "note": model.note,
        }
        return pd.DataFrame([row])

    @property
    def slopes(self) -> pd.DataFrame:
        """Intercept and slope (`PERPLEXITY`) of each model, with the fixed effects; often empty."""
        table = self.model.random_effects.reindex(columns=["model", "intercept", PERPLEXITY])
        fixed = self.model.coefficients().set_index("term")["estimate"]
        for name, term in (("intercept", "Intercept"), (PERPLEXITY, PERPLEXITY)):
            table[name] += fixed[term]
        return table.dropna()


def effects(
    rows: pd.DataFrame,
    response: str,
    *,
    factors: Sequence[str] = FACTORS,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> Effects | str:
    """Formula 4 or 5, or why these rows do not allow a fit.

    The formula is response ~ factors + perplexity + (1 + perplexity | model) + varying factors.
    With too few models, it is fitted by least squares, with errors clustered by interpretation,
    because each interpretation uses the same words in all forms. `rows` are those of
    `Results.pooled`, `response` is one of `RESPONSES`, `factors` are those of `FACTORS` or one
    column, and `pairs` the levels of the factor to compare (None: all pairs).
    """
    if rows.empty:
        return NOBODY
    formula = MixedFormula(response, (*factors, PERPLEXITY), "model", PERPLEXITY, tuple(factors))
    try:
        model = linear.fit_mixed_model(rows, formula, cluster=CLUSTER)
        return Effects(
            model,
            means=_by_factor({factor: _means(rows, model, factor) for factor in factors}),
            tests=pairs_tested(dict.fromkeys(factors, model), pairs=pairs),
            term_tests=term_tests(rows, model),
        )
    except UserError as error:
        return str(error)


def pairs_tested(
    models: Mapping[str, MixedModel], *, pairs: Sequence[tuple[str, str]] | None = None
) -> pd.DataFrame:
    """Tests of pairs of levels of each factor, with the mixed model given for that factor.

    Columns are factor, those of `pairwise_tests`, p_holm over the pairs of all factors, verdict.
    """
    tests = {factor: pairwise_tests(model, factor, pairs=pairs) for factor, model in models.items()}
    corrected = holm(_by_factor(tests), family=f"pairs of {' and '.join(models)}")
    return corrected.assign(verdict=verdicts(corrected))


def _by_factor(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The tables of all factors, stacked, with factor as the first column."""
    return pd.concat(tables, names=["factor"]).reset_index("factor").reset_index(drop=True)


def _means(rows: pd.DataFrame, model: MixedModel, factor: str) -> pd.DataFrame:
    """Adjusted and raw means by level of a factor; `note` marks extrapolated adjusted means."""
    response = model.formula.response
    levelled = rows.assign(level=rows[factor].astype(str))
    raw = clustered_means(levelled, response, by=["level"])
    raw = raw.rename(columns={name: f"raw_{name}" for name in ("mean", "low", "high")})
    table = marginal_means(model, factor).merge(raw, on="level", validate="one_to_one")
    at, of_levels = model.means[PERPLEXITY], levelled.groupby("level")[PERPLEXITY]
    notes = {
        level: f"extrapolated: {PERPLEXITY} is {low:.2f} to {high:.2f} here, and the mean is taken "
        f"at {at:.2f}"
        for level, low, high in of_levels.agg(["min", "max"]).itertuples()
        if not low <= at <= high
    }
    return table.assign(note=[notes.get(level, "") for level in table["level"]])


def term_tests(rows: pd.DataFrame, model: MixedModel) -> pd.DataFrame:
    """Tests of each fixed effect, and of the interaction in a model that includes it.

    One row per term, with the columns of `wald_test`, and chi_square, df and p_chi_square from the
    likelihood-ratio test; `model` was fitted to the rows.
    """
    tested = [(model, term) for term in model.formula.fixed]
    crossed = ":".join(model.formula.varying)
    if len(model.formula.varying) == 2:
        wider = replace(model.formula, fixed=(*model.formula.fixed, crossed))
        with suppress(UserError):  # Some combinations of levels do not occur.
            tested.append((linear.fit_mixed_model(rows, wider, cluster=CLUSTER), crossed))
    tests = []
    for fitted, term in tested:
        ratio = linear.likelihood_ratio_test(rows, fitted.formula, without=term)
        tests.append({**linear.wald_test(fitted, term), **ratio.rename({"p": "p_chi_square"})})
    return pd.DataFrame(tests)


def confirmatory(results: Results) -> Effects | str:
    """The contrasts of soft accuracy between modalities and between argument forms on valid forms.

    With at least `MIN_GROUPS` models, each contrast is computed for every model and pooled over the
    models. With fewer, errors are clustered by interpretation, and the tests are about these models
    only. The terms are those of the regression without perplexity. A text says why there are none.
    """
    rows = results.pooled("questions", valid=True)
    if rows.empty:
        return NOBODY
    formula = MixedFormula(SHOWN, FACTORS, "model", varying=FACTORS)
    try:
        model = linear.fit_mixed_model(rows, formula, cluster=CLUSTER)
        if model.random:
            pooled = pooled_contrasts(contrasts_by_model(results))
            chosen = pooled[pooled["response"] == RESPONSES[SHOWN]].drop(columns="response")
            tests = chosen.rename(columns={"estimate": "difference"}).reset_index(drop=True)
        else:
            tests = level_tests(rows, SHOWN)
        means = level_means(rows, SHOWN, over="model" if model.random else CLUSTER)
        return Effects(model, means, tests, term_tests(rows, model))
    except UserError as error:
        return str(error)


def level_means(rows: pd.DataFrame, response: str, *, over: str = CLUSTER) -> pd.DataFrame:
    """One mean per factor and level: factor, level and the columns of `clustered_means`."""
    tables = {}
    for factor in FACTORS:
        levelled = rows.assign(level=rows[factor].astype(str)).sort_values(factor)
        tables[factor] = clustered_means(levelled, response, by=["level"], cluster=over)
    return _by_factor(tables)


def level_tests(rows: pd.DataFrame, response: str) -> pd.DataFrame:
    """`pairs_tested` within models, with errors by interpretation (UserError: no or one level)."""
    formulas = {factor: MixedFormula(response, (factor,), "model") for factor in FACTORS}
    return pairs_tested(
        {name: linear.fit_mixed_model(rows, one, cluster=CLUSTER) for name, one in formulas.items()}
    )


def means_by_model(results: Results) -> pd.DataFrame:
    """`level_means` of each model: soft accuracy on valid forms, and share of Yes on all forms."""
    return _by_model(results, level_means)


def contrasts_by_model(results: Results) -> pd.DataFrame:
    """`level_tests` of each model, as in `means_by_model`, or a note on why there are no tests.

    The pairs of one model and response are one family.
    """

    def tests_or_why_not(rows: pd.DataFrame, response: str) -> pd.DataFrame:
        try:
            tests = level_tests(rows, response)
        except UserError as error:
            return pd.DataFrame({"note": [f"undefined: {error}"]})
        where = f" in {RESPONSES[response]}, {rows['model'].iloc[0]}"
        return tests.assign(family=tests["family"] + where)

    return _by_model(results, tests_or_why_not)


def _by_model(results: Results, table: Callable[[pd.DataFrame, str], pd.DataFrame]) -> pd.DataFrame:
    """The tests of each competent model and response, stacked, with model and response first."""
    tables = {
        (model, words): table(rows[rows["model"] == model], response)
        for model in results.competent
        for response, words in RESPONSES.items()
        for rows in [results.pooled("questions", valid=response == SHOWN)]
    }
    names = ["model", "response"]
    if not tables:
        return pd.DataFrame(columns=names)
    return pd.concat(tables, names=names).reset_index(names).reset_index(drop=True)


def pooled_contrasts(contrasts: pd.DataFrame) -> pd.DataFrame:
    """The contrasts pooled over models (`pool`); those of one response are one family."""
    contrast, numbers = ["response", "factor", "first", "second"], ["difference", "standard_error"]
    estimated = contrasts.reindex(columns=[*contrast, *numbers]).dropna()
    pooled = [
        {**cell, **pool(*rows[numbers].to_numpy(dtype=float).T)}
        for cell, rows in grouped(estimated, contrast)
    ]
    table = pd.DataFrame(pooled, columns=[*contrast, *POOLED])
    families = [
        holm(rows, family=f"{response} over models")
        for response, rows in table.groupby("response", sort=False)
    ]
    if not families:
        return table
    corrected = pd.concat(families, ignore_index=True)
    return corrected.assign(verdict=verdicts(corrected))
