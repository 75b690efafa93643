"""Edges: how connections between a model's components affect its answer."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pandas as pd

from interp.errors import UserError, unknown
from interp.estimates.declared import Largest, Mean, Plain, Table
from interp.estimates.pictures import bars
from interp.estimates.shown import Estimated
from interp.measurements.edges.phrasings import EDGE, component_table
from interp.measurements.pairs import PairResult
from interp.measurements.patching.guarantee import guarantee_items
from interp.prompts.own.layout import PHRASING
from interp.report.page import FigureItem, TableItem
from interp.report.pairs import Browser, Panel
from interp.statistics.classical import spearman
from interp.statistics.summaries import grouped
from interp.tables import INTEGER, column

_TOP = (10, 50)
"""Numbers of top edges, by estimate and by exact effect, whose overlap is measured."""


def edge_trials(edges: pd.DataFrame) -> pd.DataFrame:
    """The rows of the edges table with same_sign: whether the pair has the sign of the mean."""
    by = [edges[name] for name in ("model", "direction", "method", *EDGE)]
    mean = edges["effect"].groupby(by, sort=False, observed=True).transform("mean")
    return edges.assign(same_sign=np.sign(edges["effect"]) == np.sign(mean))


def edge_agreement_table(table: pd.DataFrame) -> pd.DataFrame:
    """Estimates of edges compared with exact effects, one row per model, direction and estimate.

    Columns are model, direction, method; rank_correlation: Spearman's correlation between the
    absolute mean effects; recall_10 and recall_50: share of the 10 or 50 largest exact edges that
    are among the 10 or 50 largest estimates; largest_error: the largest error of a mean effect, in
    logits; and edges: the number of edges with an exact effect.
    """
    rows = []
    for key, of_model in grouped(table, ["model", "direction"]):
        by_method = of_model.pivot(index=EDGE, columns="method", values="effect")
        if "exact" in by_method:
            by_method = by_method[by_method["exact"].notna()]
        for method in by_method.columns.drop("exact") if "exact" in by_method else ():
            exact, estimate = by_method["exact"], by_method[method]
            correlation = spearman(exact.abs(), estimate.abs(), tested=False).rho
            row = {"method": method, "rank_correlation": correlation, "edges": len(by_method)}
            row |= {f"recall_{top}": _recall(exact, estimate, top) for top in _TOP}
            row["largest_error"] = float((exact - estimate).abs().max())
            rows.append({**key, **row})
    recalls = [f"recall_{top}" for top in _TOP]
    numbers = ["rank_correlation", *recalls, "largest_error", "edges"]
    return pd.DataFrame(rows, columns=["model", "direction", "method", *numbers])


def _recall(exact: pd.Series, estimate: pd.Series, top: int) -> float:
    largest = (set(values.abs().nlargest(top).index) for values in (exact, estimate))
    return len(set.intersection(*largest)) / min(top, len(exact))


def edges_as_cells(edges: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Edges as rows of the patches table, for `guarantee_tables`.

    The site is the kind of reader: q, k, v, mlp or logits; a cell is an edge. If only a sample of a
    checked pair's edges was run, the other edges of the pair are omitted.
    """
    key = ["model", "pair_id", "direction"]
    checked = edges.join(pairs.set_index(key)["checked"], on=key)["checked"].astype(bool)
    exact = edges.loc[edges["method"] == "exact", [*key, *EDGE]]
    run = edges[[*key, *EDGE]].merge(exact, how="left", indicator=True)["_merge"] == "both"
    shown = edges[~checked.to_numpy() | run.to_numpy()]
    named = shown["reader"].str.extract(
        r"^(?:a(?P<a>\d+)\..*\.(?P<site>[qkv])|m(?P<m>\d+)|logits)$"
    )
    mlp_or_logits = np.where(named["m"].notna(), "mlp", "logits")
    edge = pd.factorize(shown["writer"] + " " + shown["reader"])[0]
    return shown.assign(
        source="counterpart",
        site=named["site"].fillna(pd.Series(mlp_or_logits, index=shown.index)),
        layer=named["a"].fillna(named["m"]).astype(float),
        head=np.nan,
        role="",
        position=edge,
    )


EDGES = Table(
    name="edge_table",
    title="Largest edges",
    text="""Mean change of a prompt's metric when one reader reads what one writer adds in the other
    prompt of the pair (noising: the clean prompt is run; denoising: the corrupt prompt is run).
    a1.h3 is head 3 of layer 1, and m1 is the MLP of layer 1; a2.h0.q is the query of a head;
    a2.kv0.k and a2.kv0.v are the key and value of a key-value head. The largest edges are shown;
    edge_table.csv has all.""",
    by=["model", "direction", "method", "writer", "reader"],
    measured="edges",
    numbers=[
        Mean("effect", "mean over pairs", "logits", "as in the edges table"),
        Plain("same_sign", "pairs with the sign of the mean", "share", why="effect"),
    ],
    trials="pairs",
    key="pair_id",
    split=["model", "direction", "method"],
    most=20,
    ranked="effect",
    resamples=999,
    headline=Largest(
        "effect",
        "largest edge {place} in logits",
        at=lambda row: f"{row['writer']} → {row['reader']}",
        places=3,
        first="method",
    ),
    more=[column("rank", INTEGER, "1 for the largest effect of a method", "rows, from 1")],
)

_AGREEMENT = """Estimated mean effects compared with exact ones. rank_correlation: Spearman's, for
absolute values; recall_10: share of the 10 largest exact edges among the 10 largest estimates;
edges: number of edges that were run exactly."""

_VARIES = "Edges that vary most with the phrasing"

_COMPONENTS = """Effects towards the clean answer, in logits. sd: square root of the variance over
pairs and sides. phrasing, side, phrasing_by_side and instance: shares of this variance, with 95%
intervals by a jackknife over clusters; estimates of small shares may be negative. side (only if
both directions were run): the prompt of the pair that is run. p: p-value of a permutation test that
no edge varies with the phrasing, corrected for the number of edges."""


class EdgeEffects(PairResult):
    """The effects of edges on the answers of models."""

    question = "Which edges between components carry the answer?"
    framed = "edges"

    @property
    def edges(self) -> pd.DataFrame:
        """The edges table: one row per pair, method and edge."""
        return self.table("edges")

    def of_model(self, model: str, *, factor: str | None = None) -> pd.DataFrame:
        """One model's effects on clean prompts, in the form that `circuits` takes.

        Columns are those of the edges table and, if given, a factor of the prompts.

        Raises:
            UserError: there are no such effects, or no such factor.
        """
        edges = self.edges
        effects = edges[(edges["model"] == model) & (edges["direction"] == "noising")]
        if effects.empty:
            raise UserError(f"there are no edges of {model} measured in the noising direction")
        if factor is None:
            return effects
        if factor not in self.prompts:
            raise UserError(unknown("factor", factor, list(map(str, self.prompts.columns))))
        of_pair = self.prompts[["pair_id", factor]].drop_duplicates("pair_id")
        return effects.merge(of_pair, on="pair_id", how="left")

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Tables of the edges with the largest effects, and of estimates against exact effects."""
        yield from self.declared_items()
        agreement = edge_agreement_table(self.estimated[0].frame)
        if len(agreement):
            title = "Estimates against exact effects"
            yield TableItem("edge_agreement_table", title, agreement, _AGREEMENT)
        yield from self._bounds()
        yield from self._components()

    def browser(self) -> Browser:
        """With each pair's largest edges."""
        return self.browsed(self._panels)

    def _panels(self, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
        note = f"The edges with the largest effects on this pair, in logits. {self.meaning()}"
        chosen = [("pair_id", "in", prompts["pair_id"].unique().tolist())]
        for part in self.measured.parts("edges", filters=chosen):
            named = part.assign(name=part["writer"] + " → " + part["reader"])
            yield from bars(named, EDGES, value="effect", note=note)

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """The edges; without exact effects of checked pairs, whose mean is not over all pairs."""
        edges = self.edges
        if self._parameters.get("guarantee") is not None:
            edges = edges[edges["method"] != "exact"]
        return (Estimated(EDGES, self.clustered(edge_trials(edges))),)

    def _bounds(self) -> Iterator[TableItem]:
        """Bounds on the errors of the estimates; empty without --guarantee."""
        level = self._parameters.get("guarantee")
        if isinstance(level, float):
            cells = [edges_as_cells(self.edges, self.pairs)]
            sample, by = self._parameters.get("sample"), "layer of the reader"
            bounded = "no effect" if sample is None else f"none of {sample} edges drawn at random"
            yield from guarantee_items(cells, self.pairs, level, bounded=bounded, by=by)

    def _components(self) -> Iterator[TableItem]:
        """Variance across phrasings; empty if there are fewer than two phrasings."""
        prompts = self.prompts
        if PHRASING not in prompts or prompts[PHRASING].nunique() < 2:
            return
        each = prompts.drop_duplicates("pair_id")
        of_pair = dict(zip(each["pair_id"], each[PHRASING], strict=True))
        edges = self.edges
        if self._parameters.get("guarantee") is not None or self._parameters.get("sample"):
            edges = edges[edges["method"] != "exact"]
        table = component_table(edges, self.pairs, of_pair, self.clusters)
        if table["p"].isna().all():
            return  # too few clusters for intervals and a test
        sides = edges["direction"].nunique() > 1
        columns = ["writer", "reader", "effect", "sd", "phrasing", "phrasing_low", "phrasing_high"]
        columns += ["side", "phrasing_by_side"] * sides
        narrow = []
        for key, rows in grouped(table, ["model", "method"]):
            title = f"{_VARIES}, {', '.join(map(str, key.values()))}"
            narrow.append((title, rows[[*columns, "instance", "p"]].head(10)))
        yield TableItem("component_table", _VARIES, table, _COMPONENTS, narrow)
