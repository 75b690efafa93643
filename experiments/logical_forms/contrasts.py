"""Differences between modalities, and between argument forms, in the means of the questions.

Perplexity is not a covariate here. Most of a question's perplexity comes from its form, so a mean
at equal perplexity describes questions that were never asked, and hides what a form does through
the perplexity of its words. The paper's adjusted means are in `effects`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from interp.errors import UserError
from interp.statistics.decisions import holm, verdicts
from interp.statistics.mixed.design import MixedFormula
from interp.statistics.mixed.linear import MIN_GROUPS, fit_mixed_model
from interp.statistics.mixed.means import pairwise_tests, pooled_table
from interp_experiments.logical_forms.effects import FACTORS, RESPONSES, term_tests
from interp_experiments.logical_forms.results import CLUSTER, Results, clustered_means

NOBODY = "no model answers Yes or No often enough with a perplexity below that of guessing"

SHOWN = "soft_accuracy"
"""The dependent variable of the confirmatory contrasts."""

_CONTRAST = ["response", "factor", "first", "second"]


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
    """With fewer than `MIN_GROUPS` interpretations are the observations, and the tests are about
    these models."""
    note: str
    """What the observations are, or why there are no tests."""


def confirmatory(results: Results) -> Contrasts | str:
    """Pairs of modalities and of argument forms in soft accuracy on valid forms, or why none.

    With at least `MIN_GROUPS` models each contrast is made for every model and pooled over them;
    with fewer, errors are robust to interpretations.
    """
    rows = results.pooled("questions", valid=True)
    if rows.empty:
        return NOBODY
    formula = MixedFormula(SHOWN, FACTORS, "model", varying=FACTORS)
    count = rows["model"].nunique()
    try:
        model = fit_mixed_model(rows, formula, cluster=CLUSTER)
        note = f"the observations are {count} models"
        if count < MIN_GROUPS:
            tests, note = level_tests(rows, SHOWN), model.note
        else:
            tests = _of_models(results)
        return Contrasts(
            means=level_means(rows, SHOWN, over="model" if count >= MIN_GROUPS else CLUSTER),
            tests=tests,
            term_tests=term_tests(rows, model, formula),
            models=count,
            note=note,
        )
    except UserError as error:
        return str(error)


def level_means(rows: pd.DataFrame, response: str, *, over: str = CLUSTER) -> pd.DataFrame:
    """One mean per factor and level: factor, level and the columns of `clustered_means`."""
    parts = [
        clustered_means(
            rows.assign(factor=factor, level=rows[factor].astype(str)).sort_values(factor),
            response,
            by=["factor", "level"],
            cluster=over,
        )
        for factor in FACTORS
    ]
    return pd.concat(parts, ignore_index=True)


def level_tests(rows: pd.DataFrame, response: str) -> pd.DataFrame:
    """Tests of the pairs of levels of each factor, with errors robust to interpretations.

    Columns are factor, those of `pairwise_tests`, p_holm over the pairs of all factors, and
    verdict. A difference compares the means of all questions at the two levels, within models.

    Raises:
        UserError: no rows, or a factor that has one level in them.
    """
    parts = []
    for factor in FACTORS:
        alone = MixedFormula(response, (factor,), "model")
        tests = pairwise_tests(fit_mixed_model(rows, alone, cluster=CLUSTER), factor)
        parts.append(tests.drop(columns=["p_holm", "family", "family_size"]))
        parts[-1].insert(0, "factor", factor)
    table = pd.concat(parts, ignore_index=True)
    corrected = holm(table, family=f"pairs of {' and '.join(FACTORS)}")
    return corrected.assign(verdict=verdicts(corrected))


def means_by_model(results: Results) -> pd.DataFrame:
    """`level_means` for each model: soft accuracy on valid forms, share of Yes on all."""
    tables = [
        level_means(rows, response).assign(model=model, response=words)
        for model, response, words, rows in _parts(results)
    ]
    return _named(tables)


def contrasts_by_model(results: Results) -> pd.DataFrame:
    """`level_tests` for each model, as in `means_by_model`, or a note on why there are none."""
    tables = []
    for model, response, words, rows in _parts(results):
        try:
            found = level_tests(rows, response)
        except UserError as error:
            found = pd.DataFrame({"note": [f"undefined: {error}"]})
        tables.append(found.assign(model=model, response=words))
    return _named(tables)


def pooled_contrasts(contrasts: pd.DataFrame) -> pd.DataFrame:
    """Each contrast over models: the fields of `interp.statistics.mixed.means.Pooled`, p_holm.

    The contrasts of one response are one family. The last column is verdict.

    Args:
        contrasts: rows of `contrasts_by_model`.
    """
    found = contrasts.reindex(columns=[*_CONTRAST, "difference", "standard_error"]).dropna()
    table = pooled_table(found, estimate="difference", error="standard_error", by=_CONTRAST)
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


def _parts(results: Results) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    """Each model and response, the response in words, and the questions it covers."""
    for model in results.competent:
        for response, words in RESPONSES.items():
            rows = results.pooled("questions", valid=response == SHOWN)
            yield model, response, words, rows[rows["model"] == model]


def _named(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """The tables stacked, model and response first."""
    first = ["model", "response"]
    if not tables:
        return pd.DataFrame(columns=first)
    table = pd.concat(tables, ignore_index=True)
    return table[[*first, *table.columns.drop(first)]]
