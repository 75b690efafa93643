"""Correlates of correct answers across prompts: a logistic regression clustered by entity pair.

Generalized estimating equations (Liang and Zeger, 1986, Biometrika 73) with independence as the
working correlation: the estimates are those of an ordinary logistic regression. The standard errors
are robust to any correlation within entity pairs, with the correction of Mancl and DeRouen (2001,
Biometrics 57) for few clusters.
"""

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.optimize import linprog
from scipy.stats import t as student

from interp.extend.results import is_correct
from interp.extend.statistics import FEWEST, UPPER, grouped, holm, too_few
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import CLUSTER, Results

PREDICTORS = ("ratio_of_entity", "ratio_within_entity", "familiarity")
"""An entity pair's mean score ratio, a prompt's deviation from it, and the entity pair's
familiarity."""

FACTORS = ("rule", "phrasing", "verb")
"""Adjusted for; the last are omitted until there is an estimate, as few entity pairs share a
verb."""

SEPARATED = 1e-4
"""Log-odds, for coefficients of at most 1, up to which outcomes appear separated by rounding."""

LEAST_INFORMATION = 1e-9
"""Relative to the largest: information about some combination of columns without an entity pair.

Below it, that pair alone determines a coefficient, and its residuals are 0 whatever the outcomes.
"""

NUMBERS = ["estimate", "low", "high", "p", "odds_ratio", "se", "t", "df"]


def prompt_models(results: Results) -> pd.DataFrame:
    """Correlates of correct answers to rulebreakers, by model, method and predictor.

    estimate is in log-odds per standard deviation of the predictor, as an average over entity
    pairs; positive values favor correct answers. The degrees of freedom of Student's t are the
    number of entity pairs minus that of the coefficients that are constant within each of them.
    With fewer than ten entity pairs nothing is tested; without an estimate, numbers are NaN, and
    `note` says why.
    """
    keys = ["model", "method"]
    tables = [
        _fitted(rows).assign(model=str(of["model"]), method=str(of["method"]))
        for of, rows in grouped(_rows(results), keys)
    ]
    if not tables:
        return pd.DataFrame(columns=[*keys, "term"])
    table = pd.concat(tables, ignore_index=True)
    table = table[[*keys, *table.columns.drop(keys)]]
    return holm(table, family="across prompts, predictors of all models and methods")


def _fitted(rows: pd.DataFrame) -> pd.DataFrame:
    """The regression of one model and method, adjusted for as many factors as can be estimated."""
    if without_constant_levels(rows, FACTORS).empty:
        why = "left out: all answers are alike within each rule, phrasing or verb"
        table = pd.DataFrame({"term": PREDICTORS, **dict.fromkeys(NUMBERS, np.nan), "note": why})
        return table.assign(n=0, clusters=0, left_out=len(rows), adjusted_for="")
    for count in range(len(FACTORS), -1, -1):
        used = without_constant_levels(rows, FACTORS[:count])
        varying = [name for name in FACTORS[:count] if used[name].nunique() > 1]
        table = regression(used, varying)
        if table["estimate"].notna().any():
            break
    entities = used[CLUSTER].nunique()
    if entities < FEWEST and table["p"].notna().any():
        table = table.assign(low=np.nan, high=np.nan, p=np.nan, note=too_few(entities))
    counts = {"n": len(used), "clusters": entities, "left_out": len(rows) - len(used)}
    return table.assign(**counts, adjusted_for=", ".join(varying))


def regression(rows: pd.DataFrame, factors: Sequence[str]) -> pd.DataFrame:
    """The coefficients of the predictors, with tests over entity pairs, however few there are.

    Rows hold correct, entity_pair, the predictors, and the factors, with at least two values each.
    Predictors are standardized; one that is the same for all prompts is undefined and left out.
    """
    values = rows[list(PREDICTORS)].astype(float)
    # Values that differ only by rounding are constant.
    varies = values.max() - values.min() > 1e-12 * values.abs().max()
    values = values.loc[:, varies]
    dummies = [
        pd.get_dummies(rows[name].astype(str), prefix=name, drop_first=True, dtype=float)
        for name in factors
    ]
    columns = pd.concat([(values - values.mean()) / values.std(), *dummies], axis=1)
    design = np.column_stack([np.ones(len(rows)), columns.to_numpy()])
    outcomes, clusters = rows["correct"].to_numpy(dtype=float), pd.factorize(rows[CLUSTER])[0]
    reason = _undefined(design, outcomes, clusters)
    fit = None if reason else _fit(design, outcomes, clusters)
    table = pd.DataFrame(np.nan, index=varies.index, columns=["estimate", "se", "df"])
    table["note"] = np.where(varies, "", "undefined: it is the same for all prompts")
    if fit is None:
        why = reason or "the search for the estimates did not converge"
        table.loc[varies, "note"] = f"undefined: {why}"
    else:
        freedom = clusters.max() + 1 - _between(design, clusters)
        of_predictors = [column[1 : 1 + values.shape[1]] for column in fit]
        table.loc[varies, ["estimate", "se"]] = np.column_stack(of_predictors)
        table.loc[varies, "df"] = float(freedom)
    table["t"] = table["estimate"] / table["se"]
    half = student.ppf(UPPER, table["df"]) * table["se"]
    table = table.assign(low=table["estimate"] - half, high=table["estimate"] + half)
    table["p"] = 2 * student.sf(table["t"].abs(), table["df"])
    table["odds_ratio"] = np.exp(table["estimate"])
    return table.rename_axis("term").reset_index()[["term", *NUMBERS, "note"]]


def _undefined(
    design: Float[np.ndarray, "rows columns"],
    outcomes: Float[np.ndarray, " rows"],
    clusters: np.ndarray,
) -> str:
    """The reason why the coefficients have no estimate or no standard error; empty if they do."""
    if len(set(outcomes)) < 2:
        return f"the answer is always {'correct' if outcomes[0] else 'incorrect'}"
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return "the terms depend on each other linearly"
    if separated(design, outcomes):
        return "the terms separate the outcomes, so the estimates would be infinite"
    whole = design.T @ design
    for cluster in range(clusters.max() + 1):
        prompts = design[clusters == cluster]
        values = np.linalg.eigvalsh(whole - prompts.T @ prompts)
        if values[0] <= LEAST_INFORMATION * values[-1]:
            return "a coefficient depends on a single entity pair"
    return ""


def separated(
    design: Float[np.ndarray, "rows columns"], outcomes: Float[np.ndarray, " rows"]
) -> bool:
    """Whether coefficients exist that are right for some rows and wrong for none.

    This is separation (Albert and Anderson, 1984), found by the linear program of Konis (2007).
    """
    signed = (2 * outcomes - 1)[:, None] * design
    solution = linprog(
        -signed.mean(axis=0), A_ub=-signed, b_ub=np.zeros(len(signed)), bounds=(-1, 1)
    )
    return bool((signed @ solution.x).max() > SEPARATED)


def _fit(
    design: Float[np.ndarray, "rows columns"],
    outcomes: Float[np.ndarray, " rows"],
    clusters: np.ndarray,
) -> tuple[np.ndarray, np.ndarray] | None:
    # These imports are slow, and commands without a report should not wait for them.
    from statsmodels.genmod.cov_struct import Independence
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_estimating_equations import GEE
    from statsmodels.tools.sm_exceptions import ModelWarning

    model = GEE(outcomes, design, groups=clusters, family=Binomial(), cov_struct=Independence())
    with warnings.catch_warnings():
        for failure in (ModelWarning, RuntimeWarning):
            warnings.simplefilter("error", failure)
        try:
            fit = model.fit(cov_type="bias_reduced")
            return np.asarray(fit.params), np.asarray(fit.bse)
        except (ModelWarning, RuntimeWarning, np.linalg.LinAlgError):
            return None


def _between(design: Float[np.ndarray, "rows columns"], clusters: np.ndarray) -> int:
    """Number of columns that are constant within each cluster, but for rounding."""
    sizes = np.bincount(clusters)
    means = np.column_stack([np.bincount(clusters, column) / sizes for column in design.T])
    return int((np.abs(design - means[clusters]).max(axis=0) < 1e-9).sum())


def without_constant_levels(rows: pd.DataFrame, factors: Sequence[str]) -> pd.DataFrame:
    """The rows in which the level of every factor occurs with right and with wrong answers.

    Omitting a level, whose infinite effect explains its rows, may leave another with one outcome.
    """
    while True:
        kept = pd.Series(True, index=rows.index)
        for factor in factors:
            kept &= rows.groupby(factor, observed=True)["correct"].transform("nunique") > 1
        if kept.all():
            return rows
        rows = rows[kept]


def _rows(results: Results) -> pd.DataFrame:
    prompts = results.prompts[results.prompts["side"] == SIDES[0]]
    answers = results.answers[["model", "prompt_id"]].assign(correct=is_correct(results.answers))
    familiar = results.familiarity[["model", CLUSTER, "familiarity"]]
    rows = (
        results.ratios[["model", "prompt_id", "method", "ratio"]]
        .merge(answers, on=["model", "prompt_id"], validate="many_to_one")
        .merge(prompts[["prompt_id", CLUSTER, *FACTORS]], on="prompt_id", validate="many_to_one")
        .merge(familiar, on=["model", CLUSTER], validate="many_to_one")
        .dropna(subset=["ratio", "familiarity"])
    )
    mean = rows.groupby(["model", "method", CLUSTER])["ratio"].transform("mean")
    within = rows["ratio"] - mean
    # Equal ratios differ from their mean by rounding.
    within = within.where(within.abs() > 1e-12 * mean.abs(), 0.0)
    return rows.assign(ratio_of_entity=mean, ratio_within_entity=within)
