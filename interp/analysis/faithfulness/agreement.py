"""Agreement of scores with effects: the top segment, signs, ranks, shares, planted causes."""

import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata

from interp.analysis.faithfulness.arithmetic import ratio
from interp.analysis.faithfulness.types import LEAST_EFFECT, ByPrompt, Effects, Scores, Values

NOT_NIL = 0.05
"""A segment whose effect is above this share of the largest one has a sign to be found."""


def top_segment(scores: Scores, effects: Effects) -> ByPrompt:
    """Whether the segment of the largest |score| is that of the largest |effect|: 1 or 0.

    Of m tied scores each counts 1/m, so that equal scores for k segments give 1/k, the chance of
    a random order. NaN where no effect reaches `LEAST_EFFECT`.
    """
    chosen, true = _largest(np.abs(scores)), _largest(np.abs(effects))
    hits = ratio((chosen & true).sum(-1), chosen.sum(-1))
    return np.where(np.abs(effects).max(-1) < LEAST_EFFECT, np.nan, hits)


def sign_agreement(scores: Scores, effects: Effects) -> ByPrompt:
    """The share of segments whose score has the sign of their effect, from 0 to 1.

    Of the segments with |effect| > 5% of the prompt's largest and at least `LEAST_EFFECT`; NaN
    where there is none. A score of zero counts half.
    """
    sizes = np.abs(effects)
    counted = (sizes > NOT_NIL * sizes.max(-1, keepdims=True)) & (sizes >= LEAST_EFFECT)
    right = (1 + np.sign(scores) * np.sign(effects)) / 2
    return ratio((right * counted).sum(-1), counted.sum(-1))


def kendall_tau(scores: Scores, effects: Effects) -> ByPrompt:
    """Kendall's tau-b of |score| with |effect| over the segments of a prompt, from -1 to 1.

    Concordant minus discordant pairs of segments over the geometric mean of the pairs that are not
    tied in either (Kendall 1945). NaN below three segments, or where all are tied.
    """
    if effects.shape[-1] < 3:
        return np.full(scores.shape[:-1], np.nan)
    one, other = np.triu_indices(effects.shape[-1], 1)
    ours, true = (np.sign(np.abs(x)[..., one] - np.abs(x)[..., other]) for x in (scores, effects))
    untied = np.sqrt((ours != 0).sum(-1) * (true != 0).sum(-1))
    return ratio((ours * true).sum(-1), untied)


def share(scores: Scores, first: int, second: int) -> ByPrompt:
    """The part of the second segment in the |scores| of two, from 0 to 1; NaN of two zeros."""
    one, other = (np.abs(scores[..., place]) for place in (first, second))
    return ratio(other, one + other)


def planted_hits(shares: ByPrompt, planted: Float[np.ndarray, " prompt"]) -> ByPrompt:
    """Whether the segment of the larger score is the planted one: 1 or 0, equal scores 0.5.

    Args:
        shares: the second segment's part of the |scores| of two (`share`).
        planted: the probability that the second segment decides, 0 or 1 where it is known; a
            probability between gives the expected hits. NaN where nothing is planted.
    """
    second = (1 + np.sign(shares - 0.5)) / 2
    return np.asarray(second * planted + (1 - second) * (1 - planted))


def rank_correlation(
    x: ByPrompt, y: ByPrompt, weights: Float[np.ndarray, " prompt"]
) -> Float[np.ndarray, "*methods"]:
    """Spearman's correlation over prompts, from -1 to 1; ties share their mean rank.

    Ranks are those of the prompts where both are defined, correlated with the prompts' weights; NaN
    where either is constant.
    """
    both = ~(np.isnan(x) | np.isnan(y))
    mass = weights * both
    # What is not ranked is put last, where it changes no other rank.
    ranked = [_centred(_ranks(np.where(both, part, np.inf)), mass) for part in (x, y)]
    covariance, one, other = (
        (mass * a * b).sum(-1)
        for a, b in ((ranked[0], ranked[1]), (ranked[0], ranked[0]), (ranked[1], ranked[1]))
    )
    return ratio(covariance, np.sqrt(one * other))


def linear_datamodeling(scores: Scores, values: Values) -> ByPrompt:
    """Spearman's correlation, over all coalitions S, of the summed scores of S with v(S).

    From -1 to 1; the linear datamodeling score (Park et al. 2023; of contexts, Cohen-Wang et al.
    2024) with every coalition in place of a sample. NaN where either is constant.
    """
    coalitions = np.arange(values.shape[-1])
    kept = (coalitions[:, None] >> np.arange(scores.shape[-1]) & 1).astype(float)
    # Sums of the same segments in another order may differ in the last bits.
    sums = np.round(scores @ kept.T, 12)
    equal = np.ones(values.shape[-1])
    return rank_correlation(sums, np.broadcast_to(values, sums.shape), equal)


def _largest(sizes: Scores) -> np.ndarray:
    """Where a segment is the largest, ties included."""
    return np.asarray(sizes >= sizes.max(-1, keepdims=True))


def _ranks(values: ByPrompt) -> ByPrompt:
    return np.asarray(rankdata(values, axis=-1))


def _centred(ranks: ByPrompt, mass: ByPrompt) -> ByPrompt:
    """Deviations from the weighted mean."""
    mean = ratio((mass * ranks).sum(-1), mass.sum(-1))
    return ranks - np.nan_to_num(mean)[..., None]
