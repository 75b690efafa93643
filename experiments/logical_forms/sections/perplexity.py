"""Perplexity of questions and of their mirror in pseudo-words."""

import pandas as pd

from interp.report.page import FigureItem, Section, TableItem
from interp_experiments.logical_forms import figures, tables
from interp_experiments.logical_forms.results import Results
from interp_experiments.logical_forms.sections.accuracy import POINTS


def perplexity_section(results: Results, correlations: pd.DataFrame) -> Section:
    """Figure 5."""
    by_form = tables.by_form(results)
    return Section(
        "Perplexity",
        "Questions and their mirror in pseudo-words, under the same forms.",
        (
            FigureItem(
                "figure5_perplexity",
                "From real words to pseudo-words, form by form (Figure 5)",
                lambda: figures.forms_over_perplexity(by_form, competent=results.competent),
                f"{POINTS} A line leads from the questions to their mirror.",
            ),
            TableItem(
                "perplexity_correlations",
                "Spearman's correlation of perplexity with soft accuracy",
                correlations,
                "The paper reports a weak negative correlation over its ten models. Over several "
                "forms rho mixes perplexity with what the forms do; within a form it does not: "
                "questions are ranked among those of the same model and form. Intervals: "
                "percentile bootstrap over interpretations.",
            ),
        ),
    )
