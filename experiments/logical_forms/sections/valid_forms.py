"""What determines soft accuracy on valid forms."""

from interp.analysis.mixed.linear import MIN_GROUPS
from interp.report.page import FigureItem, Item, Section, TableItem
from interp_experiments.logical_forms import figures
from interp_experiments.logical_forms.effects import Effects
from interp_experiments.logical_forms.results import Results
from interp_experiments.logical_forms.sections.mixed_models import effect_items, mixed_model, remark


def valid_section(results: Results, found: Effects | str) -> Section:
    """Formula 4: Table 2, Figures 3 and 4."""
    within = mixed_model(
        results.pooled("questions", valid=True),
        "soft_accuracy",
        covariate="perplexity_within_form",
    )
    return Section(
        "What determines soft accuracy on valid forms (4)",
        "A linear mixed model of the questions whose answer is Yes. Perplexity is in standard "
        "deviations from the mean of the model's own questions: per-token perplexities of "
        "different tokenizers are not comparable. The effects of modality and argument form vary "
        f"by model where there are at least {MIN_GROUPS} models. An adjusted mean is that at mean "
        "perplexity; where a level has no question of mean perplexity, it is extrapolated, and the "
        "raw mean says more. A second model has perplexity centred within each form, which leaves "
        f"what forms do to perplexity to the forms.{remark(found)}",
        (
            *effect_items(found, name="valid", figure="Figure 3"),
            *random_effect_items(found),
            *effect_items(within, name="valid_within_form", figure="perplexity within form"),
        ),
    )


def random_effect_items(found: Effects | str) -> tuple[Item, ...]:
    """Figure 4, where there are random effects."""
    if isinstance(found, str):
        return ()
    spread = TableItem("valid_spread", "Spread of the random effects", found.model.random_spread())
    if found.slopes.empty:
        return (spread,)
    return (
        FigureItem(
            "figure4_slopes",
            "Intercept and slope of perplexity of each model (Figure 4)",
            lambda: figures.slopes(found.slopes, covariate=found.covariate),
            "Fixed effect and the model's deviation from it together.",
        ),
        TableItem("slopes", "Intercept and slope of each model", found.slopes),
        TableItem(
            "random_effects", "Deviations from the fixed effects", found.model.random_effects()
        ),
        spread,
    )
