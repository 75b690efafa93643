"""How well a model distinguishes the two sides of a pair, regardless of any bias to one answer.

Paired accuracy depends both on how far apart a model sees the sides and on where it draws the line
between them. These measures separate the two.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import expit, logit, ndtri, stdtrit

from interp.statistics.clusters import FEWEST, NAN, RESAMPLES, standard_error, too_few
from interp.statistics.means import NO_TRIALS, ClusterMean, signs_agree
from interp.statistics.proportions import share_drawn
from interp.statistics.resampling import ROUNDING, bootstrap_sums
from interp.statistics.summaries import UPPER, grouped, percentile_interval


@dataclass(frozen=True)
class Discrimination:
    """How distinct positive and negative prompts are; undefined values are NaN, with a note."""

    auroc: float = NAN
    """The probability that a positive prompt has a higher score than a negative one (`auroc`)."""
    auroc_low: float = NAN
    """Lower end of its 95% interval."""
    auroc_high: float = NAN
    d_prime: float = NAN
    """z(yes on positive) - z(yes on negative): sensitivity, in standard deviations (Green and
    Swets, 1966)."""
    d_prime_low: float = NAN
    """Lower end of its 95% interval: percentile bootstrap over clusters."""
    d_prime_high: float = NAN
    bias: float = NAN
    """c = -(z(yes on positive) + z(yes on negative)) / 2: values above 0 are a bias towards No, and
    values below 0 a bias towards Yes (Macmillan and Creelman, 2005)."""
    bias_low: float = NAN
    bias_high: float = NAN
    yes_positive: float = NAN
    """Weighted share of positive prompts that are answered Yes."""
    yes_negative: float = NAN
    chance_yes_rate: float = NAN
    """Paired accuracy of a model that answers Yes equally often but regardless of the side: y (1 -
    y), at most 1/4, with y the mean of the two shares (chance agreement; Cohen, 1960).
    """
    independent_sides: float = NAN
    """Paired accuracy if answers to both sides were independent: yes_positive (1 - yes_negative),
    the product of the two sides' rates (Cohen, 1960)."""
    clusters: int = 0
    note: str = ""


def discrimination(
    trials: pd.DataFrame, *, score: str, yes: str, positive: str, cluster: str, weight: str
) -> Discrimination:
    """Measure how well a score and the answers distinguish positive from negative prompts.

    Before z is taken, shares are corrected by the log-linear rule, (hits + 0.5) / (n + 1), so d' is
    finite (Hautus, 1995, Behavior Research Methods 27). Hits are the weighted share times n. `yes`
    and `positive` are boolean columns: whether the answer was Yes, and whether Yes is correct.
    """
    clusters = int(trials[cluster].nunique())
    is_positive = trials[positive].to_numpy(dtype=bool)
    if is_positive.all() or not is_positive.any():
        side = "negative" if is_positive.any() else "positive"
        return Discrimination(clusters=clusters, note=f"undefined: no {side} prompts")
    area = auroc(trials, score=score, positive=positive, cluster=cluster, weight=weight)
    sums = _sums(trials, yes, is_positive, cluster, weight)
    d_prime, bias, negative_rate, positive_rate = _signal(sums.sum(axis=0)[None, :])[0].tolist()
    ends = [(NAN, NAN)] * 2
    if clusters >= FEWEST:
        resampled = _signal(bootstrap_sums(sums, resamples=RESAMPLES))
        ends = [percentile_interval(column) for column in resampled[:, :2].T]
    rate = (negative_rate + positive_rate) / 2
    return Discrimination(
        auroc=area.area,
        auroc_low=area.low,
        auroc_high=area.high,
        d_prime=d_prime,
        d_prime_low=ends[0][0],
        d_prime_high=ends[0][1],
        bias=bias,
        bias_low=ends[1][0],
        bias_high=ends[1][1],
        yes_positive=positive_rate,
        yes_negative=negative_rate,
        chance_yes_rate=rate * (1 - rate),
        independent_sides=positive_rate * (1 - negative_rate),
        clusters=clusters,
        note=area.note,
    )


def concordance(score_positive: pd.Series, score_negative: pd.Series) -> pd.Series:
    """For each pair, 1 if its positive side scores higher, 0 if its negative side does, else 1/2.

    The mean is the probability of ordering a pair correctly; NaN if a score is missing.
    """
    difference = score_positive.astype(float) - score_negative.astype(float)
    ordered = (difference > 0) + (difference == 0) / 2
    return ordered.where(difference.notna())


def mean_concordance(
    pairs: pd.DataFrame,
    *,
    value: str,
    cluster: str,
    weight: str,
    bounds: tuple[float, float] = (0.0, 1.0),
    against: float = 0.5,
) -> ClusterMean:
    """The weighted mean of `concordance` over pairs, with its interval and its test.

    The interval is that of a share over clusters (`interp.statistics.proportions`), widened over
    the shares that random signs of clusters do not reject, and p the larger of both tests, so that
    p is at most 0.05 if and only if the interval excludes `against`. Missing values are omitted.
    With fewer than `FEWEST` clusters, nothing is tested. Any other mean of values within `bounds`,
    such as that of differences between 0 and 1 or of correct answers, can be tested so.
    """
    pairs, (least, most) = pairs.dropna(subset=[value]), bounds
    if pairs.empty:
        return ClusterMean(NAN, note=NO_TRIALS)
    weights, size = pairs[weight].astype(float), most - least
    shares = (pairs[value].astype(float) - least) / size
    parts = pd.DataFrame({"hits": shares * weights, "trials": weights})
    hits, trials = parts.groupby(pairs[cluster].to_numpy()).sum().to_numpy().T
    drawn, tested = share_drawn(hits, trials), (against - least) / size
    mean = ClusterMean(
        least + size * drawn.value, trials=len(pairs), clusters=(clusters := len(hits))
    )
    if clusters < 2:
        return replace(mean, note=too_few(clusters))
    note, (low, high), p = too_few(clusters), drawn.ends(), NAN
    if clusters >= FEWEST:
        ends, note = (low, high), ""
        low, high, p = signs_agree(hits, trials, ends=ends, p=drawn.p(tested), against=tested)
    return replace(mean, low=least + size * low, high=least + size * high, p=p, note=note)


class Area(NamedTuple):
    """An area under the receiver operating characteristic, with its 95% interval."""

    area: float = NAN
    low: float = NAN
    high: float = NAN
    clusters: int = 0
    note: str = "undefined: no trials of both kinds to compare"
    """Why the area or its interval is undefined; otherwise empty."""
    deviations: pd.Series = pd.Series(dtype=float)
    """Each cluster's deviation from the area; they sum to 0."""


def auroc(
    trials: pd.DataFrame,
    *,
    score: str,
    positive: str,
    cluster: str,
    weight: str,
    within: Sequence[str] = (),
) -> Area:
    """The probability that a positive trial has a higher score than a negative one.

    Ties count half (Hanley and McNeil, 1982). The interval is computed on the logit scale with
    Obuchowski's variance for clustered data (1997, Biometrics 53). If trials are compared only
    `within` strata, such as phrasings, the area is the mean of the strata's areas, weighted by the
    weights of their trials; a stratum with trials of one kind only is left out.
    """
    strata = [rows for _, rows in grouped(trials, within) if rows[positive].nunique() > 1]
    if not strata:
        return Area()
    total = float(sum(rows[weight].sum() for rows in strata))
    area, parts = 0.0, []
    for rows in strata:
        is_positive = rows[positive].to_numpy(dtype=bool)
        won, weights = _won(rows, score, is_positive, weight)
        share = float(rows[weight].sum()) / total
        area += share * float(weights[is_positive] @ won[is_positive])
        columns = {"won": won, "weight": share * weights, "cluster": rows[cluster].to_numpy()}
        parts.append(pd.DataFrame(columns))
    compared = pd.concat(parts, ignore_index=True)
    # Deviations from the whole area, since a stratum of one pair never deviates from its own.
    compared["own"] = (compared["won"] - area) * compared["weight"]
    deviations = compared["own"].groupby(compared["cluster"].to_numpy()).sum()
    ends, note = (NAN, NAN), ""
    if len(deviations) < FEWEST:
        note = too_few(len(deviations))
    elif np.ptp(compared["won"]) < ROUNDING:
        area = round(area, 12)
        note = "AUROC's interval undefined: the sides are all alike, or perfectly separated"
    else:
        error = standard_error(deviations.to_numpy(), 1.0) / (area * (1 - area))
        half = float(stdtrit(len(deviations) - 1, UPPER)) * error
        ends = float(expit(logit(area) - half)), float(expit(logit(area) + half))
    return Area(area, *ends, len(deviations), note, deviations)


def _won(
    trials: pd.DataFrame, score: str, is_positive: np.ndarray, weight: str
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Each trial's share of won comparisons, and its weight; weights sum to 1 on each side."""
    values, weights = (trials[name].to_numpy(dtype=float) for name in (score, weight))
    weights = np.where(is_positive, weights / weights[is_positive].sum(), weights)
    weights = np.where(~is_positive, weights / weights[~is_positive].sum(), weights)
    won = np.empty(len(values))
    won[is_positive] = _below(values[is_positive], values[~is_positive], weights[~is_positive])
    won[~is_positive] = 1 - _below(values[~is_positive], values[is_positive], weights[is_positive])
    return won, weights


def _below(
    values: Float[np.ndarray, " n"],
    others: Float[np.ndarray, " m"],
    weights: Float[np.ndarray, " m"],
) -> Float[np.ndarray, " n"]:
    """For each value, the weight of the other values below it, plus half the weight of its ties."""
    order = np.argsort(others)
    heights = np.concatenate([[0.0], np.cumsum(weights[order])])
    below, up_to = (
        heights[np.searchsorted(others[order], values, side)] for side in ("left", "right")
    )
    return np.asarray((below + up_to) / 2)


def _sums(
    trials: pd.DataFrame, yes: str, is_positive: np.ndarray, cluster: str, weight: str
) -> Float[np.ndarray, "clusters 6"]:
    """By cluster: the weight of Yes, total weight and number of negative and positive prompts."""
    weights, said = (trials[name].to_numpy(dtype=float) for name in (weight, yes))
    sides = np.column_stack([~is_positive, is_positive]).astype(float)
    columns = np.column_stack([(said * weights)[:, None] * sides, weights[:, None] * sides, sides])
    return pd.DataFrame(columns).groupby(trials[cluster].to_numpy()).sum().to_numpy()


def _signal(sums: Float[np.ndarray, "resamples 6"]) -> Float[np.ndarray, "resamples 4"]:
    """d', c, and the shares of Yes on negative and positive prompts, from sums over clusters."""
    rates, prompts = sums[:, :2] / sums[:, 2:4], sums[:, 4:]
    negative, positive = ndtri((rates * prompts + 0.5) / (prompts + 1)).T
    return np.column_stack([positive - negative, -(positive + negative) / 2, rates])
