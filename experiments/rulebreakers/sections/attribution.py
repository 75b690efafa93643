"""Score ratios, measured and published."""

from collections.abc import Iterator

import pandas as pd

from interp.report.page import Section, TableItem
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.attribution import attribution, ratios
from interp_experiments.rulebreakers.tables.published import (
    measured_and_published,
    published_tables,
)


def attribution_section(results: Results) -> Section:
    """Tables 2 and 3, and the published figures of the same models."""
    table = attribution(results)
    both = measured_and_published(results)
    inferred = "Which column is which method is inferred from the text of Section 6."
    if both.empty:
        inferred = f"None of this study's models is one that the paper measured. {inferred}"
    return Section(
        "Attribution",
        "Score of premise 2 over that of premise 1: of means over tokens (Table 2) and of sums "
        "(Table 3).",
        (
            TableItem(
                "ratios",
                "Score ratios",
                ratios(results),
                "Geometric mean, median and mean over prompts with 95% intervals clustered by "
                "entity pair. largest_share: what one prompt holds of the sum of all; where it is "
                "more than 0.05, the mean hangs on that prompt.",
            ),
            TableItem(
                "attribution",
                "Score ratios and accuracy (Tables 2 and 3)",
                table,
                "_ratio and _sd are mean and standard deviation over prompts, as published; "
                "familiarity is the mean over the cities of the study.",
            ),
            *_compared(both),
            TableItem("published_tables", "As published", published_tables(), inferred),
        ),
    )


def _compared(both: pd.DataFrame) -> Iterator[TableItem]:
    """The table of the models that the paper measured as well, if there are any."""
    if not both.empty:
        note = "The published figures of the models that the paper measured, and the difference."
        yield TableItem("published", "Measured and published", both, note)
