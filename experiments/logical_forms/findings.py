"""The findings, in sentences made from the numbers of the tables."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pandas as pd

from interp.report.formatting import number_text
from interp.statistics.decisions import DIFFERENT, left_open
from interp_experiments.findings import EXPLORATORY, organisms
from interp_experiments.logical_forms.effects import Contrasts
from interp_experiments.logical_forms.results import MIN_ANSWERED, Results


def findings(
    results: Results,
    *,
    valid: Contrasts | str,
    affirmation: pd.DataFrame,
    correlations: pd.DataFrame,
) -> str:
    """Paragraphs on who was measured, accuracy, perplexity and the inclination to an answer."""
    exploratory = [*_perplexity(correlations), *_inclination(affirmation)]
    if exploratory:
        exploratory.insert(0, EXPLORATORY)
    return "\n\n".join(
        [*organisms(results.models), _who(results), *_confirmatory(valid), *exploratory]
    )


def _who(results: Results) -> str:
    competent, count = results.competent, len(results.models)
    left_out = [model for model in results.models if model not in competent]
    text = (
        f"{len(competent)} of {count} models answer the questions and read them: "
        f"{', '.join(competent) or 'none'}."
    )
    if left_out:
        text += (
            f" Left out: {', '.join(left_out)}. For these models, Yes and No together have a "
            f"probability below {MIN_ANSWERED}, or the perplexity is above that of guessing, so "
            "soft accuracy says nothing about logical forms. They are grey in the figures, and "
            "the findings below exclude them."
        )
    return text


def _confirmatory(found: Contrasts | str) -> Iterator[str]:
    if isinstance(found, str):
        return
    text = (
        f"Confirmatory: the {len(found.tests)} comparisons of modalities and of argument forms in "
        "soft accuracy on valid forms (Table 2) were fixed in the code. They compare means that "
        "are not adjusted for perplexity, and are corrected together: the chance of any false "
        "finding among them is at most 5%."
    )
    if found.tests["p_holm"].isna().all():
        yield f"{text} None could be tested: {found.note}."
    else:
        yield text
    about = {1: "This holds for one model only.", 2: "This holds for these two models only."}.get(
        found.models,
        f"The observations are {found.models} models: for these questions, the tests hold for "
        "models in general, as far as these are a sample.",
    )
    for factor, means in found.means.groupby("factor", sort=False):
        values = ", ".join(
            f"{row['level']} {_with_interval(row, 'mean')}"
            for row in means.sort_values("mean", ascending=False).to_dict("records")
        )
        tests = found.tests[found.tests["factor"] == factor]
        text = f"Soft accuracy on valid forms by {str(factor).replace('_', ' ')}: {values}."
        yield f"{text}{_differences(tests)} {about}"


def _differences(tests: pd.DataFrame) -> str:
    """Which pairs differ, and what is excluded for the others; empty if none was tested."""
    tests = tests[tests["p_holm"].notna()]
    if tests.empty:
        return ""
    tests = tests.assign(pair=tests["first"] + " - " + tests["second"])
    differing = tests["verdict"] == DIFFERENT
    pairs = ", ".join(
        f"{row['pair']} {_with_interval(row, 'difference')}"
        for row in tests[differing].to_dict("records")
    )
    text = f" After Holm's correction {differing.sum()} of {len(tests)} pairs differ"
    text += f": {pairs}." if pairs else "."
    limits = tests[~differing][["pair", "excluded_below", "excluded_above"]]
    excluded = left_open(limits.itertuples(index=False, name=None))
    if excluded:
        text += f" Where none is shown, {excluded} (in brackets: what is not excluded)."
    return text


def _with_interval(row: Mapping[Hashable, Any], name: str, ends: str = "") -> str:
    """A number with its 95% interval, in columns whose names begin with `ends`."""
    low, high = (number_text(row[f"{ends}{end}"]) for end in ("low", "high"))
    return f"{number_text(row[name])} ({low} to {high})"


def _perplexity(correlations: pd.DataFrame) -> Iterator[str]:
    rows = correlations[correlations["set"] == "questions"].drop_duplicates("forms")
    rows = rows[rows["rho"].notna()]
    if rows.empty or not rows["n"].iloc[0]:
        return
    values = "; ".join(
        f"{row['forms']} {_with_interval(row, 'rho')}" for row in rows.to_dict("records")
    )
    yield (
        f"Rank correlation of perplexity with soft accuracy: {values}. Only the correlation "
        "within a form is free of the effects of the forms themselves."
    )


def _inclination(table: pd.DataFrame) -> Iterator[str]:
    for model, rows in table[table["modality"] != "all"].groupby("model", sort=False):
        parts = [
            f"{row['modality']} {_with_interval(row, 'bias', 'bias_')}, "
            f"{_lean(row['bias_low'], row['bias_high'])}"
            for row in rows.to_dict("records")
        ]
        yield (
            f"{model}: inclination to Yes by modality, the mean log-odds of Yes over theorems and "
            f"fallacies in equal parts (0 is none): {'; '.join(parts)}. The 95% intervals are not "
            "corrected for their number."
        )


def _lean(low: float, high: float) -> str:
    """The meaning of an interval of the inclination, in words."""
    if low > 0 or high < 0:
        return f"a leaning to {'Yes' if low > 0 else 'No'}"
    return "no leaning shown, and none outside the interval"
