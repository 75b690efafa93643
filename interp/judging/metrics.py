"""The metrics of faithfulness, with the inputs, range and chance value of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from interp.attribution.games import leave_one_out
from interp.judging import agreement
from interp.judging.agreement import LEAST_EFFECT, ByPrompt, ratio
from interp.judging.trials import Trials, Weights

Parts = tuple[ByPrompt, ...]
Divides = Literal["each prompt", "the mean"]
Combine = Callable[..., Float[np.ndarray, " methods"]]


def mean(by_prompt: ByPrompt, *, weights: Weights) -> Float[np.ndarray, " methods"]:
    """The weighted mean over the prompts in which a metric is defined; NaN if there are none."""
    mass = weights * ~np.isnan(by_prompt)
    return ratio((mass * np.nan_to_num(by_prompt)).sum(-1), mass.sum(-1))


def ratio_of_means(
    above: ByPrompt, below: ByPrompt, *, weights: Weights
) -> Float[np.ndarray, " methods"]:
    """The ratio of two weighted means."""
    return ratio((weights * np.nan_to_num(above)).sum(-1), (weights * np.nan_to_num(below)).sum(-1))


def correlation(x: ByPrompt, y: ByPrompt, *, weights: Weights) -> Float[np.ndarray, " methods"]:
    """Spearman's correlation over prompts."""
    return agreement.rank_correlation(x, y, weights)


SHARE, CORRELATION, ANY = (0.0, 1.0), (-1.0, 1.0), (-np.inf, np.inf)
"""The smallest and the largest value that a metric can have."""

_EFFECT = f"an effect of at least {LEAST_EFFECT} logits"
_COMPARED = "two compared segments, with shares that vary over prompts"
_DIVISOR = f"|v(N) - v(0)| of at least {LEAST_EFFECT} logits"


@dataclass(frozen=True)
class Metric:
    """A metric of scores and effects."""

    name: str
    """Name in tables."""
    title: str
    parts: Callable[[Trials], Parts]
    """Function that computes each prompt's terms, from which `combine` makes one number."""
    needs: str
    """Condition for the metric to be defined, such as "three segments"."""
    combine: Combine = mean
    """Function that combines the terms of all prompts into one number per contender."""
    chance: float | None = None
    """The value for a random order of segments; if None, it is computed from equal scores."""
    lower_is_better: bool = False
    bounds: tuple[float, float] = ANY
    divides: Divides | None = None
    """The quantity divided by v(N) - v(0), if any."""

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
        "top_segment",
        "top segment matches Shapley values",
        _sizes(agreement.top_segment),
        _EFFECT,
        bounds=SHARE,
    ),
    Metric(
        "sign",
        "signs match Shapley values",
        _signs,
        f"scores with a sign, and {_EFFECT}",
        chance=0.5,
        bounds=SHARE,
    ),
    Metric(
        "tau",
        "Kendall's tau with Shapley values",
        _sizes(agreement.kendall_tau),
        "three segments whose scores and effects are not all equal",
        chance=0.0,
        bounds=CORRELATION,
    ),
    Metric(
        "share_rho",
        "Spearman correlation of shares with exact shares",
        _shares,
        _COMPARED,
        correlation,
        chance=0.0,
        bounds=CORRELATION,
    ),
    Metric(
        "lds",
        "linear datamodeling score",
        _values(agreement.linear_datamodeling),
        "scores and values v(S) that are not all equal",
        chance=0.0,
        bounds=CORRELATION,
    ),
    Metric(
        "nc",
        "comprehensiveness of the top segment",
        _values(agreement.necessity),
        _DIVISOR,
        divides="each prompt",
    ),
    Metric(
        "ns",
        "sufficiency of the top segment",
        _values(agreement.sufficiency),
        _DIVISOR,
        divides="each prompt",
    ),
    Metric(
        "cpr",
        "area under sufficiency",
        _values(agreement.circuit_performance),
        _DIVISOR,
        divides="each prompt",
    ),
    Metric(
        "cpr_of_means",
        "area under sufficiency, ratio of means",
        _recovered,
        "a mean v(N) - v(0) other than zero",
        ratio_of_means,
        divides="the mean",
    ),
    Metric(
        "cmd",
        "area between sufficiency and 1",
        _values(agreement.circuit_distance),
        _DIVISOR,
        lower_is_better=True,
        bounds=(0.0, np.inf),
        divides="each prompt",
    ),
    Metric(
        "morf_lerf",
        "MoRF minus LeRF",
        _values(agreement.morf_minus_lerf),
        f"orders of removal whose AOPCs differ by at least {LEAST_EFFECT} logits",
        chance=0.0,
        bounds=CORRELATION,
    ),
    Metric("top_patched", "top segment matches patching", _patched, _EFFECT, bounds=SHARE),
    Metric(
        "planted",
        "top segment is the planted one",
        _planted,
        "a compared segment that was trained to decide",
        chance=0.5,
        bounds=SHARE,
    ),
)
"""All metrics, in the order in which tables list them."""
