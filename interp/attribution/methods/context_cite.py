"""ContextCite (Cohen-Wang et al. 2024): a sparse linear surrogate of what is kept."""

import random

import numpy as np
from sklearn.linear_model import Lasso
from sklearn.preprocessing import StandardScaler

from interp.attribution.explained import ExplainedPrompt
from interp.attribution.method import SegmentScores
from interp.models.model import Model

MASKS = 32
"""Random coalitions that the surrogate is fitted to; each segment is in half of them."""

PENALTY = 0.01
"""Weight of the absolute coefficients, of standardised masks."""


class ContextCite:
    """The weights of segments in a LASSO of the target on which segments are kept.

    A segment that is not kept comes from donors; in the original it is deleted.
    """

    def __init__(self, model: Model) -> None:
        """Take any model."""

    def attribute(self, explained: ExplainedPrompt) -> SegmentScores:
        """Signed, in the target's unit per segment; zero where the penalty outweighs it."""
        game = explained.game
        coalitions = drawn_coalitions(explained.prompt.prompt.id, len(game.segments))
        masks = np.array(
            [[c >> player & 1 for player in range(len(game.segments))] for c in coalitions]
        )
        values = game.values(coalitions)
        if not np.isfinite(values).all():
            return SegmentScores.undefined(game.segments)
        scaler = StandardScaler().fit(masks)
        fitted = Lasso(alpha=PENALTY).fit(scaler.transform(masks), values)
        weights = fitted.coef_ / scaler.scale_
        return SegmentScores(dict(zip(game.segments, weights.tolist(), strict=True)))


def drawn_coalitions(seed: str, players: int) -> list[int]:
    """Random coalitions, the same for the same seed; every one is as likely as any other."""
    rng = random.Random(f"masks {seed}")
    return [int(rng.random() * 2**players) for _ in range(MASKS)]
