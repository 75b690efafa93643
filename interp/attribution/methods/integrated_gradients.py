"""Integrated gradients (Sundararajan et al. 2017) on the path from a donor to the prompt."""

from dataclasses import replace

import captum.attr

from interp.attribution.counterfactual import counterfactual_embeddings
from interp.attribution.explained import ExplainedPrompt
from interp.attribution.method import TokenScores
from interp.models.model import Model

STEPS = 20
"""Points of the integral (Gauss-Legendre). The path is short: most tokens stay as they are."""


class IntegratedGradients:
    """(Embedding - donor's embedding) . mean gradient on the straight line between the two."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def attribute(self, explained: ExplainedPrompt) -> TokenScores:
        """Scores that add up but for the error of the integration, the completeness gap."""
        baseline = counterfactual_embeddings(self._model, explained.batch)
        attributions = captum.attr.IntegratedGradients(explained.values).attribute(
            explained.embeddings.clone().requires_grad_(),
            baseline,
            n_steps=STEPS,
            internal_batch_size=explained.rows,
        )
        scores = attributions.detach().float().sum(-1)
        (found,) = TokenScores.of(scores, explained.batch)
        return replace(found, completeness_gap=explained.gap(scores, baseline))
