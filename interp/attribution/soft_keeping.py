"""Tokens kept by chance, the likelier the higher their score: what is left of the target.

pi-Soft sufficiency (Huang and Chan 2026): at an expected share pi of tokens kept, the same for all
methods, the higher the target, the better the scores say which tokens do it. What is not kept is
the donor's token in its place (`interp.attribution.counterfactual`), so that every text is one of
tokens. Only tokens that the donor changes are drawn: to keep any other is to replace it.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import brentq
from scipy.special import expit, logit

from interp.attribution.counterfactual import counterfactual_tokens
from interp.attribution.explained import ExplainedPrompt
from interp.attribution.method import Attribution, SegmentScores
from interp.choices import LENGTH, ORACLE, POSITION, RANDOM, REVERSED
from interp.prompts.mixing import donors_of
from interp.reading.tokens import TokenizedPrompt

SHARES = tuple(tenths / 10 for tenths in range(1, 10))
"""Expected shares of tokens that are kept."""

MASKS = 16
"""Random masks for each share."""

SHARPNESS = 1.0
"""What a standard deviation of the scores adds to the log-odds of being kept."""

Scores = Float[np.ndarray, " token"]
Masks = Bool[np.ndarray, "*masks token"]
"""Whether each token is kept."""


def keeping_probabilities(scores: Scores, share: float, *, sharpness: float = SHARPNESS) -> Scores:
    """The probability that each token is kept, q_i = 1 / (1 + exp(-(a + b z_i))).

    z are the standardised scores, b is the sharpness, and a is such that the mean of q is the
    share. Equal scores keep every token with the probability `share`.
    """
    z = sharpness * _standardised(scores)
    # At either end all tokens are on one side of the share, which rounding must not undo.
    low, high = logit(share) - z.max() - 1, logit(share) - z.min() + 1
    a = brentq(lambda a: expit(a + z).mean() - share, low, high)
    return np.asarray(expit(a + z))


def soft_masks(scores: Scores, uniforms: Float[np.ndarray, "mask token"]) -> Masks:
    """Masks by share and number, (share, mask, token): kept where q is above a uniform number."""
    by_share = np.stack([keeping_probabilities(scores, share) for share in SHARES])
    return np.asarray(uniforms < by_share[:, None, :])


class TokenGame:
    """The target by tokens that are kept, the others replaced by those of the donor.

    What is read once is remembered. Random numbers depend on the prompt alone, so that methods are
    compared on the same ones.
    """

    def __init__(self, explained: ExplainedPrompt) -> None:
        prompt = explained.prompt
        self._explained = explained
        self._donated = counterfactual_tokens(explained.model, prompt)
        pairs = zip(prompt.token_ids, self._donated, strict=True)
        self.places = [place for place, (own, other) in enumerate(pairs) if own != other]
        """The tokens that the donor changes, the players."""
        self._known: dict[bytes, float] = {}

    def values(self, masks: Masks) -> Float[np.ndarray, "*masks"]:
        """The target for each mask."""
        rows = masks.reshape(-1, len(self.places))
        keys = [row.tobytes() for row in rows]
        new = {key: row for key, row in zip(keys, rows, strict=True) if key not in self._known}
        read = self._explained.values_of([self._kept(row) for row in new.values()])
        self._known |= zip(new, read, strict=True)
        found = np.array([self._known[key] for key in keys])
        return found.reshape(masks.shape[:-1])

    def left(self, scores: Scores) -> Float[np.ndarray, " share"]:
        """The mean target over masks by these scores, for each of `SHARES`."""
        return np.asarray(self.values(soft_masks(scores, self._uniforms("masks"))).mean(-1))

    def shapley(self) -> Scores:
        """What each token adds, the mean over random orders in which tokens are kept.

        Half of the orders are the others reversed, so that the values are exact where no three
        tokens interact (Mitchell et al. 2022); otherwise they are estimates.
        """
        forward = self._uniforms("orders")[: MASKS // 2].argsort(-1)
        orders = np.concatenate([forward, forward[:, ::-1]])
        ranks = orders.argsort(-1)
        steps = np.arange(len(self.places) + 1)
        values = self.values(ranks[:, None, :] < steps[None, :, None])
        added = np.take_along_axis(np.diff(values, axis=-1), ranks, axis=-1)
        return np.asarray(added.mean(0))

    def _uniforms(self, purpose: str) -> Float[np.ndarray, "mask token"]:
        chance = random.Random(f"soft keeping {purpose} {self._explained.prompt.prompt.id}")
        return np.array([[chance.random() for _ in self.places] for _ in range(MASKS)])

    def _kept(self, mask: Bool[np.ndarray, " token"]) -> TokenizedPrompt:
        prompt = self._explained.prompt
        token_ids = list(prompt.token_ids)
        for place, kept in zip(self.places, mask, strict=True):
            if not kept:
                token_ids[place] = self._donated[place]
        return replace(prompt, token_ids=tuple(token_ids), segments={}, roles={})


def controls(prompt: TokenizedPrompt, game: TokenGame) -> dict[str, Scores]:
    """Scores of the players of which it is known how good they are, by the controls' names.

    The oracle has the tokens' Shapley values; a token is as long as its segment.
    """
    truth = game.shapley()
    lengths = [len(range(*prompt.segments[name])) for name in _owners(prompt, game.places)]
    return {
        ORACLE: truth,
        REVERSED: -truth,
        RANDOM: np.zeros_like(truth),
        LENGTH: np.array(lengths, dtype=float),
        POSITION: np.array(game.places, dtype=float),
    }


def player_scores(prompt: TokenizedPrompt, found: Attribution, places: Sequence[int]) -> Scores:
    """A method's scores of the players; tokens of a segment share the score of the segment."""
    if not isinstance(found, SegmentScores):
        return np.asarray(found.scores[list(places)], dtype=float)
    owners = _owners(prompt, places)
    return np.array([found.scores.get(name, np.nan) / owners.count(name) for name in owners])


def _owners(prompt: TokenizedPrompt, places: Sequence[int]) -> list[str]:
    """The segment of each place, of those that donors replace."""
    names = donors_of(prompt.prompt, "instance")[0].segments
    return [
        next(name for name in names if place in range(*prompt.segments[name])) for place in places
    ]


def _standardised(scores: Scores) -> Scores:
    """Scores minus their mean, over their standard deviation; zeros where all are equal."""
    deviations = scores - scores.mean()
    spread = deviations.std()
    equal = spread <= 1e-12 * np.abs(scores).max()
    return np.zeros_like(deviations) if equal else deviations / spread
