"""Ranking of methods: metrics with intervals, differences, and which metrics can be used.

The best method is chosen on the prompts on which it is judged, so intervals and tests hold
simultaneously for all methods (`together`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from interp.choices import ORACLE, RANDOM, REVERSED
from interp.judging import together
from interp.judging.metrics import EACH, LEAST_EFFECT, MEAN, METRICS, Metric, Parts
from interp.judging.trials import CONTROL, Contender, Trials, Weights, declared
from interp.statistics.clusters import FEWEST, too_few
from interp.statistics.decisions import SIGNIFICANT
from interp.statistics.means import cluster_mean
from interp.statistics.resampling import bootstrap_counts

RESAMPLES = 999
"""Number of bootstrap draws of clusters, for metrics other than means of bounded values."""

NEXT_TO_NOTHING = 0.1
"""Below this share of the absolute effects, a divisor is too small, and ratios may be arbitrarily
large."""

MODEL, COALITIONS = "model", "coalitions"
"""Two leagues: methods that use only the model, and methods computed from v(S), like the ground
truth."""

VOID = "void: the oracle is not above the reversed oracle"
"""The problem of a metric whose values do not tell the best order from the worst."""

Values = Float[np.ndarray, " contenders"]


@dataclass(frozen=True)
class MetricValues:
    """The values of one metric for all contenders on one model."""

    metric: Metric
    contenders: tuple[Contender, ...]
    values: Values
    low: Values
    """Lower ends of simultaneous 95% intervals; NaN if there are too few clusters, and for controls
    with known values."""
    high: Values
    by_prompt: Float[np.ndarray, "contenders prompt"] | None
    """Values per prompt; None unless the metric is a mean over prompts."""
    clusters: tuple[str, ...]
    """The cluster of each prompt."""
    weights: Weights
    defined: Bool[np.ndarray, " prompt"]
    """For each prompt, whether the metric is defined for at least one contender."""
    divisor_problem: str = ""
    """The reason why the metric's divisor is too close to zero; empty if it is not."""

    @property
    def sign(self) -> int:
        """The sign of values of which higher is better."""
        return -1 if self.metric.lower_is_better else 1

    @property
    def gains(self) -> Values:
        """The values, signed so that higher is better."""
        return self.sign * self.values

    def of(self, control: str) -> float:
        """The value of a control."""
        return float(self.values[self.contenders.index(Contender(control, CONTROL))])

    @property
    def methods(self) -> list[int]:
        """The indices of the methods with a defined value."""
        finite = np.flatnonzero(np.isfinite(self.values)).tolist()
        return [place for place in finite if self.contenders[place].score != CONTROL]

    @property
    def known(self) -> list[int]:
        """Those of `methods` that are no other tool's; their values tell whether metrics work."""
        return [place for place in self.methods if declared(self.contenders[place].method)]

    @property
    def void(self) -> bool:
        """Whether it ranks the oracle no higher than its reverse."""
        return self.sign * self.of(ORACLE) <= self.sign * self.of(REVERSED) + 1e-9

    def problem(self) -> str:
        """The reason why the metric is not used for advice; empty if it is used."""
        gains, methods = self.gains, self.known
        controls = (ORACLE, REVERSED, RANDOM)
        oracle, reversed_, random = (self.sign * self.of(name) for name in controls)
        if not methods or not np.isfinite([oracle, random]).all():
            return f"undefined: needs {self.metric.needs}"
        if self.divisor_problem or self.void:
            return "; ".join(filter(None, [VOID * self.void, self.divisor_problem]))
        best = max(methods, key=lambda place: gains[place])
        if gains[best] > oracle + 1e-9:
            return f"{self.contenders[best].method} is above the oracle"
        if np.median(gains[methods]) <= random:
            return "the median method is not above a random order"
        if reversed_ >= random:
            return "the reversed oracle is not below a random order"
        return ""


def judge(trials: Sequence[Trials], metrics: Sequence[Metric] = METRICS) -> list[MetricValues]:
    """The metrics of every contender, from the trials of one model."""
    clusters = tuple(name for group in trials for name in group.clusters)
    weights = np.concatenate([group.weights for group in trials])
    problems = _divisor_problems(trials, clusters, weights)
    contenders = trials[0].contenders
    # The values of these controls follow from the measured effects.
    controls = [Contender(name, CONTROL) for name in (ORACLE, REVERSED, RANDOM)]
    testable = np.array([contender not in controls for contender in contenders])
    judgements = []
    for metric in metrics:
        by_trials = zip(*map(metric.parts, trials), strict=True)
        parts = tuple(np.concatenate(part, axis=1) for part in by_trials)
        values = np.array(metric.combine(*parts, weights=weights), dtype=float)
        if metric.chance is not None and np.isfinite(values).any():
            values[contenders.index(Contender(RANDOM, CONTROL))] = metric.chance
        low, high = np.full((2, len(values)), np.nan)
        tested = testable & np.isfinite(values)
        if tested.any():
            ends = _intervals(metric, tuple(part[tested] for part in parts), clusters, weights)
            # Rounding may push an end of the interval past the value.
            low[tested] = np.minimum(ends[0], values[tested])
            high[tested] = np.maximum(ends[1], values[tested])
        defined = np.logical_and.reduce([~np.isnan(part) for part in parts]).any(0)
        ours = metric, contenders, values, low, high, parts[0] if metric.by_prompt else None
        problem = problems.get(metric.divides, "")
        judgements.append(MetricValues(*ours, clusters, weights, defined, problem))
    return judgements


def _divisor_problems(
    trials: Sequence[Trials], clusters: Sequence[str], weights: Weights
) -> dict[str, str]:
    """The reasons why v(N) - v(0) is too small a divisor, in individual prompts and on average."""
    divisors = np.concatenate([group.values[:, -1] - group.values[:, 0] for group in trials])
    effects = np.concatenate([np.abs(group.shapley).sum(-1) for group in trials])
    tiny = (np.abs(divisors) < NEXT_TO_NOTHING * effects) & (np.abs(divisors) >= LEAST_EFFECT)
    rows = pd.DataFrame({"value": divisors, "cluster": list(clusters), "weight": weights})
    mean = cluster_mean(rows, value="value", cluster="cluster", weight="weight")
    problems, mean_text = {}, f"v(N) - v(0) is {mean.mean:.2f}"
    if tiny.any():
        problems[EACH] = (
            f"v(N) - v(0) is below a tenth of the sum of absolute effects in {tiny.sum()} of "
            f"{len(tiny)} prompts"
        )
    if abs(mean.mean) < NEXT_TO_NOTHING * np.average(effects, weights=weights):
        problems[MEAN] = f"{mean_text} on average, which is almost zero"
    elif mean.low <= 0 <= mean.high:
        ends = f"[{mean.low:.2f}, {mean.high:.2f}]"
        problems[MEAN] = f"{mean_text} {ends} on average, which may be zero"
    return problems


def metric_table(judgements: Sequence[MetricValues]) -> pd.DataFrame:
    """One row per metric and contender.

    Columns are metric, method, score ("sum" or "mean" over a segment's tokens, or "control"),
    value, low, high (95%, simultaneous for all contenders), chance (the value of a random order),
    prompts (the number of prompts in which the metric is defined), clusters (of these prompts), and
    void (whether the metric ranks the oracle no higher than its reverse).
    """
    parts = []
    for judged in judgements:
        rows = pd.DataFrame(judged.contenders).assign(
            value=judged.values,
            low=judged.low,
            high=judged.high,
            chance=judged.of(RANDOM),
            prompts=int(judged.defined.sum()),
            clusters=len(set(compress(judged.clusters, judged.defined))),
            void=judged.void,
        )
        rows.insert(0, "metric", judged.metric.name)
        parts.append(rows)
    return pd.concat(parts, ignore_index=True)


def check_table(judgements: Sequence[MetricValues]) -> pd.DataFrame:
    """One row per metric: whether it ranks the known controls correctly.

    Columns are metric, title, oracle, best_method, middle_method, random, reversed, divisor
    (whether its divisor is far enough from zero), void, used, problem.
    """
    rows = []
    for judged in judgements:
        gains, problem = judged.gains[judged.known], judged.problem()
        row = {
            "metric": judged.metric.name,
            "title": judged.metric.title,
            "oracle": judged.of(ORACLE),
            "best_method": judged.sign * gains.max() if len(gains) else np.nan,
            "middle_method": judged.sign * np.median(gains) if len(gains) else np.nan,
            "random": judged.of(RANDOM),
            "reversed": judged.of(REVERSED),
            "divisor": not judged.divisor_problem,
            "void": judged.void,
        }
        rows.append({**row, "used": not problem, "problem": problem})
    return pd.DataFrame(rows)


def difference_table(judgements: Sequence[MetricValues]) -> pd.DataFrame:
    """The best method of each league compared with its other methods, on the same prompts.

    One row per metric, league ("model" or "coalitions") and method: metric, league, methods (of the
    league), best, best_score, corrected (the best value, corrected for selection), method, score;
    difference (best minus method, positive if the best is better), low, high (95%, simultaneous for
    all pairs of the league); p (for the hypothesis that no method of the league is better,
    corrected for all pairs); may_be_best (missing where methods are not compared); note. Only means
    over prompts are tested.
    """
    parts = []
    for judged in judgements:
        leagues = {place: league_of(judged.contenders[place].method) for place in judged.methods}
        for league in (MODEL, COALITIONS):
            places = [place for place, its_league in leagues.items() if its_league == league]
            if len(places) > 1:
                parts.append(_against_best(judged, league, places))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def league_of(method: str) -> str:
    """The league of a method; scores of other tools are ranked with those of the model."""
    registered = declared(method)
    return COALITIONS if registered is not None and registered.reads_coalitions else MODEL


def _against_best(judged: MetricValues, league: str, places: list[int]) -> pd.DataFrame:
    gains, contenders = judged.gains[places], [judged.contenders[place] for place in places]
    best, note = int(np.argmax(gains)), _untested(judged, places)
    tested = dict.fromkeys(("corrected", "low", "high", "p"), np.nan)
    table = pd.DataFrame(contenders).assign(
        metric=judged.metric.name,
        league=league,
        methods=len(places),
        best=contenders[best].method,
        best_score=contenders[best].score,
        difference=gains[best] - gains,
        note=note,
        **(tested if note else _tested(judged, places, best)),
    )
    table["may_be_best"] = (table["p"] > SIGNIFICANT).astype("boolean").mask(table["p"].isna())
    named = ["metric", "league", "methods", "best", "best_score", "corrected", "method", "score"]
    return table[[*named, "difference", "low", "high", "p", "may_be_best", "note"]]


def _untested(judged: MetricValues, places: list[int]) -> str:
    """The reason why methods are not compared; empty if they are."""
    if judged.void:
        return VOID
    if judged.by_prompt is None:
        return "not tested: the metric is not a mean over prompts"
    if not np.isfinite(judged.metric.bounds).all():
        return "not tested: the metric is unbounded"
    number = _grouped(judged.by_prompt[places], judged.clusters).shape[1]
    return too_few(number) if number < FEWEST else ""


def _tested(judged: MetricValues, places: list[int], best: int) -> dict[str, object]:
    assert judged.by_prompt is not None
    gains, weights = judged.sign * judged.by_prompt[places], judged.weights
    group = _grouped(gains, judged.clusters)
    least, most = judged.metric.bounds
    ahead = _sums(gains[None] - gains[:, None], weights, group)
    p, (low, high) = together.compared(*ahead, best, most=most - least)
    sums, mass = _sums(gains, weights, group)
    corrected = sums[best].sum() / mass[best].sum() - together.optimism(sums, mass)
    ends = {"low": low, "high": high, "p": p}
    return {"corrected": float(np.clip(judged.sign * corrected, least, most)), **ends}


def _sums(
    values: np.ndarray, weights: Weights, group: Float[np.ndarray, "prompt clusters"]
) -> tuple[np.ndarray, np.ndarray]:
    """The weighted sums over each cluster's prompts, and the sums of the weights."""
    return np.nan_to_num(values * weights) @ group, (~np.isnan(values) * weights) @ group


def _grouped(
    by_prompt: Float[np.ndarray, "contenders prompt"], clusters: Sequence[str]
) -> Float[np.ndarray, "prompt clusters"]:
    """1 if a prompt belongs to a cluster, otherwise 0, for clusters with a defined value."""
    names = np.array(clusters, dtype=str)
    with_value = np.unique(names[~np.isnan(by_prompt).all(0)])
    return np.asarray(names[:, None] == with_value, dtype=float)


def _intervals(
    metric: Metric, parts: Parts, clusters: Sequence[str], weights: Weights
) -> tuple[Values, Values]:
    values = metric.combine(*parts, weights=weights)
    group = _grouped(np.concatenate(parts), clusters)
    least, most = metric.bounds
    if group.shape[1] < FEWEST:
        return np.full_like(values, np.nan), np.full_like(values, np.nan)
    if metric.by_prompt and np.isfinite(metric.bounds).all():
        shares = (parts[0] - least) / (most - least)
        low, high = together.share_intervals(*_sums(shares, weights, group))
        return least + (most - least) * low, least + (most - least) * high
    resamples = bootstrap_counts(group.shape[1], RESAMPLES)
    drawn = [metric.combine(*parts, weights=weights * (group @ counts)) for counts in resamples]
    low, high = together.normal_intervals(values, np.stack(drawn), group.shape[1])
    return np.maximum(low, least), np.minimum(high, most)
