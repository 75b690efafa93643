"""What the browser of pairs shows about circuits: the answer that each circuit leaves."""

from collections.abc import Iterator, Mapping

import pandas as pd

from interp.report.pairs import Grid, Number, Panel
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
        for of, own in grouped(rows, ["pair_id", "model"]):
            model, pair = str(of["model"]), str(of["pair_id"])
            values = own.pivot_table(index="ranking", columns="share", values="metric", sort=False)
            row = about[model, pair]
            note = _NOTE.format(
                positive=row["positive_option"],
                negative=row["negative_option"],
                whole=row["base_metric"],
            )
            yield (
                pair,
                Grid(
                    "Answers with a circuit alone",
                    {"model": model},
                    list(map(str, values.index)),
                    [f"{100 * share:g}%" for share in values.columns],
                    values.to_numpy(dtype=float).tolist(),
                    note=note,
                ),
            )


def drawn_numbers(
    effects: pd.DataFrame, edges: pd.DataFrame, of: Mapping[str, str]
) -> Iterator[Number]:
    """The effect in logits, in each pair, of each edge of the picture."""
    from interp.measurements.circuits.picture import drawn_edges

    ends = ["writer", "reader"]
    rows = effects.merge(drawn_edges(edges)[ends].drop_duplicates(), on=ends)
    for edge, own in grouped(rows, ends):
        means = own.groupby("pair_id", sort=False)["effect"].mean()
        values = {str(pair): float(mean) for pair, mean in means.items()}
        labels = {**of, **{name: str(value) for name, value in edge.items()}}
        yield Number("effect", labels, values)


def circuit_numbers(measured: ResultTables) -> Iterator[Number]:
    """How far circuits are from the whole model: the mean over sizes of the distance in logits."""
    whole = measured.table("pairs", ["model", "pair_id", "base_metric"])
    rows = measured.table("circuits").merge(whole, on=["model", "pair_id"])
    rows = rows.assign(distance=(rows["metric"] - rows["base_metric"]).abs())
    for of, own in grouped(rows, ["model", "method", "choice"]):
        means = own.groupby("pair_id", sort=False)["distance"].mean()
        values = {str(pair): float(mean) for pair, mean in means.items()}
        labels = {name: str(value) for name, value in of.items()}
        yield Number("distance from the whole model in logits", labels, values)
