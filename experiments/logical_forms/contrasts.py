"""Differences between modalities, and between argument forms, in the means of the questions.

Perplexity is not a covariate here: most of it comes from a question's form, so a mean at equal
perplexity describes questions that were never asked. The paper's adjusted means are in `effects`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from interp.errors import UserError
from interp.statistics.decisions import holm, verdicts
from interp.statistics.mixed.design import MixedFormula
from interp.statistics.mixed.linear import MIN_GROUPS, fit_mixed_model
from interp.statistics.mixed.means import pooled_table
from interp_experiments.logical_forms.effects import (
    FACTORS,
    RESPONSES,
    by_factor,
    term_tests,
    tests_of_levels,
)
from interp_experiments.logical_forms.results import CLUSTER, Results, clustered_means

NOBODY = "no model answers Yes or No often enough with a perplexity below that of guessing"

SHOWN = "soft_accuracy"
"""The dependent variable of the confirmatory contrasts."""


@dataclass(frozen=True)
class Contrasts:
    """The confirmatory contrasts of soft accuracy on valid forms."""

    means: pd.DataFrame
    """One row per level of a factor: factor, level, mean, its 95% interval (low, high), n, and how
    many interpretations or models the interval is over."""
    tests: pd.DataFrame
    """One row per pair of levels: factor, first, second, difference (first - second), low, high, p,
    p_holm over all rows, excluded_below, excluded_above and verdict
    (`interp.statistics.decisions`), and what else `pairwise_tests` or `pooled_table` has."""
    term_tests: pd.DataFrame
    """The columns of `Effects.term_tests`, of the model without perplexity."""
    models: int
    """Number of models. With fewer than `MIN_GROUPS` the interpretations are the observations, and
    the tests concern these models only."""
    note: str
    """A note on what the observations are, or why there are no tests."""


def confirmatory(results: Results) -> Contrasts | str:
    """Pairs of modalities and argument forms in soft accuracy on valid forms, or why none exist.

    With at least `MIN_GROUPS` models each contrast is made for every model and pooled over them;
    with fewer, errors are robust to interpretations.
    """
    rows = results.pooled("questions", valid=True)
    if rows.empty:
        return NOBODY
    formula = MixedFormula(SHOWN, FACTORS, "model", varying=FACTORS)
    count = rows["model"].nunique()
    many = count >= MIN_GROUPS
    try:
        model = fit_mixed_model(rows, formula, cluster=CLUSTER)
        return Contrasts(
            means=level_means(rows, SHOWN, over="model" if many else CLUSTER),
            tests=_of_models(results) if many else level_tests(rows, SHOWN),
            term_tests=term_tests(rows, model),
            models=count,
            note=f"the observations are {count} models" if many else model.note,
        )
    except UserError as error:
        return str(error)


def level_means(rows: pd.DataFrame, response: str, *, over: str = CLUSTER) -> pd.DataFrame:
    """One mean per factor and level: factor, level and the columns of `clustered_means`."""
    tables = {}
    for factor in FACTORS:
        levelled = rows.assign(level=rows[factor].astype(str)).sort_values(factor)
        tables[factor] = clustered_means(levelled, response, by=["level"], cluster=over)
    return by_factor(tables)


def level_tests(rows: pd.DataFrame, response: str) -> pd.DataFrame:
    """`tests_of_levels` with errors robust to interpretations.

    A difference compares the means of all questions at the two levels, within models.

    Raises:
        UserError: there are no rows, or a factor has only one level in them.
    """
    models = {}
    for factor in FACTORS:
        formula = MixedFormula(response, (factor,), "model")
        models[factor] = fit_mixed_model(rows, formula, cluster=CLUSTER)
    return tests_of_levels(models)


def means_by_model(results: Results) -> pd.DataFrame:
    """`level_means` for each model: soft accuracy on valid forms, share of Yes on all."""
    return _by_model(results, level_means)


def contrasts_by_model(results: Results) -> pd.DataFrame:
    """`level_tests` for each model, as in `means_by_model`, or a note on why there are none.

    The pairs of one model and response are one family.
    """
    table = _by_model(results, _tests_or_why_not)
    if "family" in table:
        table["family"] = table["family"] + " in " + table["response"] + ", " + table["model"]
    return table


def _tests_or_why_not(rows: pd.DataFrame, response: str) -> pd.DataFrame:
    try:
        return level_tests(rows, response)
    except UserError as error:
        return pd.DataFrame({"note": [f"undefined: {error}"]})


def _by_model(results: Results, table: Callable[[pd.DataFrame, str], pd.DataFrame]) -> pd.DataFrame:
    """A table of each competent model and response, stacked; model and response come first."""
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
    """Each contrast over models: the fields of `interp.statistics.mixed.means.Pooled`, p_holm.

    The contrasts of one response are one family. The last column is verdict.

    Args:
        contrasts: rows of `contrasts_by_model`.
    """
    contrast, numbers = ["response", "factor", "first", "second"], ["difference", "standard_error"]
    found = contrasts.reindex(columns=[*contrast, *numbers]).dropna()
    table = pooled_table(found, estimate=numbers[0], error=numbers[1], by=contrast)
    families = [
        holm(rows, family=f"{response} over models")
        for response, rows in table.groupby("response", sort=False)
    ]
    if not families:
        return table
    corrected = pd.concat(families, ignore_index=True)
    return corrected.assign(verdict=verdicts(corrected))


def _of_models(results: Results) -> pd.DataFrame:
    """The rows of `pooled_contrasts` of soft accuracy, in the columns of `level_tests`."""
    table = pooled_contrasts(contrasts_by_model(results))
    chosen = table[table["response"] == RESPONSES[SHOWN]].drop(columns="response")
    return chosen.rename(columns={"estimate": "difference"}).reset_index(drop=True)
