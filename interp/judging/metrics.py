"""Metrics of how well the segments' scores agree with the segments' effects, and their table.

Some metrics compare single segments: the top segment, signs, ranks, shares and planted causes.
Others keep or remove segments one at a time, starting with the segment that has the highest score.
If scores tie, these metrics are averaged over all orders in which scores never increase, so if all
scores are equal, such a metric has the value that a random order has on average.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from interp.attribution.games import leave_one_out
from interp.judging.trials import Effects, Scores, Trials, Values, Weights

ByPrompt = Float[ndarray, "*methods prompt"]
"""The value of a metric for each prompt; NaN where the metric is undefined."""

Parts = tuple[ByPrompt, ...]
Combine = Callable[..., Float[np.ndarray, " methods"]]

EACH, MEAN = "each prompt", "the mean"
"""Where a metric divides by v(N) - v(0): in each prompt, or once, by its mean."""

LEAST_EFFECT = 0.1
"""Effects below this, in logits, are too small to be compared or to serve as divisors."""

NOT_NIL = 0.05
"""A score's sign is judged only if the segment's |effect| exceeds this share of the prompt's
largest |effect|."""


def ratio(above: ArrayLike, below: ArrayLike) -> NDArray[np.float64]:
    """Divide two arrays with shapes that can be broadcast; NaN where the divisor is zero."""
    tops, bottoms = np.broadcast_arrays(np.asarray(above, dtype=float), below)
    quotients = np.full(tops.shape, np.nan)
    # In fp64, a sum that should be zero may differ from zero by a rounding error.
    np.divide(tops, bottoms, out=quotients, where=np.abs(bottoms) > 1e-12)
    return quotients


def top_segment(scores: Scores, effects: Effects) -> ByPrompt:
    """Whether the segment with the largest |score| has the largest |effect|: 1 or 0.

    If m segments tie for the largest |score|, each counts 1/m; equal scores for all k segments
    therefore yield 1/k, the chance level of a random order. NaN if no |effect| reaches
    `LEAST_EFFECT`.
    """
    sizes = np.abs(scores), np.abs(effects)
    chosen, true = (size >= size.max(-1, keepdims=True) for size in sizes)
    hits = ratio((chosen & true).sum(-1), chosen.sum(-1))
    return np.where(sizes[1].max(-1) < LEAST_EFFECT, np.nan, hits)


def sign_agreement(scores: Scores, effects: Effects) -> ByPrompt:
    """The share of segments whose score and effect have the same sign, from 0 to 1.

    A segment counts if its |effect| is at least `LEAST_EFFECT` and exceeds 5% of the prompt's
    largest |effect|; NaN if no segment counts. A score of zero counts as half an agreement.
    """
    sizes = np.abs(effects)
    counted = (sizes > NOT_NIL * sizes.max(-1, keepdims=True)) & (sizes >= LEAST_EFFECT)
    right = (1 + np.sign(scores) * np.sign(effects)) / 2
    return ratio((right * counted).sum(-1), counted.sum(-1))


def kendall_tau(scores: Scores, effects: Effects) -> ByPrompt:
    """Kendall's tau-b between |score| and |effect| over the segments of a prompt, from -1 to 1.

    The pairs of segments in the same order minus those in opposite orders, divided by the geometric
    mean of the pairs that are not tied in |score| and in |effect| (Kendall 1945). NaN if there are
    fewer than three segments, or all are tied.
    """
    if effects.shape[-1] < 3:
        return np.full(scores.shape[:-1], np.nan)
    one, other = np.triu_indices(effects.shape[-1], 1)
    ours, true = (np.sign(np.abs(x)[..., one] - np.abs(x)[..., other]) for x in (scores, effects))
    untied = np.sqrt((ours != 0).sum(-1) * (true != 0).sum(-1))
    return ratio((ours * true).sum(-1), untied)


def share(scores: Scores, first: int, second: int) -> ByPrompt:
    """The second segment's share of two segments' |scores|, from 0 to 1; NaN if both are zero."""
    one, other = (np.abs(scores[..., place]) for place in (first, second))
    return ratio(other, one + other)


def planted_hits(shares: ByPrompt, planted: Float[np.ndarray, " prompt"]) -> ByPrompt:
    """Whether the planted segment has the larger |score|: 1 or 0, or 0.5 if the |scores| are equal.

    `shares` are from `share`; `planted` is the probability that the second segment decides, or NaN.
    """
    second = (1 + np.sign(shares - 0.5)) / 2
    return np.asarray(second * planted + (1 - second) * (1 - planted))


def rank_correlation(
    x: ByPrompt, y: ByPrompt, weights: Float[np.ndarray, " prompt"]
) -> Float[np.ndarray, "*methods"]:
    """Spearman's correlation over prompts, from -1 to 1; tied values share their mean rank.

    Prompts are ranked without weights, among those for which both variables are defined; the
    correlation of the ranks is weighted. NaN if one of the variables is constant.
    """
    defined = ~(np.isnan(x) | np.isnan(y))
    mass = weights * defined
    # Prompts with an undefined variable are sorted last, where they do not affect other ranks.
    ranks = (rankdata(np.where(defined, part, np.inf), axis=-1) for part in (x, y))
    a, b = (
        rank - np.nan_to_num(ratio((mass * rank).sum(-1), mass.sum(-1)))[..., None]
        for rank in ranks
    )
    covariance, one, other = ((mass * p * q).sum(-1) for p, q in ((a, b), (a, a), (b, b)))
    return ratio(covariance, np.sqrt(one * other))


def linear_datamodeling(scores: Scores, values: Values) -> ByPrompt:
    """Spearman's correlation, over all coalitions S, between v(S) and the sum of the scores in S.

    This is the linear datamodeling score, from -1 to 1 (Park et al. 2023; for contexts, Cohen-Wang
    et al. 2024), computed from every coalition rather than from a sample. NaN if the sums or the
    values are constant.
    """
    coalitions = np.arange(values.shape[-1])
    kept = (coalitions[:, None] >> np.arange(scores.shape[-1]) & 1).astype(float)
    # Equal sums may differ in their last bits if their terms were added in different orders.
    sums = np.round(scores @ kept.T, 12)
    equal = np.ones(values.shape[-1])
    return rank_correlation(sums, np.broadcast_to(values, sums.shape), equal)


Curves = Float[np.ndarray, "prompt order kept"]
"""For each order of the k segments, a value for each number r = 0 ... k of segments kept."""

ByOrder = Float[np.ndarray, "prompt order"]


def necessity(scores: Scores, values: Values) -> ByPrompt:
    """NC = [v(N) - v(N without R)] / [v(N) - v(0)] for the top segment R; 1 if only R matters.

    This is normalized comprehensiveness (DeYoung et al. 2020), but segments are replaced from
    donors rather than deleted.
    """
    return _over_orders(scores, values, lambda kept, left: _normed(left, kept)[..., 1])


def sufficiency(scores: Scores, values: Values) -> ByPrompt:
    """NS = [v(R) - v(0)] / [v(N) - v(0)] for the top segment R (ibid.); 1 if R suffices."""
    return _over_orders(scores, values, lambda kept, left: _faithfulness(kept)[..., 1])


def circuit_performance(scores: Scores, values: Values) -> ByPrompt:
    """CPR: the area under NS over the share of segments kept (of circuits: Mueller et al. 2025)."""
    return _over_orders(scores, values, lambda kept, left: _area(_faithfulness(kept)))


def circuit_distance(scores: Scores, values: Values) -> ByPrompt:
    """CMD: the area under |1 - NS|, at least 1 / (2k) for k segments (Mueller et al. 2025)."""
    return _over_orders(scores, values, lambda kept, left: _area(np.abs(1 - _faithfulness(kept))))


def normalized_aopc(scores: Scores, values: Values) -> ByPrompt:
    """NAOPC = (AOPC - min) / (max - min), from 0 to 1 (Edin et al. 2024).

    AOPC is the mean over j of v(N) - v(N without the first j) (Samek et al. 2017). The minimum and
    the maximum are those over all k! orders of the segments. NaN if they differ by less than
    `LEAST_EFFECT`.
    """

    def normalized(_: Curves, left: Curves) -> ByOrder:
        areas = left[..., 1:].mean(-1)
        low, high = areas.min(-1, keepdims=True), areas.max(-1, keepdims=True)
        return np.asarray((areas - low) / np.where(high - low < LEAST_EFFECT, np.nan, high - low))

    return _over_orders(scores, values, normalized)


def morf_minus_lerf(scores: Scores, values: Values) -> ByPrompt:
    """NAOPC with the most relevant segments first minus NAOPC with the least relevant first.

    The difference lies between -1 and 1, and is 0 on average for a random order.
    """
    return np.asarray(normalized_aopc(scores, values) - normalized_aopc(-scores, values))


def recovered(scores: Scores, values: Values) -> ByPrompt:
    """The area under v(R) - v(0) as a function of the share of segments kept, in logits.

    Its mean over prompts divided by the mean of v(N) - v(0) is CPR as a ratio of means, which
    prompts with small differences cannot dominate.
    """
    return _over_orders(scores, values, lambda kept, left: _area(kept - kept[..., :1]))


def _over_orders(
    scores: Scores, values: Values, metric: Callable[[Curves, Curves], ByOrder]
) -> ByPrompt:
    """The mean of a metric over all orders in which scores never increase."""
    segments = scores.shape[-1]
    orders, coalitions = _orders(segments)
    kept = values[:, coalitions]
    # v(N) minus v without the first r segments of each order.
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
    """All orders of this many segments and, for each order and r, the coalition of its first r."""
    orders = np.array(list(permutations(range(segments))), dtype=np.int64)
    return orders, np.pad(np.cumsum(1 << orders, axis=1), [(0, 0), (1, 0)])


def _faithfulness(kept: Curves) -> Curves:
    """NS of the first r segments of each order."""
    return _normed(kept - kept[..., :1], kept)


def _normed(effects: Curves, kept: Curves) -> Curves:
    """Effects divided by v(N) - v(0); NaN if |v(N) - v(0)| is below `LEAST_EFFECT`."""
    divisor = kept[..., -1:] - kept[..., :1]
    return np.asarray(effects / np.where(np.abs(divisor) < LEAST_EFFECT, np.nan, divisor))


def _area(curves: Curves) -> ByOrder:
    """The area under each curve as a function of r / k, by the trapezoidal rule."""
    return np.asarray(np.trapezoid(curves, axis=-1) / (curves.shape[-1] - 1))


def mean(by_prompt: ByPrompt, *, weights: Weights) -> Float[np.ndarray, " methods"]:
    """The weighted mean over the prompts in which a metric is defined; NaN if there are none."""
    mass = weights * ~np.isnan(by_prompt)
    return ratio((mass * np.nan_to_num(by_prompt)).sum(-1), mass.sum(-1))


def ratio_of_means(
    above: ByPrompt, below: ByPrompt, *, weights: Weights
) -> Float[np.ndarray, " methods"]:
    """The ratio of two weighted means."""
    return ratio((weights * np.nan_to_num(above)).sum(-1), (weights * np.nan_to_num(below)).sum(-1))


SHARE, CORRELATION, ANY = (0.0, 1.0), (-1.0, 1.0), (-np.inf, np.inf)
"""The smallest and the largest value that a metric can have."""

_EFFECT = f"an effect of at least {LEAST_EFFECT} logits"
_SIGNED = f"scores with a sign, and {_EFFECT}"
_THREE = "three segments whose scores and effects are not all equal"
_COMPARED = "two compared segments, with shares that vary over prompts"
_VALUES = "scores and values v(S) that are not all equal"
_DIVISOR = f"|v(N) - v(0)| of at least {LEAST_EFFECT} logits"
_ORDERS = f"orders of removal whose AOPCs differ by at least {LEAST_EFFECT} logits"


@dataclass(frozen=True)
class Metric:
    """A metric of scores and effects."""

    name: str
    title: str
    parts: Callable[[Trials], Parts]
    """Function that computes each prompt's terms, from which `combine` makes one number."""
    needs: str
    """Condition for the metric to be defined, such as "three segments"."""
    bounds: tuple[float, float] = ANY
    combine: Combine = mean
    """Function that combines the terms of all prompts into one number per contender."""
    chance: float | None = None
    """The value for a random order of segments; if None, it is computed from equal scores."""
    lower_is_better: bool = False
    divides: str = ""
    """Where it divides by v(N) - v(0): `EACH`, `MEAN` or nowhere."""

    @property
    def by_prompt(self) -> bool:
        """Whether the metric is a mean over prompts, which permits comparison prompt by prompt."""
        return self.combine is mean


def _sizes(metric: Callable[..., ByPrompt]) -> Callable[[Trials], Parts]:
    return lambda trials: (metric(trials.sizes, trials.shapley),)


def _values(metric: Callable[..., ByPrompt]) -> Callable[[Trials], Parts]:
    return lambda trials: (metric(trials.signed, trials.values),)


def _signs(trials: Trials) -> Parts:
    agreement = sign_agreement(trials.signed, trials.shapley)
    return (np.where(trials.has_sign[:, None], agreement, np.nan),)


def _shares(trials: Trials) -> Parts:
    if trials.compared is None:
        return (np.full(trials.sizes.shape[:-1], np.nan),) * 2
    true = share(trials.shapley, *trials.compared)
    weak = np.abs(trials.shapley[:, trials.compared]).max(-1) < LEAST_EFFECT
    ours = share(trials.sizes, *trials.compared)
    return ours, np.broadcast_to(np.where(weak, np.nan, true), ours.shape)


def _planted(trials: Trials) -> Parts:
    shares, _ = _shares(trials)
    planted = trials.planted if trials.compared else np.full_like(trials.planted, np.nan)
    return (planted_hits(np.nan_to_num(shares, nan=0.5), planted),)


def _recovered(trials: Trials) -> Parts:
    areas = recovered(trials.signed, trials.values)
    return areas, np.broadcast_to(trials.values[:, -1] - trials.values[:, 0], areas.shape)


METRICS = (
    Metric(
        "top_segment", "top segment matches Shapley values", _sizes(top_segment), _EFFECT, SHARE
    ),
    Metric("sign", "signs match Shapley values", _signs, _SIGNED, SHARE, chance=0.5),
    Metric(
        "tau", "Kendall's tau with Shapley values",
        _sizes(kendall_tau), _THREE, CORRELATION, chance=0.0,
    ),
    Metric(
        "share_rho", "Spearman correlation of shares with exact shares",
        _shares, _COMPARED, CORRELATION, rank_correlation, chance=0.0,
    ),
    Metric(
        "lds", "linear datamodeling score",
        _values(linear_datamodeling), _VALUES, CORRELATION, chance=0.0,
    ),
    Metric(
        "nc", "comprehensiveness of the top segment", _values(necessity), _DIVISOR, divides=EACH
    ),
    Metric("ns", "sufficiency of the top segment", _values(sufficiency), _DIVISOR, divides=EACH),
    Metric("cpr", "area under sufficiency", _values(circuit_performance), _DIVISOR, divides=EACH),
    Metric(
        "cpr_of_means", "area under sufficiency, ratio of means",
        _recovered, "a mean v(N) - v(0) other than zero", combine=ratio_of_means, divides=MEAN,
    ),
    Metric(
        "cmd", "area between sufficiency and 1",
        _values(circuit_distance), _DIVISOR, (0.0, np.inf), lower_is_better=True, divides=EACH,
    ),
    Metric(
        "morf_lerf", "MoRF minus LeRF", _values(morf_minus_lerf), _ORDERS, CORRELATION, chance=0.0
    ),
    Metric(
        "top_patched", "top segment matches patching",
        lambda trials: (top_segment(trials.sizes, leave_one_out(trials.values)),), _EFFECT, SHARE,
    ),
    Metric(
        "planted", "top segment is the planted one",
        _planted, "a compared segment that was trained to decide", SHARE, chance=0.5,
    ),
)  # fmt: skip
"""All metrics, in the order in which tables list them."""
