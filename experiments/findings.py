"""Findings: comparisons that a study names in advance, and the sentences that studies share."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict

import pandas as pd

from interp.console import counted
from interp.models.organisms import PREFIX
from interp.statistics.contrasts import Difference
from interp.statistics.decisions import (
    DIFFERENT,
    SIGNIFICANT,
    SMALLEST,
    UNTESTED,
    holm,
    left_open,
    verdicts,
)


def family_table(
    found: Iterable[tuple[Mapping[str, object], Difference]], keys: Iterable[str]
) -> pd.DataFrame:
    """One row per comparison: its keys, and the fields of its `Difference`.

    p_holm, the column after p, is corrected over all rows (Holm, 1979). verdict, the column after
    excluded_above, is that of `interp.statistics.decisions` on p_holm.

    Args:
        found: the values of the keys and the difference, for each comparison.
        keys: names of the first columns.
    """
    rows = [{**where, **asdict(difference)} for where, difference in found]
    table = pd.DataFrame(rows, columns=[*keys, *Difference.__dataclass_fields__])
    table = holm(table, family="named comparisons").drop(columns=["family", "family_size"])
    table.insert(list(table.columns).index("excluded_above") + 1, "verdict", verdicts(table))
    return table


EXPLORATORY = (
    "Exploratory: the rest of this page. Its p_holm are corrected over the tests of one family "
    "(column family). With several families, more than 5% of reports contain an exploratory "
    "finding even if no effect exists (docs/statistics.md gives the share), so confirm such a "
    "finding in another run."
)
"""Separates the contrasts that were named in advance from all other tests."""


def organisms(models: Sequence[str]) -> list[str]:
    """Sentences on the limits of models made for this project."""
    made = [model for model in models if model.startswith(PREFIX)]
    if not made:
        return []
    every = len(made) == len(models)
    who = "All models here are organisms" if every else f"Organisms: {listed(made)}"
    return [
        f"{who}. They are small models trained for this project, with known causes planted in "
        "them, and show whether a method finds what was planted. They say nothing about published "
        "models, whatever architecture they share with them."
    ]


def organisms_in_brief(models: Sequence[str]) -> list[str]:
    """`organisms` in one short sentence."""
    made = [model for model in models if model.startswith(PREFIX)]
    which = "All models" if len(made) == len(models) else f"{len(made):,} of {len(models):,} models"
    verb = "is an organism" if len(made) == 1 < len(models) else "are organisms"
    return [
        f"{which} here {verb}, trained for this project: this says nothing about published models."
    ] * bool(made)


NAMED_IN_ADVANCE = (
    "Comparisons were named in the code before any model was measured. p is corrected over all of "
    "them by Holm's method: the chance of any false finding among them is at most 5%. Brackets "
    f"hold 95% intervals. A difference is shown if p is below {SIGNIFICANT:g}. The smallest "
    f"difference of interest is {SMALLEST:g}; if none is shown, two one-sided tests, each at 5% "
    "and not corrected, exclude all differences outside the given range."
)
"""How to read named comparisons; it precedes their findings."""


def named_in_brief(models: Sequence[str], kinds: Mapping[str, pd.DataFrame]) -> list[str]:
    """At most five sentences for the top of the page.

    Args:
        models: the measured models.
        kinds: subjects of sentences, most important first, and their rows of `family_table`; kinds
            after the fourth are omitted.
    """
    said = [in_brief(rows, subject) for subject, rows in list(kinds.items())[:4]]
    return [*organisms_in_brief(models), *said]


def named_in_full(models: Sequence[str], kinds: Mapping[str, pd.DataFrame]) -> list[str]:
    """Every named comparison, one paragraph for each kind; arguments as for `named_in_brief`."""
    said = [in_full(rows, subject) for subject, rows in kinds.items()]
    return [*organisms(models), NAMED_IN_ADVANCE, *said]


def in_brief(rows: pd.DataFrame, subject: str) -> str:
    """A sentence of at most 25 words on what comparisons of one kind show.

    If no comparison shows a difference, the sentence gives the range that at least one leaves open,
    the smallest p, and the n of the one with the fewest clusters.

    Args:
        rows: rows of `family_table`, with name (what is compared) and n (such as "40 theories").
        subject: what is compared with what.
    """
    tested = rows[rows["verdict"] != UNTESTED]
    if tested.empty:
        return f"{subject}: not tested, with too few in {counted(len(rows), 'comparison')}."
    shown = tested[tested["verdict"] == DIFFERENT]
    if shown.empty:
        low, high = tested["excluded_below"].min(), tested["excluded_above"].max()
        fewest = tested.iloc[int(tested["clusters"].argmin())]
        return (
            f"{subject}: no difference shown in {counted(len(tested), 'comparison')}; "
            f"{signed(low)} to {signed(high)} not excluded, "
            f"{_p(tested['p_holm'].min()).replace('p ', 'p ≥ ')}, {fewest['n']}."
        )
    if len(tested) == 1:
        (only,) = tested.to_dict("records")
        return f"{subject}: {only['name']}, {_estimate(only)}, {only['n']}."
    above, below = ((shown["difference"] * sign > 0).sum() for sign in (1, -1))
    largest = shown.iloc[int(shown["difference"].abs().argmax())].to_dict()
    return (
        f"{subject}: {above} of {len(tested)} above, {below} below; largest "
        f"{largest['name']}: {_estimate(largest)}, {largest['n']}."
    )


def in_full(rows: pd.DataFrame, subject: str) -> str:
    """Every comparison of one kind: a difference shown, left open or excluded, or not tested."""
    shown = rows[rows["verdict"] == DIFFERENT]
    untested = rows[rows["verdict"] == UNTESTED]
    others = rows.drop([*shown.index, *untested.index])
    found = [f"{row['name']} ({_estimate(row)}, {row['n']})" for row in shown.to_dict("records")]
    none = "nothing was tested" if len(untested) == len(rows) else "no difference is shown"
    parts = [
        f"a difference is shown for {listed(found)}" if found else none,
        left_open(others[["name", "excluded_below", "excluded_above"]].itertuples(index=False)),
        f"too few to test {listed(untested['name'])}" * bool(len(untested)),
    ]
    return f"{subject}: {'; '.join(filter(None, parts))}."


def _estimate(row: Mapping[Hashable, object]) -> str:
    """A difference with its interval and p, such as "+0.21 [+0.10, +0.32], p 0.012"."""
    difference, low, high, p = (
        float(str(row[name])) for name in ("difference", "low", "high", "p_holm")
    )
    return f"{signed(difference)} [{signed(low)}, {signed(high)}], {_p(p)}"


def signed(number: float) -> str:
    """A number with its sign and two decimals, such as "−0.10"."""
    return f"{number:+.2f}".replace("-", "−")


def _p(p: float) -> str:
    return "p < 0.0001" if p < 0.0001 else f"p {p:.4f}" if p < 0.001 else f"p {p:.3f}"


def listed(names: Iterable[str]) -> str:
    """Names as in a sentence: "a, b and c"."""
    *others, last = [*names] or [""]
    return f"{', '.join(others)} and {last}" if others else last
