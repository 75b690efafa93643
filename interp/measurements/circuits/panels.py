"""What the browser of pairs shows about circuits: the answer that each circuit leaves."""

from collections.abc import Iterator, Sequence
from types import MappingProxyType

import pandas as pd

from interp.report.pairs import Grid, Labels, Number, Panel, by_pair
from interp.results.measured import ResultTables
from interp.statistics.summaries import grouped

_NOTE = """The logit of {positive} minus that of {negative} on the clean prompt, with only the edges
of a circuit; random: the mean of its draws. The whole model: {whole:.3g}."""


def circuit_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The metric of the clean prompt, by ranking of the edges and share of them that is kept."""
    chosen = [("pair_id", "in", prompts["pair_id"].unique().tolist())]
    pairs = pd.concat(measured.parts("pairs", filters=chosen))
    about = {(str(row["model"]), str(row["pair_id"])): row for row in pairs.to_dict("records")}
    for part in measured.parts("circuits", filters=chosen):
        rows = part.assign(ranking=part["method"] + " " + part["choice"])
        for pair, of, own in by_pair(rows, ["model"]):
            values = own.pivot_table(index="ranking", columns="share", values="metric", sort=False)
            row = about[of["model"], pair]
            note = _NOTE.format(
                positive=row["positive_option"],
                negative=row["negative_option"],
                whole=row["base_metric"],
            )
            rankings = list(map(str, values.index))
            shares = [f"{100 * share:g}%" for share in values.columns]
            cells = values.to_numpy(dtype=float).tolist()
            yield pair, Grid("Answers with a circuit alone", of, rankings, shares, cells, note=note)


def drawn_numbers(effects: pd.DataFrame, edges: pd.DataFrame, of: Labels) -> Iterator[Number]:
    """The effect in logits, in each pair, of each edge of the picture."""
    from interp.measurements.circuits.picture import drawn_edges

    ends = ["writer", "reader"]
    rows = effects.merge(drawn_edges(edges)[ends].drop_duplicates(), on=ends)
    yield from _numbers("effect", rows, ends, "effect", of)


def circuit_numbers(measured: ResultTables) -> Iterator[Number]:
    """How far circuits are from the whole model: the mean over sizes of the distance in logits."""
    whole = measured.table("pairs", ["model", "pair_id", "base_metric"])
    rows = measured.table("circuits").merge(whole, on=["model", "pair_id"])
    rows = rows.assign(distance=(rows["metric"] - rows["base_metric"]).abs())
    name = "distance from the whole model in logits"
    yield from _numbers(name, rows, ["model", "method", "choice"], "distance")


def _numbers(
    name: str, rows: pd.DataFrame, by: Sequence[str], value: str, of: Labels = MappingProxyType({})
) -> Iterator[Number]:
    """The mean of a column in each pair, for each combination of `by`."""
    for cell, members in grouped(rows, by):
        means = members.groupby("pair_id", sort=False)[value].mean()
        labels = {**of, **{column: str(own) for column, own in cell.items()}}
        yield Number(name, labels, {str(pair): float(mean) for pair, mean in means.items()})
