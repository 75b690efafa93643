"""The contrasts of each model alone, and over models."""

from interp.report.page import Section, TableItem
from interp.statistics.mixed.means import MIN_STUDIES
from interp_experiments.logical_forms.contrasts import (
    contrasts_by_model,
    means_by_model,
    pooled_contrasts,
)
from interp_experiments.logical_forms.results import Results
from interp_experiments.logical_forms.sections.mixed_models import LIMITS


def models_section(results: Results) -> Section:
    """The contrasts of both scores, each model first, then all."""
    contrasts = contrasts_by_model(results)
    count = len(results.competent)
    few = (
        ""
        if count >= MIN_STUDIES
        else f" There is nothing to pool: {count} model answers and reads."
    )
    pooled = (
        [
            TableItem(
                "pooled_contrasts", "Contrasts over models", pooled_contrasts(contrasts), LIMITS
            )
        ]
        if count >= MIN_STUDIES
        else []
    )
    return Section(
        "Each model, and models in general",
        "Means of soft accuracy on valid forms and of the share of Yes on all forms, and their "
        "contrasts, of each model alone with errors robust to interpretations, then over models, "
        "each of which counts as one: Student's t with one degree of freedom less than models. "
        "estimate is the mean over models, tau the standard deviation of the true contrasts "
        "between them, I2 the share of variance that is between models, and predicted_low to "
        "predicted_high the range in which a further model is expected, errors of measurement "
        f"included.{few}",
        (
            *pooled,
            TableItem("means_by_model", "Means of each model alone", means_by_model(results)),
            TableItem(
                "contrasts_by_model", "Pairwise tests of each model alone", contrasts, LIMITS
            ),
        ),
    )
