"""Which methods are faithful: metrics with intervals, differences, and which metrics can be used.

Intervals are normal, with the standard deviation over draws of a bootstrap in which what prompts
are about and what donors are about are drawn at once, each as a whole (the pigeonhole bootstrap of
Owen 2007, Ann. Appl. Stat. 1): a prompt counts by how often its cluster was drawn, and v is the
mean over donors, each counting by how often it was drawn. Scores stay as they are. Owen's variance
is, if anything, too large. Percentiles of the draws would not do: donors drawn twice make the truth
of a draw noisier, so that draws lie below the value.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.analysis.clusters import FEWEST, cluster_mean, too_few
from interp.analysis.corrections import holm
from interp.analysis.faithfulness import controls
from interp.analysis.faithfulness.metrics import ANY, METRICS, Metric
from interp.analysis.faithfulness.trials import CONTROL, Contender, Trials, Weights
from interp.analysis.intervals import Z
from interp.attribution.registry import find_method
from interp.choices import ORACLE, RANDOM, REVERSED

RESAMPLES = 999
"""Draws of the bootstrap."""

ALIKE = 0.05
"""A difference whose corrected p-value is above this may be none: the two tie."""

MODEL, COALITIONS = "model", "coalitions"
"""Two rankings: methods that read the model, and those computed from the same v(S) as the truth."""

Values = Float[np.ndarray, " contenders"]
Draws = Float[np.ndarray, "draws contenders"]


@dataclass(frozen=True)
class Judgement:
    """One metric of all contenders for one model."""

    metric: Metric
    contenders: tuple[Contender, ...]
    values: Values
    draws: Draws
    """Of the bootstrap; NaN where a draw leaves it undefined."""
    by_prompt: Float[np.ndarray, "contenders prompt"] | None
    """Of metrics that are means over prompts."""
    prompts: int
    """Prompts in which it is defined, for any contender."""

    @property
    def gains(self) -> Values:
        """The values, the higher the better."""
        return -self.values if self.metric.lower_is_better else self.values

    def place(self, control: str) -> int:
        """Where a control is."""
        return self.contenders.index(Contender(control, CONTROL))

    @property
    def methods(self) -> list[int]:
        """Where the methods are of which the metric is defined."""
        return [
            place
            for place, contender in enumerate(self.contenders)
            if contender.score != CONTROL and np.isfinite(self.values[place])
        ]

    def interval(self, place: int, *, minus: int | None = None) -> tuple[float, float]:
        """The 95% interval of a value, or of its difference from another; NaN of too few draws."""
        value, draws, bounds = self.values[place], self.draws[:, place], self.metric.bounds
        if minus is not None:
            value, draws, bounds = value - self.values[minus], draws - self.draws[:, minus], ANY
        draws = draws[np.isfinite(draws)]
        if len(draws) < RESAMPLES / 2:
            return float("nan"), float("nan")
        half = Z * float(draws.std(ddof=1))
        return float(max(value - half, bounds[0])), float(min(value + half, bounds[1]))

    def problem(self) -> str:
        """Why the metric is not used for advice; empty if it can be.

        It must put the oracle above every method, the middle one of the methods above a random
        order, and the reversed oracle below that.
        """
        gains, methods = self.gains, self.methods
        oracle, reversed_, random = (gains[self.place(name)] for name in (ORACLE, REVERSED, RANDOM))
        if not methods or not np.isfinite([oracle, random]).all():
            return "undefined"
        best = max(methods, key=lambda place: gains[place])
        if gains[best] > oracle + 1e-9:
            return f"{self.contenders[best].method} is above the oracle"
        if np.median(gains[methods]) <= random:
            return "the middle method is not above a random order"
        if reversed_ >= random:
            return "the reversed oracle is not below a random order"
        return ""


def judge(trials: Sequence[Trials], donors: int) -> list[Judgement]:
    """Every metric of every contender.

    Args:
        trials: of one model.
        donors: how many donors there are in all of them.
    """
    weights = np.concatenate([own.weights for own in trials])
    parts = _parts(trials, None)
    draws = list(_draws(trials, donors, weights))
    judgements = []
    for place, metric in enumerate(METRICS):
        values = _combined(metric, parts[place], weights)
        by_prompt = parts[place][0] if metric.by_prompt else None
        defined = np.logical_and.reduce([~np.isnan(part) for part in parts[place]]).any(0)
        judgements.append(
            Judgement(
                metric,
                trials[0].contenders,
                values,
                np.stack([draw[place] for draw in draws]),
                by_prompt,
                int(defined.sum()),
            )
        )
    return judgements


def metric_table(judgements: Sequence[Judgement]) -> pd.DataFrame:
    """One row per metric and contender.

    Columns are metric, method, score (how it scores a segment; "control" of controls), value, low,
    high (95%), chance (of a random order), prompts.
    """
    return pd.DataFrame(
        [
            {
                "metric": judged.metric.name,
                **contender._asdict(),
                "value": float(judged.values[place]),
                **dict(zip(("low", "high"), judged.interval(place), strict=True)),
                "chance": float(judged.values[judged.place(RANDOM)]),
                "prompts": judged.prompts,
            }
            for judged in judgements
            for place, contender in enumerate(judged.contenders)
        ]
    )


def check_table(judgements: Sequence[Judgement]) -> pd.DataFrame:
    """Whether each metric ranks what is known: one row per metric.

    Columns are metric, title, oracle, best_method, middle_method, random, reversed, used, problem.
    """
    rows = []
    for judged in judgements:
        gains, methods = judged.values, judged.methods
        order = sorted(methods, key=lambda place: judged.gains[place])
        nan = float("nan")
        problem = judged.problem()
        rows.append(
            {
                "metric": judged.metric.name,
                "title": judged.metric.title,
                "oracle": gains[judged.place(ORACLE)],
                "best_method": gains[order[-1]] if order else nan,
                "middle_method": float(np.median(gains[methods])) if order else nan,
                "random": gains[judged.place(RANDOM)],
                "reversed": gains[judged.place(REVERSED)],
                "used": not problem,
                "problem": problem,
            }
        )
    return pd.DataFrame(rows)


def difference_table(
    judgements: Sequence[Judgement], clusters: Sequence[str], weights: Weights
) -> pd.DataFrame:
    """The best method of each league against the others in it, on the same prompts.

    Methods that read the coalitions that the truth is made of are a league of their own. One row
    per metric, league and method but the best: metric, league ("model" or "coalitions"), best,
    best_score, method, score; difference (best minus method, positive if the best is better), low,
    high (bootstrap); p by random signs of clusters, p_holm over the league; ties, whether they may
    be alike; note. Metrics that are no means over prompts have no p.
    """
    parts = [
        _against_best(judged, league, places, clusters, weights)
        for judged in judgements
        for league, places in _leagues(judged).items()
        if len(places) > 1
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def league_of(method: str) -> str:
    """Whether a method reads the model, or the coalitions that the truth is made of."""
    return COALITIONS if find_method(method).reads_coalitions else MODEL


def _leagues(judged: Judgement) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {MODEL: [], COALITIONS: []}
    for place in judged.methods:
        found[league_of(judged.contenders[place].method)].append(place)
    return found


def _against_best(
    judged: Judgement, league: str, places: list[int], clusters: Sequence[str], weights: Weights
) -> pd.DataFrame:
    best = max(places, key=lambda place: judged.gains[place])
    sign = -1 if judged.metric.lower_is_better else 1
    rows = []
    for place in places:
        if place == best:
            continue
        low, high = sorted(sign * end for end in judged.interval(best, minus=place))
        p, note = _tested(judged, best, place, clusters, weights)
        rows.append(
            {
                "metric": judged.metric.name,
                "league": league,
                "best": judged.contenders[best].method,
                "best_score": judged.contenders[best].score,
                **judged.contenders[place]._asdict(),
                "difference": float(judged.gains[best] - judged.gains[place]),
                "low": low,
                "high": high,
                "p": p,
                "note": note,
            }
        )
    table = holm(pd.DataFrame(rows), family=f"{judged.metric.name}, {league}")
    table["ties"] = ~(table["p_holm"] <= ALIKE)
    return table


def _tested(
    judged: Judgement, best: int, place: int, clusters: Sequence[str], weights: Weights
) -> tuple[float, str]:
    """The p-value of a difference on the same prompts, or why there is none."""
    if judged.by_prompt is None:
        return float("nan"), "not tested: no mean over prompts"
    rows = pd.DataFrame(
        {
            "difference": judged.by_prompt[best] - judged.by_prompt[place],
            "cluster": list(clusters),
            "weight": weights,
        }
    )
    found = cluster_mean(rows, value="difference", cluster="cluster", weight="weight")
    return found.p, found.note


def _parts(
    trials: Sequence[Trials], donor_weights: Float[np.ndarray, " donors"] | None
) -> list[tuple[np.ndarray, ...]]:
    """The parts of every metric, (contenders, prompt), of all prompts one behind the other."""
    judged = [own.judged(donor_weights) for own in trials]
    return [
        tuple(
            np.concatenate(found, axis=1) for found in zip(*map(metric.parts, judged), strict=True)
        )
        for metric in METRICS
    ]


def _combined(metric: Metric, parts: tuple[np.ndarray, ...], weights: Weights) -> Values:
    """One number of each contender; what a random order is worth, in its place."""
    found = np.array(metric.combine(*parts, weights=weights), dtype=float)
    if metric.chance is not None:
        random = len(found) - len(controls.CONTROLS) + controls.CONTROLS.index(RANDOM)
        found[random] = metric.chance
    return found


def _draws(trials: Sequence[Trials], donors: int, weights: Weights) -> Iterator[list[Values]]:
    """Every metric of each draw of the bootstrap; no draws of too few clusters."""
    clusters = np.concatenate([np.array(own.clusters, dtype=object) for own in trials])
    names, numbers = np.unique(clusters.astype(str), return_inverse=True)
    chance = np.random.default_rng(0)
    for _ in range(RESAMPLES if len(names) >= FEWEST else 1):
        drawn = chance.multinomial(len(names), np.full(len(names), 1 / len(names)))
        counts = chance.multinomial(donors, np.full(donors, 1 / donors)).astype(float)
        parts = _parts(trials, counts)
        own = weights * drawn[numbers]
        yield [_combined(metric, found, own) for metric, found in zip(METRICS, parts, strict=True)]


def cluster_note(trials: Sequence[Trials]) -> str:
    """Why there are no intervals; empty if there are."""
    clusters = {name for own in trials for name in own.clusters}
    return too_few(len(clusters)) if len(clusters) < FEWEST else ""
