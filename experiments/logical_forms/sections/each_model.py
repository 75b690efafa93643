"""The mixed models of each model alone, and their contrasts over models."""

from interp.analysis.mixed.pooling import MIN_STUDIES
from interp.report.page import Section, TableItem
from interp_experiments.logical_forms.effects import (
    contrasts_by_model,
    effects_by_model,
    pooled_contrasts,
)
from interp_experiments.logical_forms.results import Results


def models_section(results: Results) -> Section:
    """Formulas 4 and 5, each model first, then all."""
    contrasts = contrasts_by_model(results)
    count = len(results.competent)
    few = "" if count >= MIN_STUDIES else f" There is no such table: {count} model is in it."
    pooled = (
        [TableItem("pooled_contrasts", "Contrasts over models", pooled_contrasts(contrasts))]
        if count >= MIN_STUDIES
        else []
    )
    return Section(
        "Each model, and models in general",
        "The mixed models once more, of each model alone and by least squares, and their contrasts "
        "pooled by a random-effects meta-analysis over models (Hartung and Knapp's interval, t "
        "with one degree of freedom less than models). estimate is the mean over models, tau the "
        "standard deviation of the true contrasts between them, I2 the share of variance that is "
        "between models, and predicted_low to predicted_high the range in which a further model "
        f"is expected.{few}",
        (
            *pooled,
            TableItem(
                "means_by_model",
                "Estimated marginal means of each model alone (4, 5)",
                effects_by_model(results),
            ),
            TableItem("contrasts_by_model", "Pairwise tests of each model alone", contrasts),
        ),
    )
