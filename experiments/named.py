"""Comparisons that a study names before any model is measured: one family, corrected together."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict

import pandas as pd

from interp.statistics.contrasts import Difference
from interp.statistics.decisions import holm, verdicts


def family_table(
    found: Iterable[tuple[Mapping[str, object], Difference]], keys: Iterable[str]
) -> pd.DataFrame:
    """One row per comparison: what is compared, and the fields of its `Difference`.

    p_holm beside p is corrected over all rows (Holm, 1979); verdict after excluded_above is by it,
    in the words of `interp.statistics.decisions`.

    Args:
        found: what is compared, as values of the keys, and the difference.
        keys: names of the first columns.
    """
    rows = [{**where, **asdict(difference)} for where, difference in found]
    table = pd.DataFrame(rows, columns=[*keys, *Difference.__dataclass_fields__])
    table = holm(table, family="named comparisons").drop(columns=["family", "family_size"])
    table.insert(list(table.columns).index("excluded_above") + 1, "verdict", verdicts(table))
    return table
