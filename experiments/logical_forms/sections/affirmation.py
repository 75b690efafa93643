"""Whether models are inclined to say Yes."""

import pandas as pd

from interp.report.page import Section, TableItem
from interp_experiments.logical_forms import tables
from interp_experiments.logical_forms.results import Results
from interp_experiments.logical_forms.sections.mixed_models import effect_items, mixed_model, remark


def affirmation_section(results: Results, affirmed: pd.DataFrame) -> Section:
    """Formula 5: Figure 6."""
    balanced, valid = (
        mixed_model(results.pooled("questions", valid=only), "relative_positive")
        for only in (False, True)
    )
    return Section(
        "Affirmation and rejection (5)",
        "The share of Yes in the probability of Yes and No. Over all questions half of the correct "
        "answers are Yes, so a mean above 0.5 is a bias to affirm, below it one to reject. The "
        "paper does not say which questions its model is fitted to; here it is all of them, then "
        "those whose answer is Yes. It is exploratory, and adjusted for perplexity; the raw means "
        "are next to the adjusted ones."
        f"{remark(balanced)}",
        (
            TableItem(
                "affirmation",
                "Inclination to Yes apart from the ability, in log-odds",
                affirmed,
                "bias: mean log-odds of Yes over theorems and fallacies, 0 without an inclination. "
                "sensitivity: mean log-odds of the correct answer, 0 where answers do not depend "
                "on what follows.",
            ),
            TableItem(
                "detection",
                "Valid arguments told from invalid ones",
                tables.detection(results),
                "auroc: probability that a valid argument has a larger share of Yes than an "
                "invalid one. d_prime and bias: of the greedy answers, d' and c of signal "
                "detection; a bias above 0 leans to No. Intervals: bootstrap over "
                "interpretations.",
            ),
            *effect_items(balanced, name="yes", figure="Figure 6"),
            *effect_items(valid, name="yes_valid", figure="valid forms alone"),
        ),
    )
