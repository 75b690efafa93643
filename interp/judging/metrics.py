"""The metrics of faithfulness, with the inputs, range and chance value of each."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from interp.attribution.games import leave_one_out
from interp.judging import agreement
from interp.judging.agreement import LEAST_EFFECT, ByPrompt, ratio
from interp.judging.trials import Trials, Weights

Parts = tuple[ByPrompt, ...]
Combine = Callable[..., Float[np.ndarray, " methods"]]

EACH, MEAN = "each prompt", "the mean"
"""Where a metric divides by v(N) - v(0): in each prompt, or once, by its mean."""


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
    found = agreement.sign_agreement(trials.signed, trials.shapley)
    return (np.where(trials.has_sign[:, None], found, np.nan),)


def _patched(trials: Trials) -> Parts:
    return (agreement.top_segment(trials.sizes, leave_one_out(trials.values)),)


def _shares(trials: Trials) -> Parts:
    if trials.compared is None:
        undefined = np.full(trials.sizes.shape[:-1], np.nan)
        return undefined, undefined
    true = agreement.share(trials.shapley, *trials.compared)
    weak = np.abs(trials.shapley[:, trials.compared]).max(-1) < LEAST_EFFECT
    ours = agreement.share(trials.sizes, *trials.compared)
    return ours, np.broadcast_to(np.where(weak, np.nan, true), ours.shape)


def _planted(trials: Trials) -> Parts:
    shares, _ = _shares(trials)
    planted = trials.planted if trials.compared else np.full_like(trials.planted, np.nan)
    return (agreement.planted_hits(np.nan_to_num(shares, nan=0.5), planted),)


def _recovered(trials: Trials) -> Parts:
    found = agreement.recovered(trials.signed, trials.values)
    return found, np.broadcast_to(trials.values[:, -1] - trials.values[:, 0], found.shape)


METRICS = (
    Metric(
        "top_segment", "top segment matches Shapley values",
        _sizes(agreement.top_segment), _EFFECT, SHARE,
    ),
    Metric("sign", "signs match Shapley values", _signs, _SIGNED, SHARE, chance=0.5),
    Metric(
        "tau", "Kendall's tau with Shapley values",
        _sizes(agreement.kendall_tau), _THREE, CORRELATION, chance=0.0,
    ),
    Metric(
        "share_rho", "Spearman correlation of shares with exact shares",
        _shares, _COMPARED, CORRELATION, agreement.rank_correlation, chance=0.0,
    ),
    Metric(
        "lds", "linear datamodeling score",
        _values(agreement.linear_datamodeling), _VALUES, CORRELATION, chance=0.0,
    ),
    Metric(
        "nc", "comprehensiveness of the top segment",
        _values(agreement.necessity), _DIVISOR, divides=EACH,
    ),
    Metric(
        "ns", "sufficiency of the top segment",
        _values(agreement.sufficiency), _DIVISOR, divides=EACH,
    ),
    Metric(
        "cpr", "area under sufficiency",
        _values(agreement.circuit_performance), _DIVISOR, divides=EACH,
    ),
    Metric(
        "cpr_of_means", "area under sufficiency, ratio of means",
        _recovered, "a mean v(N) - v(0) other than zero", combine=ratio_of_means, divides=MEAN,
    ),
    Metric(
        "cmd", "area between sufficiency and 1",
        _values(agreement.circuit_distance), _DIVISOR, (0.0, np.inf),
        lower_is_better=True, divides=EACH,
    ),
    Metric(
        "morf_lerf", "MoRF minus LeRF",
        _values(agreement.morf_minus_lerf), _ORDERS, CORRELATION, chance=0.0,
    ),
    Metric("top_patched", "top segment matches patching", _patched, _EFFECT, SHARE),
    Metric(
        "planted", "top segment is the planted one",
        _planted, "a compared segment that was trained to decide", SHARE, chance=0.5,
    ),
)  # fmt: skip
"""All metrics, in the order in which tables list them."""
