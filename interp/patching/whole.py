"""Exact patching of encoders: every cell by a forward pass over the whole prompt.

In an encoder each token sees all others, so that nothing that comes before a patch is the same with
and without it. Both prompts are run once; the cells of a site and layer that can change the answer
are run together, one row per cell.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext

import torch
from jaxtyping import Float
from torch import Tensor

from interp.models.model import Model
from interp.models.sites import edited, locate, recorded
from interp.patching.cells import PatchingPair
from interp.patching.grid import Grid
from interp.patching.joint import LocatedEdit
from interp.patching.metric import logit_difference
from interp.patching.passes import PairPasses, Pass, SiteKey
from interp.patching.rows import ExactRows
from interp.reading.budget import TokenBudget
from interp.reading.readers import reader_of
from interp.reading.tokens import TokenizedPrompt, pad
from interp.scoring.answer_tokens import ContrastTokens


def native_grid(model: Model, *, budget: TokenBudget) -> ExactRows:
    """The native backend of a model."""
    return (Grid if model.architecture.causal else WholeGrid)(model, budget=budget)


class WholeGrid(ExactRows):
    """The native backend of encoders; logits are the model's own, in its own type."""

    def _start(self, first: int) -> int:
        return 0

    def _reading(self, pair: PatchingPair) -> AbstractContextManager[None]:
        return nullcontext()

    def _run_pair(self, pair: PatchingPair, keys: Sequence[SiteKey]) -> PairPasses:
        base, source = (self._pass(p, pair.answers, keys) for p in (pair.base, pair.source))
        return PairPasses(pair, [], base, source)

    def _pass(
        self, prompt: TokenizedPrompt, answers: ContrastTokens, keys: Sequence[SiteKey]
    ) -> Pass:
        """One prompt, with the sites of `keys`."""
        wanted = {key: locate(self._model, *key) for key in keys}
        with recorded(wanted) as values:
            logits = self._answer_logits(prompt, answers, rows=1)
        return Pass(values, [], logits)

    def _run(
        self, passes: PairPasses, edits: Sequence[LocatedEdit], *, rows: int, start: int
    ) -> list[float]:
        """The metric of each row, by one forward pass over whole prompts."""
        pair = passes.pair
        with ExitStack() as stack:
            for location, edit in edits:
                stack.enter_context(edited(location, edit))
            logits = self._answer_logits(pair.base, pair.answers, rows=rows)
        metrics = logit_difference(logits, len(pair.answers.positive))
        return [float(metric) for metric in metrics.tolist()]

    def _answer_logits(
        self, prompt: TokenizedPrompt, answers: ContrastTokens, *, rows: int
    ) -> Float[Tensor, "row answer"]:
        """Logits of the positive, then negative answers, for copies of one prompt."""
        batch = pad(self._model, [prompt] * rows)
        chosen = torch.tensor([*answers.positive, *answers.negative], device=self._model.device)
        logits = reader_of(self._model).answer_logits(batch)
        return logits[:, chosen.to(logits.device)]
