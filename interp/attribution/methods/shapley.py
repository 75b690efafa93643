"""Exact Shapley values of segments (Shapley 1953)."""

from interp.attribution.explained import ExplainedPrompt
from interp.attribution.games import shapley_values
from interp.attribution.method import SegmentScores
from interp.models.model import Model


class Shapley:
    """What each segment adds to the target over its donors, the mean over all orders of joining."""

    def __init__(self, model: Model) -> None:
        """Take any model."""

    def attribute(self, explained: ExplainedPrompt) -> SegmentScores:
        """Scores that add up to the target of the prompt minus that of its donors."""
        values = explained.game.values()
        scores = shapley_values(values)
        gap = float(scores.sum() - (values[-1] - values[0]))
        return SegmentScores(dict(zip(explained.game.segments, scores.tolist(), strict=True)), gap)
