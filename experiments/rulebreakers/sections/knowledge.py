"""Familiarity and the knowledge filter."""

from interp.report.page import FigureItem, Section, TableItem
from interp_experiments.rulebreakers import figures
from interp_experiments.rulebreakers.findings import first_letters
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.sections.marks import marks
from interp_experiments.rulebreakers.tables.familiarity import (
    ALL,
    city_familiarity,
    familiarity,
    shared_first_tokens,
)


def knowledge_section(results: Results) -> Section:
    """Figure 6 and the knowledge filter."""
    table, mark = familiarity(results), marks(results)
    cities, shared = city_familiarity(results), shared_first_tokens(results)
    return Section(
        "Knowledge and familiarity",
        'Familiarity is the probability of the first token of the country after "Complete the '
        f'sentence: [city] is in". {first_letters(shared)}',
        (
            FigureItem(
                "figure6_familiarity",
                "Familiarity of recognized and failed cities (Figure 6)",
                lambda: figures.familiarity(mark(table[table["cities"] == ALL]), mark(cities)),
                "Dots: cities, in both groups where some of their pairs are recognized and some "
                "are not; their area is the number of pairs. Large points: mean over pairs; "
                "whiskers: 95% interval, bootstrap over cities; n: cities. p by random orders of "
                "familiarity over cities, corrected by Holm's method over the models.",
            ),
            TableItem(
                "familiarity",
                "Familiarity and recognition",
                table,
                "Tested over all cities, one test a model. Further rows describe how robust that "
                "is, and are not tested: the cities whose country has a first token of its own, "
                "where there are any, and all cities by the probability of the country's whole "
                "name. "
                "Columns in _paper are Welch's test over pairs of prompts, as the paper makes it, "
                "in which a city counts as often as it was asked about: it finds differences "
                "where there are none.",
            ),
            TableItem(
                "shared_first_tokens",
                "Countries that share their first token with another",
                shared,
            ),
            TableItem(
                "unknown_pairs",
                "Entity pairs that a model does not complete",
                results.unknown,
                "Geographical ones are left out of everything else, for all models (Section 4.1). "
                "Categorical ones are kept, as in the paper, which checked them by hand.",
            ),
        ),
    )
