"""Figure and tables of one mixed model, or why there is none."""

from typing import Any

import pandas as pd

from interp.errors import UserError
from interp.report.page import FigureItem, Item, TableItem
from interp.statistics.decisions import SMALLEST
from interp_experiments.logical_forms import figures
from interp_experiments.logical_forms.contrasts import NOBODY
from interp_experiments.logical_forms.effects import RESPONSES, Effects, effects

TERM_TESTS = (
    "F: Wald's test, whose df2 is one less than there are models; with too few of them Hotelling's "
    "T squared over interpretations, whose number less df1 is df2. chi_square: the paper's "
    "likelihood-ratio test against the model without the effect, both by maximum likelihood, which "
    "takes the questions of an interpretation as independent. The interaction is tested in a model "
    "that has it."
)

LIMITS = (
    "verdict, by p_holm: different; smaller, where no difference is shown and one of "
    f"{SMALLEST:g} or more is excluded; open, where neither is. Differences below excluded_below "
    "and above excluded_above are excluded by two one-sided tests, each at 5% and not corrected."
)
"""What tables of pairwise tests say where no difference is shown."""


def mixed_model(rows: pd.DataFrame, response: str, **options: Any) -> Effects | str:
    """`effects` with its options, or why these rows allow none."""
    if rows.empty:
        return NOBODY
    try:
        return effects(rows, response=response, **options)
    except UserError as error:
        return str(error)


def remark(found: Effects | str) -> str:
    """A sentence on the limits of a fit, or why there is none; empty if nothing is to note."""
    if isinstance(found, str):
        return f" There is no mixed model: {found}."
    return f" Of this fit: {found.model.note}." if found.model.note else ""


def effect_items(found: Effects | str, *, name: str, figure: str | None = None) -> tuple[Item, ...]:
    """Figure and tables of one mixed model, if there is one."""
    if isinstance(found, str):
        return ()
    response = found.model.formula.response
    words = RESPONSES[response]
    title = f"Means of {words}, adjusted for perplexity"
    return (
        FigureItem(
            f"{name}_means",
            f"{title} ({figure})" if figure else title,
            lambda: figures.estimated_means(
                found.means,
                response=words,
                tests=found.tests,
                neutral=0.5 if response == "relative_positive" else None,
            ),
            "Filled: averaged over the other factor with equal weights, at mean perplexity, with "
            f"the 95% interval by Student's t ({found.model.freedom:,} degrees of freedom). "
            "Hollow: the mean of the questions as they are. Brackets: p of the difference by "
            "Holm's method. n counts answers. Where a level has no question of mean perplexity, "
            "its adjusted mean is extrapolated.",
        ),
        TableItem(
            f"{name}_means",
            title,
            found.means,
            "Raw means have intervals clustered by interpretation.",
        ),
        TableItem(f"{name}_fit", "The model", found.fit),
        TableItem(f"{name}_coefficients", "Fixed effects", found.model.coefficients()),
        TableItem(f"{name}_term_tests", "Tests of each fixed effect", found.term_tests, TERM_TESTS),
        TableItem(
            f"{name}_tests",
            "Pairwise tests of the adjusted means (exploratory)",
            found.tests,
            f"Two-sided, by Student's t with {found.model.freedom:,} degrees of freedom. {LIMITS}",
        ),
    )
