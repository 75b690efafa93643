"""What patches did to the answers of models."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pandas as pd
from matplotlib.figure import Figure

from interp.analysis.patching_effects import SHARED, effect_table
from interp.choices import COUNTERPART
from interp.errors import UserError, unknown
from interp.frames.shared import Sized, chosen, figure_of
from interp.report.figures.patches import layers_by_roles, layers_by_tokens
from interp.report.html import notebook_html
from interp.report.patching_report import effects_for_people


@dataclass(frozen=True, repr=False)
class Patches(Sized):
    """What patches did to the answers of models."""

    prompts: pd.DataFrame
    """The prompts table: one row per prompt, with pair_id, side and one column per factor."""
    patches: pd.DataFrame
    """The patches table: one row per pair, method and cell."""
    pairs: pd.DataFrame
    """The pairs table: one row per pair."""
    node_sets: pd.DataFrame | None = None
    """The node_sets table: one row per pair, ranking and set; None if not asked for."""
    cluster: str | None = None
    """The factor whose pairs depend on each other, such as their entity; None where pairs do
    not."""

    def to_frame(self) -> pd.DataFrame:
        """One row per pair, method and cell."""
        return self.patches

    def summary(self) -> pd.DataFrame:
        """Means over pairs, with 95% intervals by a bootstrap over clusters and tests.

        One row per model, direction, method, source, site, layer, head, role and group of pairs:
        `recognized` is "yes" for those that the model answers correctly on both sides, "no" for the
        others, and "all". effect is in logits of the answers that the data contrasts, such as Yes
        minus No. recovered is the mean effect over the mean difference between both prompts, of
        recognized pairs: 1 where the patch gives the answer of the prompt that it comes from.
        """
        return self._effects

    def plot(self, value: Literal["effect", "recovered"] = "effect", **which: str | int) -> Figure:
        """What patches do by layer and role, as a heat map.

        Args:
            value: effect, of all pairs, or recovered, of those that the model recognizes.
            which: of the summary's columns model, method, source, site and head, where it has more
                than one value; the first if not given.

        Raises:
            UserError: there is no such value.
        """
        rows = _first(self._effects, which)
        recognized = SHARED if value == "recovered" else "all"
        drawn = layers_by_roles(rows, value=value, recognized=recognized, head=_head(rows))
        return figure_of(drawn)

    def plot_tokens(self, pair: str | None = None, **which: str | int) -> Figure:
        """The effects of each token of one pair by layer, of patches by position.

        Args:
            pair: a `pair_id`; the first if not given.
            which: as in `plot`.

        Raises:
            UserError: the pair was not patched token by token, or there is no such value.
        """
        rows = self._asked[self._asked["position"].notna()]
        if rows.empty:
            raise UserError('nothing was patched token by token; give granularity="position"')
        rows = _first(rows if pair is None else chosen(rows, "pair_id", pair), which)
        rows = rows[rows["pair_id"] == rows["pair_id"].iloc[0]]
        return figure_of(layers_by_tokens(rows, head=_head(rows)))

    @cached_property
    def _asked(self) -> pd.DataFrame:
        """The patches without exact ones of estimates, which are the largest and so no sample."""
        estimated = self.patches["method"] != "exact"
        return self.patches[estimated] if estimated.any() else self.patches

    @cached_property
    def _effects(self) -> pd.DataFrame:
        if self.cluster is None:
            return effect_table(self._asked, self.pairs)
        of_pair = self.prompts[["pair_id", self.cluster]].drop_duplicates("pair_id")
        named = of_pair.rename(columns={self.cluster: "cluster"})
        pairs = self.pairs.merge(named, on="pair_id", how="left")
        return effect_table(self._asked, pairs, cluster="cluster")

    def _repr_html_(self) -> str | None:
        if self.patches.empty:
            return None
        return notebook_html(list(effects_for_people(self._effects)))


_ONE = ("model", "direction", "method", "source", "site", "head")
"""Columns of which a heat map of patches shows one value."""


def _first(table: pd.DataFrame, which: Mapping[str, str | int]) -> pd.DataFrame:
    """The rows of the values that are named, and of the first value of all other columns.

    Raises:
        UserError: an unknown column, or a value that no row has.
    """
    for name in which:
        if name not in _ONE:
            raise UserError(unknown("choice", name, _ONE))
    for name in _ONE:
        default = COUNTERPART if name == "source" else table[name].iloc[0]
        value = which.get(name, default)
        table = table if pd.isna(value) else chosen(table, name, value)
    return table


def _head(rows: pd.DataFrame) -> int | None:
    """The head of the rows; None where the site has none."""
    head = rows["head"].iloc[0]
    return None if pd.isna(head) else int(head)
