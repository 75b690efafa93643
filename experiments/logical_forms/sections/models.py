"""Which models answer and read at all."""

from interp.analysis.accuracy import notes_without_answer
from interp.report.page import Section, TableItem
from interp_experiments.logical_forms import tables
from interp_experiments.logical_forms.results import MIN_ANSWERED, Results


def model_section(results: Results, parameters: TableItem) -> Section:
    """Which models answer and read at all."""
    text = (
        "A model is compared if it answers, with a mean probability of Yes and No "
        f"together of at least {MIN_ANSWERED}, and if it reads them: the geometric mean of its "
        "perplexities is below the size of its vocabulary, which is the perplexity of guessing. "
        f"{len(results.competent)} of {len(results.models)} do; the others are grey in the "
        "figures. Perplexity counts everything that a model reads from its second token on, a chat "
        "template included."
    )
    return Section(
        "Models",
        text,
        (
            TableItem(
                "models",
                "Whether they answer, and the perplexity of the questions",
                tables.models(results),
                "; ".join(notes_without_answer(results.answers)),
            ),
            parameters,
        ),
    )
