"""The measurement of circuits: how a model with only some of its edges answers pairs of prompts."""

from collections.abc import Sequence

import pandas as pd
import torch

from interp.circuits.choice import Chosen, chosen_circuits, half_of, mean_scores
from interp.circuits.graph import graph_of
from interp.circuits.running import circuit_metrics
from interp.circuits.streams import PairStreams
from interp.errors import UserError, unknown
from interp.measurements.edges.measure import pairs_on_graph
from interp.measurements.patching.measure import PairMeasurement
from interp.measurements.specs import Circuits
from interp.measuring.core import PromptRows
from interp.models.model import Model
from interp.plugins import named
from interp.reading.budget import token_budget
from interp.tables import Row

CPU_CIRCUIT_TOKENS = 8192
"""Default budget of one pass over several circuits on a CPU, in tokens that the readers of a layer
read. Each call of the model has a fixed cost, however few circuits it runs."""

DIRECTIONS = ("noising",)
"""The clean prompt is run; edges outside the circuit carry the corrupt prompt's activations."""


def circuits(model: Model, spec: Circuits, *, batch_tokens: int | None = None) -> PairMeasurement:
    """Run each pair through the circuits that are chosen by effects from a run of `edges`.

    Raises:
        UserError: the model is not a causal language model, or the run has no edges for the model.
    """
    effects = None
    if spec.edges is not None:
        effects = named(spec.reads).read(spec.edges).effects(model.name, factor=spec.split)
    return circuits_by(effects, model, spec, batch_tokens=batch_tokens)


def circuits_by(
    effects: pd.DataFrame | None, model: Model, spec: Circuits, *, batch_tokens: int | None = None
) -> PairMeasurement:
    """Run each pair through the circuits that are chosen by these effects.

    The effects have the columns pair_id, method, writer, reader, effect, and the split factor if
    there is one; without effects, every pair gets an error.
    """
    graph = graph_of(model)
    graph.check_heads("circuits")
    budget = token_budget(model, batch_tokens, on_cpu=CPU_CIRCUIT_TOKENS)
    chosen: list[Chosen] = []
    if effects is not None:
        ranked = ranking(effects, methods=spec.methods, split=spec.split)
        chosen += chosen_circuits(graph, mean_scores(graph, ranked))

    def rows(streams: PairStreams, _direction: str) -> PromptRows:
        if not chosen:
            raise UserError("--edges is missing: expected the folder of a finished run of edges")
        every = [pick.circuit for pick in chosen]
        reads_whole = bool(streams.passes.pair.answers.ways)
        empty = [torch.zeros_like(graph.edges)] * reads_whole
        metrics = circuit_metrics(model, graph, streams, [*every, *empty], budget=budget)
        key = {"model": model.name, "pair_id": streams.passes.pair.base.prompt.pair_id}
        circuit_rows: list[Row] = []
        for pick, metric in zip(chosen, metrics[: len(chosen)], strict=True):
            kind = {"method": pick.method, "choice": pick.choice, "draw": pick.draw}
            size = {"share": pick.share, "edges": int(pick.circuit.sum())}
            circuit_rows.append({**key, **kind, **size, "metric": metric})
        measured: Row = {"empty_metric": metrics[-1]} if reads_whole else {}
        return {"circuits": circuit_rows, "pairs": [measured]}

    return pairs_on_graph(model, graph, spec, budget, rows, directions=DIRECTIONS)


def ranking(
    effects: pd.DataFrame, *, methods: Sequence[str] | None, split: str | None
) -> pd.DataFrame:
    """Select the effects from which circuits are chosen: of all methods, if none are named.

    With `split`, a factor of the prompts, only pairs with a random half of its values are kept.
    """
    known = list(map(str, effects["method"].unique()))
    for method in methods or ():
        if method not in known:
            raise UserError(unknown("method", method, known))
    ranked = effects if methods is None else effects[effects["method"].isin(methods)]
    if split is None:
        return ranked
    return ranked[ranked[split].isin(half_of(ranked[split].dropna(), split))]
