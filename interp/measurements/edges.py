"""Edges between the components of a model, as a measurement of pairs of prompts."""

import math
from collections.abc import Callable, Iterator

import torch

from interp.choices import EdgeMethod
from interp.circuits.estimates import EdgeEstimator
from interp.circuits.exact import ExactEdges
from interp.circuits.graph import EdgeValues, Graph, graph_of
from interp.circuits.streams import PairStreams
from interp.measurements.core import PromptRows
from interp.measurements.patching import CPU_CELL_TOKENS, PairMeasurement
from interp.measurements.specs import Edges
from interp.models.cache import is_long
from interp.models.model import Model
from interp.models.unembedding import ExactLogits
from interp.patching.cells import PatchedMetrics, PatchingPair
from interp.patching.checks import check_passes
from interp.patching.pairs import contrast_of
from interp.patching.passes import answers_alone
from interp.patching.tables import pair_row
from interp.prompts.prompt import Prompt
from interp.reading.budget import TokenBudget, token_budget
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.tables import Row

DIRECTION = "noising"
"""The clean prompt is run, with activations from the corrupt prompt."""


def edges(model: Model, spec: Edges, *, batch_tokens: int | None = None) -> PairMeasurement:
    """Measure the effect of each edge on the answer to the clean prompt of each pair.

    Raises:
        UserError: the model is not a causal language model, or its modules are unknown.
    """
    graph = graph_of(model)
    if batch_tokens is None and model.device.type == "cpu":
        batch_tokens = CPU_CELL_TOKENS
    budget = token_budget(model, batch_tokens)

    def error_rows(prompt: Prompt, error: str) -> PromptRows:
        key: Row = {"model": model.name, "pair_id": prompt.pair_id, "direction": DIRECTION}
        return {"pairs": [{**key, "error": error}]}

    measure_batch = _Edges(model, graph, spec, budget)
    return PairMeasurement(model, spec, budget, measure_batch, error_rows)


class _Edges:
    """A measurement of each pair by each method."""

    def __init__(self, model: Model, graph: Graph, spec: Edges, budget: TokenBudget) -> None:
        self._model = model
        self._graph = graph
        self._spec = spec
        self._logits = ExactLogits(model)
        self._answer_tokens = AnswerTokenizer(model)
        self._methods = {name: _method(model, graph, name, budget) for name in spec.methods}
        self._checked = False

    def __call__(self, batch: Batch) -> list[PromptRows]:
        """The rows of a pair, kept with its first prompt."""
        model = self._model
        clean, corrupt = batch.prompts
        answers = self._answer_tokens(clean).contrast(*contrast_of(clean.prompt, corrupt.prompt))
        whole = is_long(model, max(len(clean), len(corrupt)))
        pair = PatchingPair.aligned(clean, corrupt, answers, policy=self._spec.policy, whole=whole)
        with model.measuring():
            if not self._checked:  # a single pair suffices for this check
                check_passes(model, pair)
                self._checked = True
            with answers_alone(self._logits, answers):
                with torch.no_grad():
                    streams = PairStreams.of(model, self._graph, pair)
                base, source = streams.passes.metrics
                finite = math.isfinite(base) and math.isfinite(source)
                methods = self._methods.items() if finite else ()
                rows = [
                    row
                    for method, measure in methods
                    for row in self._rows(pair, method, measure(streams))
                ]
        summary = pair_row(
            model,
            pair,
            PatchedMetrics(base, source, ()),
            direction=DIRECTION,
            cells=int(self._graph.edges.sum()),
        )
        return [{"pairs": [summary], "edges": rows}, {"pairs": [], "edges": []}]

    def _rows(self, pair: PatchingPair, method: str, effects: EdgeValues) -> Iterator[Row]:
        key = {
            "model": self._model.name,
            "pair_id": pair.base.prompt.pair_id,
            "method": method,
        }
        writers = self._graph.writers
        for reader, values in zip(self._graph.readers, effects.tolist(), strict=True):
            for writer in range(self._graph.writers_before(reader)):
                ends = {"writer": writers[writer], "reader": reader.name}
                yield {**key, **ends, "effect": values[writer]}


def _method(
    model: Model, graph: Graph, name: EdgeMethod, budget: TokenBudget
) -> Callable[[PairStreams], EdgeValues]:
    if name == "exact":
        return ExactEdges(model, graph, budget=budget).effects
    return EdgeEstimator(model, graph, name).effects
