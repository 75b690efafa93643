"""The metrics of faithfulness: the inputs of each, its range, and its value by chance."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import Float

from interp.faithfulness import agreement
from interp.faithfulness.agreement import LEAST_EFFECT, ByPrompt, ratio
from interp.faithfulness.trials import Judged, Weights

Parts = tuple[ByPrompt, ...]
Divides = Literal["each prompt", "the mean"]
Combine = Callable[..., Float[np.ndarray, " methods"]]


def mean(by_prompt: ByPrompt, *, weights: Weights) -> Float[np.ndarray, " methods"]:
    """The weighted mean over the prompts where a metric is defined; NaN if there are none."""
    mass = weights * ~np.isnan(by_prompt)
    return ratio((mass * np.nan_to_num(by_prompt)).sum(-1), mass.sum(-1))


def ratio_of_means(
    above: ByPrompt, below: ByPrompt, *, weights: Weights
) -> Float[np.ndarray, " methods"]:
    """The weighted mean of one over that of another."""
    return ratio((weights * np.nan_to_num(above)).sum(-1), (weights * np.nan_to_num(below)).sum(-1))


def correlation(x: ByPrompt, y: ByPrompt, *, weights: Weights) -> Float[np.ndarray, " methods"]:
    """Spearman's correlation over prompts."""
    return agreement.rank_correlation(x, y, weights)


SHARE, CORRELATION, ANY = (0.0, 1.0), (-1.0, 1.0), (-np.inf, np.inf)
"""Bounds of metrics."""


@dataclass(frozen=True)
class Metric:
    """One metric of scores and effects."""

    name: str
    """Name in tables."""
    title: str
    parts: Callable[[Judged], Parts]
    """Computes the parts for each prompt."""
    combine: Combine = mean
    """Combines the parts of all prompts into one number."""
    chance: float | None = None
    """The value of a random order; if None, the value of equal scores for all segments."""
    lower_is_better: bool = False
    bounds: tuple[float, float] = ANY
    divides: Divides | None = None
    """The quantity divided by v(N) - v(0), if any."""

    @property
    def by_prompt(self) -> bool:
        """Whether it is a mean over prompts, so prompts can be compared one by one."""
        return self.combine is mean


def _of_sizes(metric: Callable[..., ByPrompt], judged: Judged) -> Parts:
    return (metric(judged.sizes, judged.shapley),)


def _of_values(metric: Callable[..., ByPrompt], judged: Judged) -> Parts:
    return (metric(judged.signed, judged.values),)


def _signs(judged: Judged) -> Parts:
    found = agreement.sign_agreement(judged.signed, judged.shapley)
    return (np.where(judged.has_sign[:, None], found, np.nan),)


def _patched(judged: Judged) -> Parts:
    return (agreement.top_segment(judged.sizes, judged.left_out),)


def _undefined(judged: Judged) -> ByPrompt:
    return np.full(judged.sizes.shape[:-1], np.nan)


def _shares(judged: Judged) -> Parts:
    if judged.compared is None:
        return (_undefined(judged), _undefined(judged))
    true = agreement.share(judged.shapley, *judged.compared)
    weak = np.abs(judged.shapley[:, judged.compared]).max(-1) < LEAST_EFFECT
    ours = agreement.share(judged.sizes, *judged.compared)
    return ours, np.broadcast_to(np.where(weak, np.nan, true), ours.shape)


def _planted(judged: Judged) -> Parts:
    if judged.compared is None:
        return (_undefined(judged),)
    shares = agreement.share(judged.sizes, *judged.compared)
    return (agreement.planted_hits(np.nan_to_num(shares, nan=0.5), judged.planted),)


def _recovered(judged: Judged) -> Parts:
    found = agreement.recovered(judged.signed, judged.values)
    return found, np.broadcast_to(judged.values[:, -1] - judged.values[:, 0], found.shape)


METRICS = (
    Metric(
        "top_segment",
        "top segment is that of Shapley",
        partial(_of_sizes, agreement.top_segment),
        bounds=SHARE,
    ),
    Metric("sign", "signs are those of Shapley", _signs, chance=0.5, bounds=SHARE),
    Metric(
        "tau",
        "Kendall's tau with Shapley",
        partial(_of_sizes, agreement.kendall_tau),
        chance=0.0,
        bounds=CORRELATION,
    ),
    Metric(
        "share_rho",
        "Spearman of shares with Shapley",
        _shares,
        correlation,
        chance=0.0,
        bounds=CORRELATION,
    ),
    Metric(
        "lds",
        "linear datamodeling score",
        partial(_of_values, agreement.linear_datamodeling),
        chance=0.0,
        bounds=CORRELATION,
    ),
    Metric(
        "nc",
        "comprehensiveness of the top segment",
        partial(_of_values, agreement.necessity),
        divides="each prompt",
    ),
    Metric(
        "ns",
        "sufficiency of the top segment",
        partial(_of_values, agreement.sufficiency),
        divides="each prompt",
    ),
    Metric(
        "cpr",
        "area under sufficiency",
        partial(_of_values, agreement.circuit_performance),
        divides="each prompt",
    ),
    Metric(
        "cpr_of_means",
        "area under sufficiency, ratio of means",
        _recovered,
        ratio_of_means,
        divides="the mean",
    ),
    Metric(
        "cmd",
        "distance of sufficiency from 1",
        partial(_of_values, agreement.circuit_distance),
        lower_is_better=True,
        bounds=(0.0, np.inf),
        divides="each prompt",
    ),
    Metric(
        "morf_lerf",
        "MoRF minus LeRF",
        partial(_of_values, agreement.morf_minus_lerf),
        chance=0.0,
        bounds=CORRELATION,
    ),
    Metric("top_patched", "top segment is that of patching", _patched, bounds=SHARE),
    Metric("planted", "top premise is the planted one", _planted, chance=0.5, bounds=SHARE),
)
"""In the order of tables."""
