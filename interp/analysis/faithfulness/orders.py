"""Metrics that keep or remove segments one after another, the highest score first.

Where scores tie, a metric is the mean over all orders that they allow: equal scores for all
segments give the mean over all k! orders, which is what a random order is worth.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import permutations

import numpy as np
from jaxtyping import Bool, Float, Int

from interp.analysis.faithfulness.arithmetic import ratio
from interp.analysis.faithfulness.types import LEAST_EFFECT, ByPrompt, Scores, Values

Curves = Float[np.ndarray, "prompt order kept"]
"""v of the first r segments of each order, r = 0 ... k."""

ByOrder = Float[np.ndarray, "prompt order"]


def necessity(scores: Scores, values: Values) -> ByPrompt:
    """NC = [v(N) - v(N without R)] / [v(N) - v(0)] for the top segment R; 1 if all hangs on R.

    Normalised comprehensiveness (DeYoung et al. 2020), with donors in place of deletion. NaN where
    |v(N) - v(0)| is below `LEAST_EFFECT`.
    """
    return _over_orders(scores, values, lambda kept, left: _normed(left[..., 1], kept))


def sufficiency(scores: Scores, values: Values) -> ByPrompt:
    """NS = [v(R) - v(0)] / [v(N) - v(0)] for the top segment R; 1 if R alone does it all.

    Normalised sufficiency (DeYoung et al. 2020), undefined as `necessity`.
    """
    return _over_orders(scores, values, lambda kept, left: _faithfulness(kept)[..., 1])


def circuit_performance(scores: Scores, values: Values) -> ByPrompt:
    """CPR: the area under NS over the share of segments that are kept; the higher, the better.

    By trapezoids from no segment to all (Mueller et al. 2025, of circuits), undefined as
    `necessity`.
    """
    return _over_orders(scores, values, lambda kept, left: _area(_faithfulness(kept)))


def circuit_distance(scores: Scores, values: Values) -> ByPrompt:
    """CMD: the area of |1 - NS| over the share of segments that are kept; the lower, the better.

    Never negative, 0 only if no segment is needed (Mueller et al. 2025), undefined as `necessity`.
    """
    return _over_orders(scores, values, lambda kept, left: _area(np.abs(1 - _faithfulness(kept))))


def normalized_aopc(scores: Scores, values: Values) -> ByPrompt:
    """NAOPC = (AOPC - min) / (max - min) over all k! orders, from 0 to 1 (Edin et al. 2024).

    Exact, since all orders are known. NaN where orders differ by less than `LEAST_EFFECT`.
    """
    return _over_orders(scores, values, lambda kept, left: _naopc(left))


def morf_minus_lerf(scores: Scores, values: Values) -> ByPrompt:
    """NAOPC with the most relevant first minus that with the least relevant first, from -1 to 1.

    0 for a random order; undefined as `normalized_aopc`.
    """
    return np.asarray(normalized_aopc(scores, values) - normalized_aopc(-scores, values))


def recovered(scores: Scores, values: Values) -> ByPrompt:
    """Area under v(R) - v(0) over the share of segments kept, in logits: the numerator of CPR.

    Its mean over prompts, over that of v(N) - v(0), is CPR as a ratio of means, on which no prompt
    of a small difference decides.
    """
    return _over_orders(scores, values, lambda kept, left: _area(kept - kept[..., :1]))


def _over_orders(
    scores: Scores, values: Values, metric: Callable[[Curves, Curves], ByOrder]
) -> ByPrompt:
    """The mean of a metric over the orders that the scores allow.

    `metric` is given v of what is kept, and v(N) minus v of what is left when it is removed.
    """
    segments = scores.shape[-1]
    orders, coalitions = _orders(segments)
    kept = values[:, coalitions]
    left = values[:, [[-1]]] - values[:, coalitions[0, -1] ^ coalitions]
    allowed = _allowed(scores, orders)
    by_order = metric(kept, left)
    undefined = np.isnan(by_order).any(-1)
    means = ratio((allowed * np.nan_to_num(by_order)).sum(-1), allowed.sum(-1))
    return np.where(undefined, np.nan, means)


def _allowed(
    scores: Scores, orders: Int[np.ndarray, "order segment"]
) -> Bool[np.ndarray, "*methods prompt order"]:
    """Whether scores never rise along an order."""
    along = scores[..., orders]
    return np.asarray((along[..., :-1] >= along[..., 1:]).all(-1))


@lru_cache(maxsize=8)
def _orders(
    segments: int,
) -> tuple[Int[np.ndarray, "order segment"], Int[np.ndarray, "order kept"]]:
    """All orders of so many segments, and the coalition of the first r segments of each."""
    orders = np.array(list(permutations(range(segments))), dtype=np.int64)
    coalitions = np.concatenate(
        [np.zeros((len(orders), 1), dtype=np.int64), np.cumsum(1 << orders, axis=1)], axis=1
    )
    return orders, coalitions


def _faithfulness(kept: Curves) -> Curves:
    """NS of the first r segments."""
    return _normed(kept - kept[..., :1], kept)


def _normed(effects: np.ndarray, kept: Curves) -> np.ndarray:
    """Effects over v(N) - v(0); NaN where that is next to nothing."""
    whole = kept[..., -1] - kept[..., 0]
    whole = np.where(np.abs(whole) < LEAST_EFFECT, np.nan, whole)
    return np.asarray(effects / (whole[..., None] if effects.ndim > whole.ndim else whole))


def _area(curves: Curves) -> ByOrder:
    """The area under curves over r / k, by trapezoids."""
    return np.asarray(np.trapezoid(curves, axis=-1) / (curves.shape[-1] - 1))


def _aopc(left: Curves) -> ByOrder:
    """AOPC = mean over j = 1 ... k of v(N) - v(N without the top j), in logits.

    The area over the perturbation curve of Samek et al. 2017, with donors as the perturbation.
    """
    return np.asarray(left[..., 1:].mean(-1))


def _naopc(left: Curves) -> ByOrder:
    areas = _aopc(left)
    low, high = areas.min(-1, keepdims=True), areas.max(-1, keepdims=True)
    spread = np.where(high - low < LEAST_EFFECT, np.nan, high - low)
    return np.asarray((areas - low) / spread)
