"""Sentences that the findings of several studies share."""

from collections.abc import Iterable, Sequence

from interp.models.organisms import PREFIX

EXPLORATORY = (
    "Exploratory: what follows, and everything else on this page. There, p_holm is corrected over "
    "the tests of one table. There are several tables, so that a report on nothing at all has some "
    "exploratory finding in more than 5% of cases (docs/statistics.md says in how many): such a "
    "finding is a question to the next run."
)
"""What keeps apart the contrasts that were named in advance from all other tests."""


def organisms(models: Sequence[str]) -> list[str]:
    """What cannot be concluded from models that were made for this project."""
    made = [model for model in models if model.startswith(PREFIX)]
    if not made:
        return []
    who = (
        "All models here are organisms"
        if len(made) == len(models)
        else f"Organisms: {listed(made)}"
    )
    return [
        f"{who}. They are small models trained for this project, with known causes planted in "
        "them, and show whether a method finds what was planted. They say nothing about published "
        "models, whatever architecture they share with them."
    ]


def listed(names: Iterable[str]) -> str:
    """Names as in a sentence: "a, b and c"."""
    *others, last = [*names] or [""]
    return f"{', '.join(others)} and {last}" if others else last
