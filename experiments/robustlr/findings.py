"""What a study of RobustLR found, in sentences made from its named comparisons."""

import pandas as pd

from interp_experiments.remarks import (
    NAMED_IN_ADVANCE,
    in_brief,
    in_full,
    organisms,
    organisms_in_brief,
)
from interp_experiments.robustlr.comparisons import (
    AGAINST_GUESS,
    BETWEEN_MODELS,
    BETWEEN_SETS,
    TEST_SPLIT,
)
from interp_experiments.robustlr.results import Results
from interp_experiments.robustlr.tables import SETS


def in_short(results: Results, table: pd.DataFrame) -> list[str]:
    """At most five sentences for the top of the page.

    Args:
        results: what was measured.
        table: `comparisons.comparisons` of it.
    """
    kinds = dict(list(_kinds(table).items())[:4])
    return [
        *organisms_in_brief(results.models),
        *(in_brief(rows, subject) for subject, rows in kinds.items()),
    ]


def findings(results: Results, table: pd.DataFrame) -> list[str]:
    """Every named comparison, a paragraph for each kind."""
    return [
        *organisms(results.models),
        NAMED_IN_ADVANCE,
        *(in_full(rows, subject) for subject, rows in _kinds(table).items()),
    ]


def _kinds(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Subjects of sentences, most important first, and their rows; those that have any."""
    against = table[table["kind"] == AGAINST_GUESS]
    kinds = {
        "Test split against a constant guess": against[against["sets"] == TEST_SPLIT],
        **{
            f"{kind.capitalize()} sets against a constant guess": against[
                against["sets"].isin([*names, f"{kind} sets"])
            ]
            for kind, names in SETS.items()
        },
        "Between models": table[table["kind"] == BETWEEN_MODELS],
        "Between contrast sets": table[table["kind"] == BETWEEN_SETS],
    }
    return {subject: rows for subject, rows in kinds.items() if len(rows)}
