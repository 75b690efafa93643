"""What a study of RuleBench found, in sentences made from its named comparisons."""

import pandas as pd

from interp.statistics.decisions import UNTESTED
from interp_experiments.remarks import (
    NAMED_IN_ADVANCE,
    in_brief,
    in_full,
    organisms,
    organisms_in_brief,
)
from interp_experiments.rulebench.comparisons import MODELS, SETTINGS

_ORDER = (SETTINGS[0].subject, SETTINGS[1].subject, MODELS, *(one.subject for one in SETTINGS[2:]))
"""Subjects of sentences, most important first."""


def in_short(models: list[str], table: pd.DataFrame) -> list[str]:
    """At most five sentences for the top of the page.

    Args:
        models: what was measured.
        table: `comparisons.comparisons` of it.
    """
    kinds = {subject: rows for subject, rows in _kinds(table).items() if _tested(rows)}
    return [
        *organisms_in_brief(models),
        *(in_brief(rows, subject) for subject, rows in list(kinds.items())[:4]),
    ]


def findings(models: list[str], table: pd.DataFrame) -> list[str]:
    """Every named comparison, a paragraph for each kind."""
    return [
        *organisms(models),
        NAMED_IN_ADVANCE,
        *(in_full(rows, subject) for subject, rows in _kinds(table).items()),
    ]


def _kinds(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    kinds = {subject: table[table["subject"] == subject] for subject in _ORDER}
    return {subject: rows for subject, rows in kinds.items() if len(rows)}


def _tested(rows: pd.DataFrame) -> bool:
    return bool((rows["verdict"] != UNTESTED).any())
