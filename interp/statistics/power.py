"""The smallest differences that a set of prompts can show, found by simulating studies.

Each cluster's chance of a right answer at each level has a beta distribution (beta-binomial;
Skellam, 1948, J. R. Stat. Soc. B 10); its rank is either the same at all levels or drawn separately
for each (Lunn and Davies, 1998, Biometrika 85). Studies are tested as `interp.statistics.contrasts`
does, but by Student's t, without draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy.special import betaincinv, stdtrit
from scipy.stats import studentized_range

from interp.errors import UserError
from interp.prompts.systems import Contrast, Filter
from interp.statistics.clusters import FEWEST
from interp.statistics.contrasts import MODEL, POWER
from interp.statistics.proportions import proportions
from interp.statistics.resampling import ROUNDING
from interp.statistics.summaries import LEVEL

STUDIES = 500
"""Number of simulated studies for each difference."""

RANKS = 2000
"""Number of distinct success probabilities that a cluster may have."""

EDGE = 0.1
"""A share closer to 0 or 1 than this is at an edge if fewer than `FEWEST` answers differ."""

CORRELATION = 0.8
"""The correlation assumed for answers that do not vary (the default of `interp plan`)."""

FINEST = 0.002
"""Precision of the difference at which the search ends."""


@dataclass(frozen=True)
class Expected:
    """The answers expected for one contrast."""

    share: float
    """Share of right answers across all levels; differences are hardest to find at 0.5."""
    within: tuple[float, ...]
    """Correlation of two answers about one cluster at the same level: one per level, or one for
    all levels.
    """
    across: float
    """Correlation of two answers about one cluster at different levels."""
    note: str = ""
    """What had to be assumed, because the pilot's answers do not vary; otherwise empty."""


@dataclass(frozen=True)
class PairCounts:
    """The pairs of a study, grouped by cluster, level and weight."""

    clusters: Int[np.ndarray, " groups"]
    levels: Int[np.ndarray, " groups"]
    weights: Float[np.ndarray, " groups"]
    counts: Int[np.ndarray, " groups"]
    """Number of pairs in each group."""
    names: tuple[str, ...]
    """The names of the levels."""

    @classmethod
    def of(cls, pairs: pd.DataFrame, contrast: Contrast, cluster: str) -> "PairCounts":
        """The trials at the contrast's levels; when comparing models, each answers all pairs."""
        if contrast.factor == MODEL:
            pairs = pd.concat([pairs.assign(**{MODEL: name}) for name in contrast.levels or ()])
        names = contrast.levels or tuple(map(str, pairs[contrast.factor].unique()))
        level = pd.Index(names).get_indexer(pd.Index(pairs[contrast.factor].astype(str)))
        table = pd.DataFrame(
            {
                "cluster": pd.factorize(pairs[cluster])[0],
                "level": level,
                "weight": pairs["weight"].to_numpy(dtype=float),
            }
        )
        groups = table[level >= 0].value_counts(sort=False).reset_index()
        clusters, levels, weights, counts = (groups[name].to_numpy() for name in groups)
        return cls(clusters, levels, weights, counts, names)

    def sums(self, values: Float[np.ndarray, "*studies groups"]) -> Float[np.ndarray, "..."]:
        """Sums of the groups' values by cluster and level, (*studies, cluster, level)."""
        shape = self.clusters.max() + 1, len(self.names)
        place = self.clusters * shape[1] + self.levels
        order = place.argsort(kind="stable")
        filled, starts = np.unique(place[order], return_index=True)
        sums = np.zeros((*values.shape[:-1], shape[0] * shape[1]))
        sums[..., filled] = np.add.reduceat(values[..., order], starts, axis=-1)
        return sums.reshape(*values.shape[:-1], *shape)

    def compared(self) -> tuple[bool, int]:
        """Whether clusters have both levels, and their number, as in `contrasts.difference`.

        Of several levels, those are compared that have the fewest.
        """
        has = self.sums(self.counts.astype(float)) > 0
        counted = []
        for a, b in combinations(has.T, 2):
            rarer = min(a.sum(), b.sum())
            paired = bool(2 * (a & b).sum() > rarer)
            counted.append((int((a | b).sum() if paired else rarer), paired))
        fewest, paired = min(counted)
        return paired, fewest


def expected(answered: pd.DataFrame, contrast: Contrast, cluster: str) -> Expected:
    """The share and the intraclass correlations of a pilot's answers.

    A correlation is the weighted mean product of two answers' standardized deviations from their
    level's share. A contrast without named levels has few answers per level, so all levels share
    one correlation. Answers that are nearly all right or all wrong have no variance to plan with;
    then the share is the other end of its 95% interval, and the correlations are assumed.
    `answered` has a row per pair (and model, if models are compared), with paired (whether all its
    sides are right), weight, the factor and the cluster.
    """
    level = answered[contrast.factor].astype(str)
    names = list(contrast.levels or level.unique())
    rows, level = answered[level.isin(names)], level[level.isin(names)]
    if missing := set(names) - set(level):
        raise UserError(
            f"the pilot has no answer at {contrast.factor} {min(missing)!r}; expected answers at "
            "all levels to be compared: try a larger pilot"
        )
    if at_edge := _at_edge(rows, contrast, cluster):
        return at_edge
    weight, right = rows["weight"].astype(float), rows["paired"].astype(float)
    shares = ((weight * right).groupby(level).sum() / weight.groupby(level).sum()).loc[names]
    share = level.map(shares)
    spread = np.sqrt((share * (1 - share)).clip(lower=ROUNDING))
    deviation: pd.Series = weight * (right - share) / spread
    d, dd, w, ww = (
        part.groupby([rows[cluster], level]).sum().unstack(fill_value=0)[names].to_numpy()
        for part in (deviation, deviation**2, weight, weight**2)
    )
    between = (part.sum(axis=1) ** 2 - (part**2).sum(axis=1) for part in (d, w))
    across = _correlation(*(float(part.sum()) for part in between), unknown=0.0)
    products, masses = (d**2 - dd).sum(axis=0), (w**2 - ww).sum(axis=0)
    if contrast.levels is None:
        pooled = _correlation(products.sum(), masses.sum(), unknown=across)
        return Expected(float(np.average(right, weights=weight)), (pooled,), across)
    within = tuple(
        _correlation(*sums, unknown=across) for sums in zip(products, masses, strict=True)
    )
    return Expected(_as_variable(shares.to_numpy(), within), within, across)


def _at_edge(rows: pd.DataFrame, contrast: Contrast, cluster: str) -> Expected | None:
    """What to expect if nearly all answers are right or nearly all are wrong; otherwise None."""
    (accuracy,) = proportions(
        rows, values=["paired"], by=[], cluster=cluster, weight="weight"
    ).to_dict("records")
    right, answers = int(rows["paired"].sum()), len(rows)
    share = float(accuracy["share"])
    if min(right, answers - right) >= FEWEST or min(share, 1 - share) >= EDGE:
        return None
    end = min(float(accuracy["high"]), 0.5) if share < 0.5 else max(float(accuracy["low"]), 0.5)
    note = (
        f"pilot: {right:,} of {answers:,} right; assumed: accuracy {end:.2f}, correlation "
        f"{CORRELATION:g}"
    )
    across = 0.0 if contrast.factor == MODEL else CORRELATION / 2
    return Expected(end, (CORRELATION,), across, note)


def _correlation(products: float, mass: float, *, unknown: float) -> float:
    """The correlation from sums of products and weights; `unknown` if there are no products."""
    return float(np.clip(products / mass, 0.0, 1.0)) if mass > ROUNDING else unknown


def _as_variable(shares: Float[np.ndarray, " levels"], within: Sequence[float]) -> float:
    """One share, on the shares' side of 0.5, with the mean variance of the levels' answers."""
    # Correlated answers make up most of a mean's variance.
    variance = np.average(shares * (1 - shares), weights=np.maximum(within, ROUNDING))
    away = np.sqrt(max(0.25 - float(variance), 0.0))
    return float(0.5 + (away if shares.mean() > 0.5 else -away))


@dataclass(frozen=True)
class Planned:
    """A planned comparison."""

    model: str
    """The model that answers; empty if any model may answer or if models are compared."""
    contrast: Contrast
    """The contrast; if models are compared, its levels are models."""
    awaited: Expected


def of_pilot(
    answered: pd.DataFrame, contrasts: Sequence[Contrast], *, cluster: str
) -> list[Planned]:
    """The contrasts within each model of a pilot, and between all pairs of models (`expected`).

    Raises:
        UserError: the pilot lacks one of the levels.
    """
    by_model = {str(model): rows for model, rows in answered.groupby("model", sort=False)}
    planned = []
    for contrast in contrasts:
        if contrast.factor != MODEL:
            each = [(model, contrast) for model in by_model]
        else:
            compared = [contrast.levels] if contrast.levels else combinations(by_model, 2)
            each = [("", Contrast(MODEL, levels)) for levels in compared]
        planned += [
            Planned(model, concrete, expected(by_model.get(model, answered), concrete, cluster))
            for model, concrete in each
        ]
    return planned


def assumed(contrasts: Sequence[Contrast], *, accuracy: float, correlation: float) -> list[Planned]:
    """The contrasts within a model and between two models, without a pilot.

    Two answers about one cluster have the given correlation if they are at the same level of a
    factor, half of it if they are at different levels, and zero if they come from different models.
    """
    planned = []
    for contrast in contrasts:
        across = 0.0 if contrast.factor == MODEL else correlation / 2
        concrete = Contrast(MODEL, ("a", "b")) if contrast == Contrast(MODEL) else contrast
        planned.append(Planned("", concrete, Expected(accuracy, (correlation,), across)))
    return planned


def family_size(contrasts: Sequence[Contrast], models: int) -> int:
    """Number of tests that Holm's method corrects together, given the number of models."""
    pairs = models * (models - 1) // 2
    return sum(
        models if contrast.factor != MODEL else pairs if contrast.levels is None else 1
        for contrast in contrasts
    )


def known_pairs(
    pairs: pd.DataFrame, known: Filter, *, share: float, cluster: str, seed: int
) -> pd.DataFrame:
    """The pairs that a filter leaves if models know a share of the facts, drawn at random.

    `known` are the pairs that are left out if a model fails their fact; each cluster has a fact of
    its own.
    """
    about_facts = pairs[known.factor].isin(known.levels)
    facts = pairs.loc[about_facts, cluster].unique()
    drawn = np.random.default_rng(seed).permutation(len(facts))[: round(share * len(facts))]
    return pairs[~about_facts | pairs[cluster].isin(facts[drawn])]


def plan_table(
    pairs: pd.DataFrame, planned: Sequence[Planned], *, cluster: str, tests: int
) -> pd.DataFrame:
    """One row per contrast: model, factor, contrast, pairs_a, pairs_b, clusters, detectable.

    `detectable` is the difference in accuracy that a two-sided 5% test detects with 80% power, as
    in a report. `detectable_holm` is the detectable difference after Holm's correction, which tests
    the only true difference of a family at 5% divided by the number of tests. Both are strings:
    "none" if no difference can be detected, for instance with fewer than ten clusters. `note` says
    what was assumed because the pilot's answers do not vary. If no model is named, there is no
    column model, and without any note no column note. Planned comparisons without two levels in the
    pairs are omitted; `tests` are corrected together.
    """
    rows = (_row(pairs, comparison, cluster, tests) for comparison in planned)
    table = pd.DataFrame([row for row in rows if row])
    empty = [name for name in ("model", "note") if name in table and not table[name].any()]
    return table.drop(columns=empty)


def _row(pairs: pd.DataFrame, comparison: Planned, cluster: str, tests: int) -> dict[str, object]:
    """The row of a contrast; empty if the pairs have only one level."""
    trials = PairCounts.of(pairs, comparison.contrast, cluster)
    sizes = np.bincount(trials.levels, trials.counts, minlength=len(trials.names))
    if len(sizes) < 2 or not sizes.all():
        return {}
    best, worst = trials.names[0], trials.names[-1]
    return {
        "model": comparison.model,
        "factor": comparison.contrast.factor,
        "contrast": f"{best} - {worst}" if comparison.contrast.levels else "best - worst",
        "pairs_a": int(sizes[0]),
        "pairs_b": int(sizes[-1]),
        "clusters": int(trials.clusters.max()) + 1,
        "detectable": _said(detectable(trials, comparison.awaited)),
        "detectable_holm": _said(detectable(trials, comparison.awaited, tests=tests)),
        "note": comparison.awaited.note,
    }


def _said(difference: float) -> str:
    return "none" if np.isnan(difference) else f"{difference:.3f}"


def detectable(trials: PairCounts, awaited: Expected, *, tests: int = 1) -> float:
    """The smallest difference detected with 80% power at 5% divided by `tests`; NaN without any."""
    if trials.compared()[1] < FEWEST or power(trials, awaited, 1.0, tests=tests) < POWER:
        return float("nan")
    low, high = 0.0, 1.0
    while high - low > FINEST:
        middle = (low + high) / 2
        enough = power(trials, awaited, middle, tests=tests) >= POWER
        low, high = (low, middle) if enough else (middle, high)
    return high


def power(trials: PairCounts, awaited: Expected, difference: float, *, tests: int = 1) -> float:
    """The share of simulated studies that find a difference between the first level and the last.

    Two levels are compared by Student's t, and the extremes of several levels by the studentized
    range.
    """
    hits = simulated(trials, awaited, difference)
    counts = trials.sums(trials.weights * trials.counts)
    level = (1 - LEVEL) / tests
    if hits.shape[-1] > 2:
        return float(_extremes_differ(hits, counts, level).mean())
    return float(_two_differ(hits, counts, level, paired=trials.compared()[0]).mean())


def _extremes_differ(
    hits: Float[np.ndarray, "studies clusters levels"],
    counts: Float[np.ndarray, "clusters levels"],
    level: float,
) -> Bool[np.ndarray, " studies"]:
    """Whether the extremes differ, by the error of random orders (`contrasts.spread`)."""
    total, levels = counts.sum(axis=0), counts.shape[1]
    shares = hits.sum(axis=1) / total
    pooled = hits.sum(axis=(1, 2)) / total.sum()
    added = (hits - pooled[:, None, None] * counts) / total
    added -= added.mean(axis=2, keepdims=True)
    error = np.sqrt((added**2).sum(axis=(1, 2)) / (levels - 1))
    far = studentized_range.ppf(1 - level, levels, np.inf) * error
    return np.asarray(np.ptp(shares, axis=1) > far + ROUNDING)


def _two_differ(
    hits: Float[np.ndarray, "studies clusters 2"],
    counts: Float[np.ndarray, "clusters 2"],
    level: float,
    *,
    paired: bool,
) -> Bool[np.ndarray, " studies"]:
    """For each study, whether Student's t test finds that two levels differ.

    As in the interval of a difference, half a cluster is added to each level, which has no hits at
    the higher one and only hits at the lower one; its weight has twice the mean's square as
    variance.
    """
    total, clusters = counts.sum(axis=0), len(counts)
    shares = hits.sum(axis=1) / total
    added = (hits - shares[:, None] * counts) / total
    squares = ((added[..., 0] - added[..., 1]) ** 2).sum(axis=1)
    half = (counts**2).sum(axis=0) / total**2 / 2
    higher = shares == shares.max(axis=1, keepdims=True)
    away = half * np.where(higher, shares, 1 - shares)
    of_added = away.sum(axis=1) ** 2 if paired else (away**2).sum(axis=1)
    error = np.sqrt(clusters / (clusters - 1) * squares + 2 * of_added)
    far = stdtrit(clusters - 1, 1 - level / 2) * error
    return np.asarray(np.ptp(shares, axis=1) - away.sum(axis=1) > far + ROUNDING)


def simulated(
    trials: PairCounts,
    awaited: Expected,
    difference: float,
    *,
    studies: int = STUDIES,
    seed: int = 0,
) -> Float[np.ndarray, "studies clusters levels"]:
    """Simulate weighted sums of right answers by cluster and level, with this difference.

    The first level has the highest share and the last the lowest; all others have the expected
    share.
    """
    chance = np.random.default_rng(seed)
    high = max(min(1.0, awaited.share + difference / 2), difference)
    shares = np.full(len(trials.names), np.clip(awaited.share, high - difference, high))
    shares[0], shares[-1] = high, high - difference
    within = np.broadcast_to(awaited.within, len(shares))
    scale = np.sqrt(within[0] * within[-1])
    kept = np.sqrt(min(1.0, awaited.across / scale)) if scale > 0 else 0.0
    size = (studies, int(trials.clusters.max()) + 1, len(shares))
    ranks = np.where(chance.random(size) < kept, chance.random((*size[:2], 1)), chance.random(size))
    chances = _chances(shares, within)[np.arange(len(shares)), (ranks * RANKS).astype(int)]
    right = chance.binomial(trials.counts, chances[:, trials.clusters, trials.levels])
    return trials.sums(right * trials.weights)


def _chances(
    shares: Float[np.ndarray, " levels"], within: Float[np.ndarray, " levels"]
) -> Float[np.ndarray, "levels ranks"]:
    """Quantiles of the clusters' success probabilities, given each level's mean and correlation."""
    ranks = (np.arange(RANKS) + 0.5) / RANKS
    concentration = 1 / np.clip(within, 1e-6, 1 - 1e-6) - 1
    a, b = (np.maximum(part * concentration, 1e-9)[:, None] for part in (shares, 1 - shares))
    return np.asarray(betaincinv(a, b, ranks))
