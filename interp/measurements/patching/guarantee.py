"""Bounds on estimated effects, from pairs in which the effects of all cells were measured too.

1. A checked pair has one score, in logits: the largest excess of an absolute effect over its
   absolute estimate, in a set of cells.
2. The conformal limit of these scores, the margin, holds for an unchecked pair with probability at
   least `level`, simultaneously for all of these cells: |effect| <= |estimate| + margin. Pairs
   drawn at random are exchangeable: every ranking of their scores is equally likely, whatever the
   distribution (Vovk, Gammerman and Shafer 2005; Lei et al. 2018, section 2.2).

The checked pairs are drawn at random (`interp.patching.pairs`), so the bound holds regardless of
the quality of the estimates. Cells drawn individually yield no such bound: the largest effect is
among m of N cells only with a probability of m / N.
"""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import betabinom

from interp.measurements.patching.tables import CELL, PAIR, Parts, with_exact
from interp.report.page import TableItem
from interp.statistics.summaries import LEVEL, grouped


def conformal_limit(scores: Float[np.ndarray, " unit"], level: float) -> float:
    """The score that a further unit exceeds with a probability of at most 1 - level.

    It is the ceil((n + 1) level)-th smallest of the n scores; infinite if there are too few scores.
    """
    rank = _ceil((len(scores) + 1) * level)
    return math.inf if rank > len(scores) else float(np.sort(scores)[rank - 1])


def fewest(level: float) -> int:
    """The smallest number of scores with a finite limit: level / (1 - level), rounded up."""
    return _ceil(level / (1 - level))


def covered_low(scored: int, others: int, level: float) -> float:
    """Lower 95% bound on the share of unchecked units that the limit covers.

    On average over draws, the limit covers a share `level` of the units. In a single draw, the
    number of covered units has a beta-binomial distribution, whatever the distribution of the
    scores (Wilks 1941); ties increase it. NaN if there is no limit or no other unit.
    """
    rank = _ceil((scored + 1) * level)
    if rank > scored or not others:
        return math.nan
    return float(betabinom.ppf(1 - LEVEL, others, rank, scored + 1 - rank)) / others


def _ceil(product: float) -> int:
    """The ceiling of a product without its binary rounding error, which could raise it by one."""
    return math.ceil(round(product, 9))


SITE = CELL[:5]
"""Columns that identify a guarantee, which holds simultaneously for all cells of a site."""

_SIZES = ["estimate", "effect", "excess"]


def guarantee_tables(
    patches: Parts, pairs: pd.DataFrame, *, level: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The guarantee for each site, and separately for each stratum of its cells.

    The tables have one row per combination of the columns in `SITE` and in `CELL`, respectively.
    Further columns are level: the smallest probability with which the bound holds simultaneously
    for all of these cells of an unchecked pair; covered_low: the smallest share of the unchecked
    pairs for which the bound holds, in 95% of all draws of checked pairs; pairs_checked,
    pairs_unchecked; margin: the conformal limit on the excess of an absolute effect over its
    absolute estimate; largest_estimate: the largest absolute estimate among the unchecked pairs;
    bound: margin plus largest_estimate (at least 0); effect_limit: the bound without estimates,
    which is the conformal limit of the checked pairs' largest absolute effects; note: the reason
    why there is no bound (NaN). All effects and bounds are in logits.

    Guarantees for several strata do not hold simultaneously at this level, but the guarantee for a
    site holds for all of its cells at once.
    """
    by_stratum = _sizes(patches, pairs.set_index(PAIR)["checked"])
    by_site = by_stratum.groupby([*SITE, "pair_id", "checked"], sort=False)[_SIZES].max()
    return _table(by_site.reset_index(), SITE, level), _table(by_stratum, CELL, level)


_NOTE = """Absolute effects in logits. In checked pairs, drawn at random, they were also measured
exactly. In an unchecked pair, with probability {level:g}, {bounded} exceeds its own estimate plus
margin. This holds for a single pair, not simultaneously for all pairs; in 95% of random choices of
checked pairs, it holds for at least the share covered_low of the unchecked pairs of this run.
bound: the margin plus the largest estimate. effect_limit: the bound from checked pairs without
estimates; if it is lower than bound, estimates are useless."""

_EACH = """Each bound holds for a pair with probability {level:g}; all of them hold simultaneously
with a lower probability."""


def guarantee_items(
    patches: Parts, pairs: pd.DataFrame, level: float, *, bounded: str, by: str
) -> Iterator[TableItem]:
    """The tables of `guarantee_tables`; `bounded` is what is bounded, and `by` names the strata."""
    sites, strata = guarantee_tables(patches, pairs, level=level)
    title = f"Bounds on the effects of an unchecked pair, with probability {level:g}"
    yield table_item("guarantee_table", title, sites, _NOTE.format(level=level, bounded=bounded))
    note = _EACH.format(level=level)
    yield TableItem("bound_table", f"Bounds by {by}", strata, note, narrow=())


def table_item(name: str, title: str, table: pd.DataFrame, note: str = "") -> TableItem:
    """A table; on the terminal, option columns with a single value and empty notes are left out."""
    options = ("direction", "source", "sites", "level")
    left_out = [column for column in options if column in table and table[column].nunique() == 1]
    if "note" in table and (table["note"] == "").all():
        left_out.append("note")
    return TableItem(name, title, table, note, [(title, table.drop(columns=left_out))])


_GUARANTEED = [
    *("level", "covered_low", "pairs_checked", "pairs_unchecked"),
    *("margin", "largest_estimate", "bound", "effect_limit", "note"),
]


def _table(sizes: pd.DataFrame, by: list[str], level: float) -> pd.DataFrame:
    rows = [{**cell, **_guarantee(members, level)} for cell, members in grouped(sizes, by)]
    return pd.DataFrame(rows, columns=[*by, *_GUARANTEED])


def _sizes(parts: Parts, checked: pd.Series) -> pd.DataFrame:
    """One row per pair and stratum: the largest estimate, effect, and excess of the effect.

    A cell that should have been run but has no finite effect counts as exceeding every bound.
    """
    sizes = [pd.DataFrame(columns=[*CELL, "pair_id", "checked", *_SIZES])]
    for part in parts:
        cells = with_exact(part, "left").dropna(subset="effect").join(checked, on=PAIR)
        estimate, effect = cells["effect"].abs(), cells["effect_exact"].abs().fillna(math.inf)
        cells = cells.assign(estimate=estimate, effect=effect, excess=effect - estimate)
        by = [*CELL, "pair_id", "checked"]
        sizes.append(cells.groupby(by, sort=False, dropna=False)[_SIZES].max().reset_index())
    return pd.concat([part for part in sizes if len(part)] or sizes, ignore_index=True)


def _guarantee(rows: pd.DataFrame, level: float) -> dict[str, object]:
    """The guarantee for a set of cells, from one row per pair."""
    checked = rows["checked"].astype(bool)
    effects, scores = (rows.loc[checked, name].to_numpy(float) for name in ("effect", "excess"))
    unchecked, largest = len(rows) - len(scores), rows.loc[~checked, "estimate"].max()
    margin = _finite(conformal_limit(scores, level))
    return {
        "level": level,
        "covered_low": covered_low(len(scores), unchecked, level),
        "pairs_checked": len(scores),
        "pairs_unchecked": unchecked,
        "margin": margin,
        "largest_estimate": largest,
        "bound": np.maximum(largest + margin, 0.0),
        "effect_limit": _finite(conformal_limit(effects, level)),
        "note": _note(len(scores), unchecked, level, margin),
    }


def _finite(number: float) -> float:
    return number if math.isfinite(number) else math.nan


def _note(checked: int, unchecked: int, level: float, margin: float) -> str:
    if checked < fewest(level):
        return (
            f"no bound: a level of {level:g} requires {fewest(level)} checked pairs, "
            f"but there are {checked}"
        )
    if math.isnan(margin):
        return "no bound: effects of checked pairs are not finite"
    return "" if unchecked else "no bound: all pairs are checked"
