"""The measurement of edges between a model's components, on pairs of prompts."""

import math
import random
from collections.abc import Callable, Sequence
from typing import cast, get_args

import torch
from jaxtyping import Bool
from torch import Tensor

from interp.choices import EdgeEstimate
from interp.circuits.estimates import EdgeEstimator
from interp.circuits.exact import ExactEdges
from interp.circuits.graph import EdgeValues, Graph, ReaderSite, graph_of
from interp.circuits.streams import PairStreams
from interp.console import begin_part
from interp.measurements.patching.measure import CPU_CELL_TOKENS, PairMeasurement
from interp.measurements.specs import EDGES, Circuits, Edges
from interp.measuring.core import PromptRows
from interp.models.model import Model
from interp.models.unembedding import ExactLogits
from interp.patching.cells import PatchedMetrics, PatchingPair
from interp.patching.checks import check_passes
from interp.patching.pairs import contrast_of, is_checked
from interp.patching.passes import answers_alone, answers_behind, read_whole
from interp.patching.tables import pair_row
from interp.prompts.prompt import Prompt
from interp.reading.budget import TokenBudget, token_budget
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.tables import Row


def edges(model: Model, spec: Edges, *, batch_tokens: int | None = None) -> PairMeasurement:
    """Measure the effect of each edge on the answer to the base prompt of each pair.

    Raises:
        UserError: the model is not a causal language model, or its modules are unknown.
    """
    graph = graph_of(model)
    budget = token_budget(model, batch_tokens, on_cpu=CPU_CELL_TOKENS)
    exact = ExactEdges(model, graph, budget=budget)
    estimators = {
        label: _estimator(model, graph, label) for label in spec.methods if label != "exact"
    }

    def rows(streams: PairStreams, direction: str) -> PromptRows:
        """The rows of a pair, and whether it is checked for a guarantee."""
        pair_id = streams.passes.pair.base.prompt.pair_id
        effects: dict[str, tuple[EdgeValues, Bool[Tensor, "reader writer"]]] = {
            name: (estimate.effects(streams), graph.edges) for name, estimate in estimators.items()
        }
        checked = spec.guarantee is not None and is_checked(pair_id, spec.checked)
        if checked or "exact" in spec.methods:
            # Means over pairs require the same edges in all of them; the bound of a guarantee
            # requires edges drawn separately for each pair.
            only = _sampled(graph, spec.sample, pair_id if checked else "")
            effects["exact"] = exact.effects(streams, only=only), only
        key = {"model": model.name, "pair_id": pair_id, "direction": direction}
        entries: list[Row] = []
        for method, (values, measured) in effects.items():
            ends, numbers = measured.nonzero().tolist(), values[measured].tolist()
            for (reader, writer), effect in zip(ends, numbers, strict=True):
                edge = {"writer": graph.writers[writer], "reader": graph.readers[reader].name}
                entries.append({**key, "method": method, **edge, "effect": effect})
        return {"edges": entries, "pairs": [{} if spec.guarantee is None else {"checked": checked}]}

    return pairs_on_graph(model, graph, spec, budget, rows, directions=spec.directions)


def pairs_on_graph(
    model: Model,
    graph: Graph,
    spec: Edges | Circuits,
    budget: TokenBudget,
    rows: Callable[[PairStreams, str], PromptRows],
    *,
    directions: Sequence[str],
) -> PairMeasurement:
    """A measurement that runs both prompts of each pair and passes their streams to `rows`."""
    logits = ExactLogits(model)
    # Attention from behind is not part of the weights that softmax computes exactly.
    exact_weights = isinstance(spec, Edges) and "softmax" in spec.methods
    reading = None if exact_weights else answers_behind(model, spec.answers)
    answer_tokens = AnswerTokenizer(model, reading)
    unchecked = True

    def error_rows(prompt: Prompt, error: str) -> PromptRows:
        key: Row = {"model": model.name, "pair_id": prompt.pair_id, "error": error}
        return {"pairs": [{**key, "direction": direction} for direction in directions]}

    def measure_batch(batch: Batch) -> list[PromptRows]:
        clean, corrupt = batch.prompts
        tables: PromptRows = {"pairs": []}
        for number, direction in enumerate(directions):
            begin_part(number, len(directions))
            base, source = (clean, corrupt) if direction == "noising" else (corrupt, clean)
            answers = answer_tokens(base).contrast(*contrast_of(clean.prompt, corrupt.prompt))
            whole = read_whole(model, clean, corrupt)
            pair = PatchingPair.aligned(base, source, answers, policy=spec.policy, whole=whole)
            for table, added in measured(pair, direction).items():
                tables.setdefault(table, []).extend(added)
        return [tables, {}]  # none for the second prompt

    def measured(pair: PatchingPair, direction: str) -> PromptRows:
        nonlocal unchecked
        with model.measuring():
            if unchecked:  # one pair is enough
                check_passes(model, pair)
                unchecked = False
            with answers_alone(logits, pair.answers):
                with torch.no_grad():
                    streams = PairStreams.of(model, graph, pair)
                base, source = streams.passes.metrics
                finite = math.isfinite(base) and math.isfinite(source)
                tables = rows(streams, direction) if finite else {}
        metrics, cells = PatchedMetrics(base, source, ()), int(graph.edges.sum())
        summary = pair_row(model, pair, metrics, direction=direction, cells=cells)
        (more,) = tables.pop("pairs", [{}])
        return {"pairs": [summary | more], **tables}

    return PairMeasurement(model, spec, budget, measure_batch, error_rows)


def _sampled(graph: Graph, count: int | None, name: str) -> Bool[Tensor, "reader writer"]:
    """The edges to run exactly: all, or as many into each kind of reader, drawn by `name`."""
    if count is None:
        return graph.edges
    chance = random.Random(f"edges {name}")
    sampled = torch.zeros_like(graph.edges)
    for site in get_args(ReaderSite):
        rows = [row for row, reader in enumerate(graph.readers) if reader.site == site]
        into = [(row, writer) for row in rows for writer in range(int(graph.edges[row].sum()))]
        into.sort(key=lambda unused: chance.random())
        for row, writer in into[:count]:
            sampled[row, writer] = True
    return sampled


def _estimator(model: Model, graph: Graph, label: str) -> EdgeEstimator:
    name, options = EDGES.parsed(label)
    return EdgeEstimator(model, graph, cast("EdgeEstimate", name), **dict(options))
