"""The tables of the study of LogicalForms (paper, Tables 1, 2, A2 and what the figures show)."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import pandas as pd

from interp.analysis.mixed.design import MixedFormula
from interp.analysis.mixed.linear import MixedModel, fit_mixed_model, likelihood_ratio_test
from interp.analysis.mixed.marginal_means import marginal_means, pairwise_tests
from interp.analysis.mixed.r_squared import r_squared
from interp.analysis.spearman import spearman_table
from interp.errors import UserError
from interp_experiments.logical_forms.forms import ARGUMENT_FORMS, MODALITIES, distribution_forms
from interp_experiments.logical_forms.results import Results, planted

PERPLEXITY = "relative_perplexity"

RESPONSES = {"soft_accuracy": "soft accuracy", "relative_positive": "share of Yes"}
"""Dependent variables of formulas 4 and 5, in words."""

FORM_CHANGES = [
    (f"{modality} {form}", f"{modality} base")
    for modality in ("box", "diamond")
    for form in ("theorem", "spurious")
]
"""Comparisons of Appendix C.2."""


@dataclass(frozen=True)
class Effects:
    """A mixed model of one dependent variable with everything that is reported of it."""

    model: MixedModel
    means: pd.DataFrame
    """One row per level of a factor: factor, level, mean, standard_error, low, high, n."""
    tests: pd.DataFrame
    """One row per pair of levels: factor, and the columns of `pairwise_tests`."""
    ratio_tests: pd.DataFrame
    """One row per fixed effect: the columns of `likelihood_ratio_test`."""

    @property
    def fit(self) -> pd.DataFrame:
        """One row: formula, rows, groups, R squared and notes on the fit."""
        return pd.DataFrame(
            [
                {
                    "formula": self.model.equation,
                    "rows": len(self.model.design.response),
                    "models": len(self.model.groups),
                    "R2_marginal": r_squared(self.model).marginal,
                    "R2_conditional": r_squared(self.model).conditional,
                    "note": self.model.note,
                }
            ]
        )


def effects(
    rows: pd.DataFrame,
    *,
    response: str,
    factors: Sequence[str],
    pairs: Sequence[tuple[str, str]] | None = None,
) -> Effects:
    """Formula 4 or 5: response ~ factors + perplexity + (1 + perplexity | model).

    Args:
        rows: rows of `Results.pooled`.
        response: "soft_accuracy" (4) or "relative_positive" (5).
        factors: "modality" and "argument_form", or some of them.
        pairs: levels of the factor to compare; all pairs if None.

    Raises:
        UserError: no rows, or factors that are collinear in the rows.
    """
    formula = MixedFormula(response, (*factors, PERPLEXITY), "model", PERPLEXITY)
    model = fit_mixed_model(rows, formula)
    means, tests = [], []
    for factor in factors:
        counts = rows[factor].astype(str).value_counts()
        table = marginal_means(model, factor)
        means.append(table.assign(n=table["level"].map(counts)))
        tests.append(pairwise_tests(model, factor, pairs=pairs))
    ratios = [likelihood_ratio_test(rows, formula, without=term) for term in formula.fixed]
    return Effects(
        model,
        means=_by_factor(means, factors),
        tests=_by_factor(tests, factors),
        ratio_tests=pd.DataFrame(ratios),
    )


def models(results: Results) -> pd.DataFrame:
    """One row per model: whether it answers, its perplexities, whether mixed models include it."""
    by_set = {stage: rows.groupby("model") for stage, rows in results.scores.items()}
    main = by_set["questions"]
    table = pd.DataFrame(
        {
            "model": results.models,
            "probability_of_Yes_and_No": main["answered"].mean()[results.models].to_numpy(),
            "vocabulary": [results.vocabulary[model] for model in results.models],
            "in_mixed_models": [model in results.competent for model in results.models],
        }
    )
    for stage, groups in by_set.items():
        table[f"perplexity_{stage}"] = groups["perplexity"].mean()[results.models].to_numpy()
    return table


def accuracy(rows: pd.DataFrame) -> pd.DataFrame:
    """Soft accuracy, a row per model, in the columns of Table 1: overall, modalities, forms, n.

    Every value is a mean over questions.
    """
    by_model = rows.groupby("model", sort=False)
    columns = {"overall": by_model["soft_accuracy"].mean()}
    for factor, levels in (("modality", MODALITIES), ("argument_form", tuple(ARGUMENT_FORMS))):
        means = rows.groupby(["model", factor], observed=True)["soft_accuracy"].mean().unstack()
        means = means.reindex(columns=list(levels))
        columns |= {level: means[level] for level in levels}
    columns["n"] = by_model.size()
    return pd.DataFrame(columns).rename_axis("model").reset_index()


def published_accuracy() -> pd.DataFrame:
    """Table 1 as published: ten open models, two commercial ones (greedy answers), and people."""
    return _data("published_accuracy.csv")


def introduction(rows: pd.DataFrame) -> pd.DataFrame:
    """Soft accuracy on the introduction rules, a row per model (Table A2)."""
    means = rows.groupby(["model", "modality"], observed=True)["soft_accuracy"].mean().unstack()
    counts = rows.groupby("model").size()
    return means.reindex(columns=list(MODALITIES)).assign(n=counts).reset_index()


def published_introduction() -> pd.DataFrame:
    """Table A2 as published."""
    return _data("published_introduction.csv")


def measured_and_published(measured: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Both tables, one below the other; `source` says which is which."""
    both = pd.concat(
        [measured.assign(source="measured"), published.assign(source="published")],
        ignore_index=True,
    )
    return both[["model", "source", *(c for c in both.columns if c not in ("model", "source"))]]


def cells(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the distribution forms with `cell`, such as "box theorem".

    The factors modality and form do not cross (without modality there is no scope), so their
    interaction is written as one factor with a level for each form.
    """
    names = rows["modality"].astype(str) + " " + rows["argument_form"].astype(str)
    order = [f"{form.modality} {form.group}" for form in distribution_forms()]
    return rows.assign(cell=pd.Categorical(names, order))


def distribution(rows: pd.DataFrame) -> pd.DataFrame:
    """Scores on the distribution forms, a row per model and form (Table A3)."""
    keys = ["model", "modality", "argument_form", "formula", "gold"]
    scores = rows.groupby(keys, observed=True, sort=False)[list(RESPONSES)].mean()
    return scores.assign(n=rows.groupby(keys, observed=True).size()).reset_index()


def by_form(results: Results) -> pd.DataFrame:
    """One row per model, form and set (questions, nonsense): mean scores and perplexity."""
    keys = ["model", "form", "modality", "argument_form", "gold"]
    parts = []
    for stage in ("questions", "nonsense"):
        groups = results.scores[stage].groupby(keys, observed=True, sort=False)
        means = groups[["soft_accuracy", "relative_positive", "perplexity"]].mean()
        parts.append(means.assign(n=groups.size()).reset_index().assign(set=stage))
    return pd.concat(parts, ignore_index=True)


def correlations(results: Results) -> pd.DataFrame:
    """Spearman's correlation of perplexity with soft accuracy, a row per model and set."""
    both = pd.concat(
        [results.scores[stage].assign(set=stage) for stage in ("questions", "nonsense")]
    )
    return spearman_table(both, pairs=[("perplexity", "soft_accuracy")], by=["model", "set"])


def effects_by_model(results: Results) -> pd.DataFrame:
    """Marginal means of formulas 4 and 5 for each model alone, by least squares.

    Columns are model, response, factor and those of `marginal_means`, or a note on why a model has
    none. Formula 4 is fitted to valid forms, formula 5 to all.
    """
    parts: list[pd.DataFrame] = []
    for model in results.competent:
        for response, words in RESPONSES.items():
            rows = results.pooled("questions", valid=response == "soft_accuracy")
            rows = rows[rows["model"] == model]
            try:
                found = effects(rows, response=response, factors=("modality", "argument_form"))
                means = found.means
            except UserError as error:
                means = pd.DataFrame({"note": [f"undefined: {error}"]})
            parts.append(means.assign(model=model, response=words))
    return (
        pd.concat(parts, ignore_index=True)
        if parts
        else pd.DataFrame(columns=["model", "response"])
    )


def planted_and_measured(results: Results) -> pd.DataFrame:
    """One row per organism of this system and form: the planted and measured share of Yes."""
    parts = []
    for model, forms in planted(results).items():
        for stage in ("questions", "introduction", "distribution"):
            rows = results.scores[stage]
            rows = rows[rows["model"] == model]
            keys = ["form", "modality", "formula", "gold"]
            groups = rows.groupby(keys, observed=True, sort=False)["relative_positive"]
            means = groups.mean().rename("measured_yes").reset_index()
            means["n"] = groups.size().to_numpy()
            parts.append(means.merge(forms, on="form").assign(model=model, set=stage))
    if not parts:
        return pd.DataFrame(columns=["model", "set", "form", "planted_yes", "measured_yes"])
    table = pd.concat(parts, ignore_index=True)
    table["difference"] = table["measured_yes"] - table["planted_yes"]
    first = ["model", "set", "form", "modality", "formula", "gold", "planted_yes", "measured_yes"]
    return table[[*first, "difference", "n"]]


def _by_factor(parts: Sequence[pd.DataFrame], factors: Sequence[str]) -> pd.DataFrame:
    named = [part.assign(factor=factor) for part, factor in zip(parts, factors, strict=True)]
    table = pd.concat(named, ignore_index=True)
    return table[["factor", *table.columns.drop("factor")]]


def _data(file: str) -> pd.DataFrame:
    return pd.read_csv(str(files(__package__) / "data" / file))
