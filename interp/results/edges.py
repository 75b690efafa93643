"""Edges: effects on the answer of what one component of a model writes and another reads."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import ClassVar

import pandas as pd

from interp.analysis.edge_effects import edge_agreement_table, edge_table
from interp.console import counted
from interp.report.glance import headline
from interp.report.page import FigureItem, TableItem
from interp.results.result import Result, note_errors
from interp.statistics.summaries import grouped

_SHOWN = 20
"""Edges of each model and method that the terminal and the page show."""

_EDGES = """Mean over pairs, in logits, with 95% intervals by a bootstrap over clusters{clusters}:
the metric of the clean prompt if one reader reads what one writer adds in the corrupt prompt, minus
its own. a1.h3 is head 3 of layer 1, m1 the MLP of layer 1; a2.h0.q is the query of a head, a2.kv0.k
and a2.kv0.v are the key and value of a key-value head. same_sign: share of the pairs whose effect
has the sign of the mean. The {shown} largest; edge_table.csv has all."""

_AGREEMENT = """Estimated against exact mean effects. rank_correlation: Spearman's, between sizes;
recall_10: share of the 10 largest exact edges among the 10 largest estimates."""


class EdgeEffects(Result):
    """The effects of edges on the answers of models."""

    question: ClassVar[str] = "Which edges between components carry the answer?"

    @property
    def edges(self) -> pd.DataFrame:
        """The edges table: one row per pair, method and edge."""
        return self.table("edges")

    @property
    def pairs(self) -> pd.DataFrame:
        """The pairs table: one row per pair."""
        return self.table("pairs")

    def to_frame(self) -> pd.DataFrame:
        """The edges table."""
        return self.edges

    def items(self) -> Iterator[TableItem | FigureItem]:
        """The largest edges, and estimates against exact effects."""
        table, cluster = self._effects, self.cluster
        note = _EDGES.format(clusters=f" of one {cluster}" if cluster else "", shown=_SHOWN)
        narrow = [
            (f"Largest edges, {', '.join(map(str, key.values()))}", _without(rows).head(_SHOWN))
            for key, rows in grouped(table, ["model", "method"])
        ]
        yield TableItem("edge_table", "Edges", table, note, narrow)
        agreement = edge_agreement_table(table)
        if len(agreement):
            title = "Estimates against exact effects"
            yield TableItem("edge_agreement_table", title, agreement, _AGREEMENT)

    def noted(self) -> Mapping[str, object]:
        """Numbers of pairs and of errors."""
        return {
            str(model): {
                "pairs": len(rows),
                "errors": note_errors(str(model), rows.loc[rows["error"] != "", "error"], "pair"),
            }
            for model, rows in self.pairs.groupby("model", sort=False)
        }

    def extent(self) -> str:
        """The numbers of pairs and models."""
        pairs = counted(self.table("pairs", ["pair_id"])["pair_id"].nunique(), "pair")
        return f"{pairs}, {counted(len(self.measured.models()), 'model')}."

    def headline(self) -> pd.DataFrame:
        """The largest edges of each model, by the first method."""
        table = self._effects
        table = table[table["method"] == table["method"].iloc[:1].max()]
        parts = []
        for place in (1, 2, 3):
            rows = table[table["rank"] == place]
            where = rows["writer"] + " → " + rows["reader"] + ":"
            parts.append(
                headline(
                    rows.assign(label=where),
                    f"largest edge {place} in logits",
                    value="effect",
                    interval=("effect_low", "effect_high"),
                    n="pairs",
                    unit="pairs",
                )
            )
        return pd.concat(parts, ignore_index=True)

    @cached_property
    def _effects(self) -> pd.DataFrame:
        factor = self.cluster
        if factor is None:
            clusters = {pair: pair for pair in self.pairs["pair_id"]}
        else:
            of_pair = self.table("prompts", ["pair_id", factor]).drop_duplicates("pair_id")
            clusters = dict(zip(of_pair["pair_id"], of_pair[factor], strict=True))
        return edge_table(self.edges, clusters)


def _without(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.drop(columns=["model", "method", "rank", "pairs", "clusters"])
