"""Perturbation methods, which delete segments of prompts or replace them with donors' segments."""

import random
from dataclasses import replace

import numpy as np

from interp.attribution.explained import ExplainedPrompt, Played
from interp.attribution.games import shapley_values
from interp.attribution.method import AnyModel, SegmentScores
from interp.errors import UserError
from interp.models.model import Model
from interp.reading.tokens import TokenizedPrompt


class ByDonor(AnyModel):
    """The target minus its mean after donors replace one segment (Li et al. 2016)."""

    def attribute(self, explained: Played) -> SegmentScores:
        """Signed scores in the target's units; they need not add up to the target."""
        segments = explained.game.segments
        everyone = 2 ** len(segments) - 1
        left = [everyone ^ 1 << player for player in range(len(segments))]
        whole, *without = explained.game.values([everyone, *left]).tolist()
        return SegmentScores({n: whole - v for n, v in zip(segments, without, strict=True)})


class ByDeletion(AnyModel):
    """The target minus its value after the tokens of one segment are deleted."""

    def attribute(self, explained: ExplainedPrompt) -> SegmentScores:
        """Signed scores in the target's units; they need not add up to the target."""
        prompt = explained.prompt
        shorter = [without(prompt, name) for name in prompt.segments]
        whole, *left = explained.values_of([prompt, *shorter])
        return SegmentScores({n: whole - v for n, v in zip(prompt.segments, left, strict=True)})


def without(prompt: TokenizedPrompt, name: str) -> TokenizedPrompt:
    """The prompt without the tokens of a segment."""
    start, end = prompt.segments[name]
    kept = prompt.token_ids[:start] + prompt.token_ids[end:]
    if not kept:
        raise UserError(
            f"the segment {name!r} covers all of prompt {prompt.prompt.id}, so deleting it would "
            "leave nothing; omit the method"
        )
    return replace(prompt, token_ids=kept, segments={}, roles={})


class Shapley(AnyModel):
    """Each segment's contribution relative to donors, averaged over all orders of adding them."""

    def attribute(self, explained: Played) -> SegmentScores:
        """Signed scores that add up to the prompt's target minus its mean over donors."""
        values = explained.game.values()
        scores = shapley_values(values)
        gap = float(scores.sum() - (values[-1] - values[0]))
        return SegmentScores(dict(zip(explained.game.segments, scores.tolist(), strict=True)), gap)


class ContextCite:
    """Each segment's weight in a LASSO regression of the target (Cohen-Wang et al. 2024).

    The regression's inputs, which are standardized, indicate which segments are kept. The others
    come from donors; the original method deletes them.
    """

    def __init__(self, model: Model | None, *, samples: int, penalty: float) -> None:
        self._samples, self._penalty = samples, penalty

    def attribute(self, explained: Played) -> SegmentScores:
        """Signed scores in the target's units; the penalty sets small ones to exactly zero."""
        # This import is slow.
        from sklearn.linear_model import Lasso
        from sklearn.preprocessing import StandardScaler

        game = explained.game
        players = range(len(game.segments))
        coalitions = drawn_coalitions(explained.seed, len(players), self._samples)
        masks = np.array([[c >> player & 1 for player in players] for c in coalitions])
        values = game.values(coalitions)
        if not np.isfinite(values).all():
            return SegmentScores.undefined(game.segments)
        scaler = StandardScaler().fit(masks)
        fitted = Lasso(alpha=self._penalty).fit(scaler.transform(masks), values)
        weights = fitted.coef_ / scaler.scale_
        return SegmentScores(dict(zip(game.segments, weights.tolist(), strict=True)))


def drawn_coalitions(seed: str, players: int, count: int) -> list[int]:
    """Random coalitions, reproducible by seed; all coalitions are equally likely."""
    rng = random.Random(f"masks {seed}")
    return [int(rng.random() * 2**players) for _ in range(count)]
