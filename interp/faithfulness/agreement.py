"""How well scores agree with effects, by segment and when segments are kept or removed in order.

Some metrics compare single segments: the top segment, signs, ranks, shares and planted causes.
Others keep or remove segments one at a time, starting with the highest score. If scores tie, these
metrics are averaged over all orders compatible with the scores, so equal scores yield the value of
a random order.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import permutations

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

Scores = Float[ndarray, "*methods prompt segment"]
"""Scores of the segments of some prompts, by any number of methods."""

Effects = Float[ndarray, "prompt segment"]
"""The effect of each segment, in logits: its Shapley value, or its leave-one-out effect."""

Values = Float[ndarray, "prompt coalition"]
"""v(S) in logits; bit i of a coalition's number says that segment i is kept."""

ByPrompt = Float[ndarray, "*methods prompt"]
"""A metric for each prompt; NaN if it is undefined."""

LEAST_EFFECT = 0.1
"""Effects below this, in nats, are too small to distinguish or to divide by."""

NOT_NIL = 0.05
"""A segment's sign is judged only if its effect exceeds this share of the largest effect."""


def ratio(above: ArrayLike, below: ArrayLike) -> NDArray[np.float64]:
    """Divide two arrays of equal or broadcast shapes; NaN if the divisor is zero."""
    tops, bottoms = np.broadcast_arrays(np.asarray(above, dtype=float), below)
    found = np.full(tops.shape, np.nan)
    # A sum that should be zero may be an fp64 rounding error.
    np.divide(tops, bottoms, out=found, where=np.abs(bottoms) > 1e-12)
    return found


def top_segment(scores: Scores, effects: Effects) -> ByPrompt:
    """Whether the segment with the largest |score| has the largest |effect|: 1 or 0.

    Each of m tied scores counts 1/m, so equal scores for k segments yield 1/k, the chance level of
    a random order. NaN if no effect reaches `LEAST_EFFECT`.
    """
    sizes = np.abs(scores), np.abs(effects)
    chosen, true = (size >= size.max(-1, keepdims=True) for size in sizes)
    hits = ratio((chosen & true).sum(-1), chosen.sum(-1))
    return np.where(sizes[1].max(-1) < LEAST_EFFECT, np.nan, hits)


def sign_agreement(scores: Scores, effects: Effects) -> ByPrompt:
    """The share of segments whose score has the sign of their effect, from 0 to 1.

    A segment counts if its |effect| is at least `LEAST_EFFECT` and exceeds 5% of the prompt's
    largest |effect|; NaN if no segment counts. A score of zero counts half.
    """
    sizes = np.abs(effects)
    counted = (sizes > NOT_NIL * sizes.max(-1, keepdims=True)) & (sizes >= LEAST_EFFECT)
    right = (1 + np.sign(scores) * np.sign(effects)) / 2
    return ratio((right * counted).sum(-1), counted.sum(-1))


def kendall_tau(scores: Scores, effects: Effects) -> ByPrompt:
    """Kendall's tau-b of |score| with |effect| over the segments of a prompt, from -1 to 1.

    This is the number of concordant pairs of segments minus the number of discordant pairs, divided
    by the geometric mean of the number of pairs not tied in |score| and the number not tied in
    |effect| (Kendall 1945). NaN for fewer than three segments, or if all segments are tied.
    """
    if effects.shape[-1] < 3:
        return np.full(scores.shape[:-1], np.nan)
    one, other = np.triu_indices(effects.shape[-1], 1)
    ours, true = (np.sign(np.abs(x)[..., one] - np.abs(x)[..., other]) for x in (scores, effects))
    untied = np.sqrt((ours != 0).sum(-1) * (true != 0).sum(-1))
    return ratio((ours * true).sum(-1), untied)


def share(scores: Scores, first: int, second: int) -> ByPrompt:
    """The second segment's share of the |scores| of two, from 0 to 1; NaN if both are zero."""
    one, other = (np.abs(scores[..., place]) for place in (first, second))
    return ratio(other, one + other)


def planted_hits(shares: ByPrompt, planted: Float[np.ndarray, " prompt"]) -> ByPrompt:
    """Whether the planted segment has the larger score: 1 or 0; 0.5 for equal scores.

    Args:
        shares: the second segment's share of the two |scores| (`share`).
        planted: the probability that the second segment decides: 0 or 1 if the deciding segment is
            known. Other probabilities yield expected hits. NaN if nothing is planted.
    """
    second = (1 + np.sign(shares - 0.5)) / 2
    return np.asarray(second * planted + (1 - second) * (1 - planted))


def rank_correlation(
    x: ByPrompt, y: ByPrompt, weights: Float[np.ndarray, " prompt"]
) -> Float[np.ndarray, "*methods"]:
    """Spearman's correlation over prompts, from -1 to 1; ties share their mean rank.

    Ranks are unweighted and cover the prompts for which both variables are defined; the correlation
    is weighted. NaN if one of the variables is constant.
    """
    both = ~(np.isnan(x) | np.isnan(y))
    mass = weights * both
    # Prompts without a rank are sorted last, where they do not affect other ranks.
    a, b = (_centred(rankdata(np.where(both, part, np.inf), axis=-1), mass) for part in (x, y))
    covariance, one, other = ((mass * p * q).sum(-1) for p, q in ((a, b), (a, a), (b, b)))
    return ratio(covariance, np.sqrt(one * other))


def linear_datamodeling(scores: Scores, values: Values) -> ByPrompt:
    """Spearman's correlation between the summed scores of S and v(S), over all coalitions S.

    This is the linear datamodeling score, from -1 to 1 (Park et al. 2023; for contexts, Cohen-Wang
    et al. 2024), with every coalition rather than a sample. NaN if the sums or the values are
    constant.
    """
    coalitions = np.arange(values.shape[-1])
    kept = (coalitions[:, None] >> np.arange(scores.shape[-1]) & 1).astype(float)
    # Sums of the same segments, added in a different order, may differ in the last bits.
    sums = np.round(scores @ kept.T, 12)
    equal = np.ones(values.shape[-1])
    return rank_correlation(sums, np.broadcast_to(values, sums.shape), equal)


def _centred(ranks: ByPrompt, mass: ByPrompt) -> ByPrompt:
    """Deviations from the weighted mean."""
    mean = ratio((mass * ranks).sum(-1), mass.sum(-1))
    return ranks - np.nan_to_num(mean)[..., None]


Curves = Float[np.ndarray, "prompt order kept"]
"""v of the first r segments of each order, for r = 0 ... k."""

ByOrder = Float[np.ndarray, "prompt order"]


def necessity(scores: Scores, values: Values) -> ByPrompt:
    """NC = [v(N) - v(N without R)] / [v(N) - v(0)] for the top segment R; 1 if only R matters.

    Normalised comprehensiveness (DeYoung et al. 2020), with donors instead of deletion. NaN if
    |v(N) - v(0)| is below `LEAST_EFFECT`.
    """
    return _over_orders(scores, values, lambda kept, left: _normed(left, kept)[..., 1])


def sufficiency(scores: Scores, values: Values) -> ByPrompt:
    """NS = [v(R) - v(0)] / [v(N) - v(0)] for the top segment R; 1 if R suffices.

    Normalised sufficiency (DeYoung et al. 2020), undefined like `necessity`.
    """
    return _over_orders(scores, values, lambda kept, left: _faithfulness(kept)[..., 1])


def circuit_performance(scores: Scores, values: Values) -> ByPrompt:
    """CPR: the area under NS over the share of kept segments; higher is better.

    The area is computed by trapezoids from no segments to all segments (Mueller et al. 2025, for
    circuits). Undefined like `necessity`.
    """
    return _over_orders(scores, values, lambda kept, left: _area(_faithfulness(kept)))


def circuit_distance(scores: Scores, values: Values) -> ByPrompt:
    """CMD: the area under |1 - NS| over the share of kept segments; lower is better.

    Never negative; 0 only if no segment is needed (Mueller et al. 2025). Undefined like
    `necessity`.
    """
    return _over_orders(scores, values, lambda kept, left: _area(np.abs(1 - _faithfulness(kept))))


def normalized_aopc(scores: Scores, values: Values) -> ByPrompt:
    """NAOPC = (AOPC - min) / (max - min) over all k! orders, from 0 to 1 (Edin et al. 2024).

    NaN if orders differ by less than `LEAST_EFFECT`.
    """
    return _over_orders(scores, values, lambda kept, left: _naopc(left))


def morf_minus_lerf(scores: Scores, values: Values) -> ByPrompt:
    """NAOPC, most relevant first, minus NAOPC, least relevant first, from -1 to 1.

    It is 0 for a random order, and undefined under the same conditions as `normalized_aopc`.
    """
    return np.asarray(normalized_aopc(scores, values) - normalized_aopc(-scores, values))


def recovered(scores: Scores, values: Values) -> ByPrompt:
    """Area under v(R) - v(0) over the share of segments kept, in logits: the numerator of CPR.

    Its mean over prompts divided by the mean of v(N) - v(0) is CPR as a ratio of means, which
    prompts with small differences cannot dominate.
    """
    return _over_orders(scores, values, lambda kept, left: _area(kept - kept[..., :1]))


def _over_orders(
    scores: Scores, values: Values, metric: Callable[[Curves, Curves], ByOrder]
) -> ByPrompt:
    """The mean of a metric over all orders of non-increasing scores.

    The arguments of `metric` are v of the kept segments, and v(N) minus v of the other segments.
    """
    segments = scores.shape[-1]
    orders, coalitions = _orders(segments)
    kept = values[:, coalitions]
    left = values[:, [[-1]]] - values[:, coalitions[0, -1] ^ coalitions]
    along = scores[..., orders]
    allowed = (along[..., :-1] >= along[..., 1:]).all(-1)
    by_order = metric(kept, left)
    undefined = np.isnan(by_order).any(-1)
    means = ratio((allowed * np.nan_to_num(by_order)).sum(-1), allowed.sum(-1))
    return np.where(undefined, np.nan, means)


@lru_cache(maxsize=8)
def _orders(
    segments: int,
) -> tuple[Int[np.ndarray, "order segment"], Int[np.ndarray, "order kept"]]:
    """All orders of this many segments, with the coalition of each order's first r segments."""
    orders = np.array(list(permutations(range(segments))), dtype=np.int64)
    coalitions = np.concatenate(
        [np.zeros((len(orders), 1), dtype=np.int64), np.cumsum(1 << orders, axis=1)], axis=1
    )
    return orders, coalitions


def _faithfulness(kept: Curves) -> Curves:
    """NS of the first r segments."""
    return _normed(kept - kept[..., :1], kept)


def _normed(effects: Curves, kept: Curves) -> Curves:
    """Effects divided by v(N) - v(0); NaN if the divisor is below `LEAST_EFFECT`."""
    whole = kept[..., -1:] - kept[..., :1]
    return np.asarray(effects / np.where(np.abs(whole) < LEAST_EFFECT, np.nan, whole))


def _area(curves: Curves) -> ByOrder:
    """The area under curves over r / k, by trapezoids."""
    return np.asarray(np.trapezoid(curves, axis=-1) / (curves.shape[-1] - 1))


def _naopc(left: Curves) -> ByOrder:
    """Normalised AOPC, the mean over j = 1 ... k of v(N) - v(N without the top j).

    AOPC is the area over the perturbation curve (Samek et al. 2017), with donors as perturbation.
    """
    areas = left[..., 1:].mean(-1)
    low, high = areas.min(-1, keepdims=True), areas.max(-1, keepdims=True)
    spread = np.where(high - low < LEAST_EFFECT, np.nan, high - low)
    return np.asarray((areas - low) / spread)
