"""Exact patching of causal models, at a fraction of the cost of one forward pass for each cell.

What comes before the patched layer, and before the patched token, is as it is without the patch: a
pass begins at that layer and at that token, after the base prompt's own keys and values.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack

from interp.models.architectures import layers_of
from interp.models.model import Model
from interp.models.sites import edited, locate, skipped
from interp.models.unembedding import ExactLogits
from interp.patching.cells import PatchingPair
from interp.patching.joint import LocatedEdit
from interp.patching.metric import answers_alone, logit_difference
from interp.patching.passes import PairPasses, SiteKey, entrance, forward, run_pair
from interp.patching.rows import ExactRows
from interp.reading.budget import TokenBudget


class Grid(ExactRows):
    """The native backend of causal models: passes begin at the patched layer and token."""

    def __init__(self, model: Model, *, budget: TokenBudget) -> None:
        super().__init__(model, budget=budget)
        self._logits = ExactLogits(model)

    def _start(self, first: int) -> int:
        return first

    def _reading(self, pair: PatchingPair) -> AbstractContextManager[None]:
        return answers_alone(self._logits, pair.answers)

    def _run_pair(self, pair: PatchingPair, keys: Sequence[SiteKey]) -> PairPasses:
        entrances = [entrance(self._model, layer) for layer in range(self.layers + 1)]
        return run_pair(self._model, pair, [*keys, *entrances])

    def _run(
        self, passes: PairPasses, edits: Sequence[LocatedEdit], *, rows: int, start: int
    ) -> list[float]:
        """The metric of each row, by one forward pass from the lowest patched layer on."""
        model, shared = self._model, passes.pair.shared
        lowest = min(location.enters for location, _ in edits)
        into = entrance(model, lowest)
        unpatched = passes.base.values[into][:, start - shared :].repeat(rows, 1, 1)
        with ExitStack() as stack:
            stack.enter_context(skipped(layers_of(model.hf, model.architecture)[:lowest]))
            stack.enter_context(edited(locate(model, *into), lambda unused: unpatched))
            for location, edit in edits:
                stack.enter_context(edited(location, edit))
            passed = forward(model, unpatched, start=start, past=passes.base.key_values)
        metrics = logit_difference(passed.logits, len(passes.pair.answers.positive))
        return [float(metric) for metric in metrics.tolist()]
