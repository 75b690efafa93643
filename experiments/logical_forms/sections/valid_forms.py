"""What determines soft accuracy on valid forms."""

from interp.report.page import FigureItem, Item, Section, TableItem
from interp.statistics.mixed.linear import MIN_GROUPS
from interp_experiments.logical_forms import figures
from interp_experiments.logical_forms.contrasts import Contrasts
from interp_experiments.logical_forms.effects import Effects
from interp_experiments.logical_forms.results import Results
from interp_experiments.logical_forms.sections.mixed_models import (
    LIMITS,
    TERM_TESTS,
    effect_items,
    mixed_model,
    remark,
)

WITHIN_FORM = "perplexity_within_form"


def valid_section(found: Contrasts | str) -> Section:
    """The confirmatory contrasts (Table 2)."""
    text = (
        "Means of the questions whose answer is Yes, as they are: modalities and argument forms "
        "are not compared at equal perplexity, most of which a question's form makes. "
        f"With at least {MIN_GROUPS} models each contrast is made for every model, and the models "
        "are the observations; with fewer the interpretations are, and the tests are about these "
        "models alone."
    )
    if isinstance(found, str):
        return Section("Differences between valid forms", f"{text} There are none: {found}.")
    return Section(
        "Differences between valid forms",
        f"{text} Of these tests: {found.note}.",
        (
            FigureItem(
                "valid_means",
                "Soft accuracy on valid forms",
                lambda: figures.estimated_means(
                    found.means, response="soft accuracy", tests=found.tests
                ),
                "Means with 95% intervals, over models or, if there are few, clustered by "
                "interpretation. Brackets: p of the difference by Holm's method. n counts answers.",
            ),
            TableItem("valid_means", "Soft accuracy on valid forms", found.means),
            TableItem(
                "valid_tests",
                "Pairwise tests of these means (Table 2): confirmatory",
                found.tests,
                f"difference: first less second. Two-sided, by Student's t. {LIMITS}",
            ),
            TableItem(
                "valid_term_tests",
                "Tests of each factor, and of their interaction (exploratory)",
                found.term_tests,
                TERM_TESTS,
            ),
        ),
    )


def adjusted_section(results: Results) -> Section:
    """Formula 4 as in the paper: Figures 3 and 4."""
    rows = results.pooled("questions", valid=True)
    found = mixed_model(rows, "soft_accuracy")
    return Section(
        "The paper's model: soft accuracy on valid forms, adjusted for perplexity (4)",
        "Exploratory: a linear mixed model of the questions whose answer is Yes, with perplexity "
        "beside modality and argument form. Perplexity is in standard deviations from the mean of "
        "the model's own questions: per-token perplexities of different tokenizers are not "
        "comparable. The effects of modality and argument form vary by model where there are at "
        f"least {MIN_GROUPS} models. An adjusted mean is that at mean perplexity. Forms differ in "
        "perplexity, and so an adjusted difference leaves out what a form does through the "
        "perplexity of its words; where a level has no question of mean perplexity, its adjusted "
        "mean is extrapolated. A second model has perplexity centred within each form: its "
        f"coefficient compares questions of one form.{remark(found)}",
        (
            *effect_items(found, name="adjusted", figure="Figure 3"),
            *random_effect_items(found),
            *_within_form_items(mixed_model(rows, "soft_accuracy", covariate=WITHIN_FORM)),
        ),
    )


def _within_form_items(found: Effects | str) -> tuple[Item, ...]:
    if isinstance(found, str):
        return ()
    return (
        TableItem(
            "within_form_coefficients",
            "Fixed effects with perplexity centred within each form",
            found.model.coefficients(),
        ),
    )


def random_effect_items(found: Effects | str) -> tuple[Item, ...]:
    """Figure 4, where there are random effects."""
    if isinstance(found, str):
        return ()
    spread = TableItem(
        "adjusted_spread", "Spread of the random effects", found.model.random_spread()
    )
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
