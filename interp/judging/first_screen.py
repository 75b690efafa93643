"""The first screen of the page: the best methods for each model, with their uncertainty."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from interp.analysis.cautions.caution import Caution
from interp.choices import ORACLE, RANDOM, REVERSED
from interp.console import counted
from interp.judging import GIVEN
from interp.judging.metrics import LEAST_EFFECT
from interp.judging.ranking import COALITIONS, MODEL, league_of
from interp.judging.results import ModelResults, segments_of
from interp.judging.trials import CONTROL, declared
from interp.judging.verdicts import ADVISING, at_worst, labels, with_intervals
from interp.report.figures import style
from interp.report.figures.bars_and_points import whiskers
from interp.report.glance import WIDTH, glance, headline, n_units
from interp.report.page import FigureItem, Glance
from interp.statistics.clusters import FEWEST

_KINDS = {
    MODEL: "uses only the model",
    COALITIONS: "uses donors' prompts, like the ground truth",
    GIVEN: "scores of another tool, from a file",
    CONTROL: "control that does not use the model",
}

_BEST = {
    **{league: f"best that {_KINDS[league]}" for league in (MODEL, COALITIONS)},
    GIVEN: "best of other tools",
    CONTROL: "best control",
    RANDOM: "random order",
}
"""The headline numbers, by kind of contender."""


def first_screen(
    results: Sequence[ModelResults],
    metrics: pd.DataFrame,
    random_weights: pd.DataFrame,
    cautions: Sequence[Caution] = (),
) -> Glance:
    """The first screen of the page.

    `metrics` and `random_weights`, which may be empty, are the rows of `metric_table` of all
    models; `cautions` are ordered by severity.
    """
    top = metrics[metrics["metric"] == ADVISING[0]]
    top = top.assign(kind=[*map(_kind, top["method"], top["score"])])
    checks = ((result.model, result.checks.set_index("metric")) for result in results)
    problems = {model: str(table.loc[ADVISING[0], "problem"]) for model, table in checks}
    judged = top[top["model"].map(problems).eq("") & top["kind"].isin([*_KINDS])]
    question = (
        f"Which attribution method finds the segment, among {segments_of(results)}, that "
        f"determines the answer? {counted(len(results), 'model')}, "
        f"{counted(sum(result.prompts for result in results), 'judged prompt')}."
    )
    worst = at_worst(judged)
    everywhere = " on every model" * (judged["model"].nunique() > 1)
    sentences = [
        *_untested(results, top, problems),
        *_leagues(worst, everywhere),
        *_controls(worst, everywhere),
        *_random_weights(worst, random_weights),
    ]
    rows = worst[worst["score"].isin(["sum", CONTROL])]
    which = " on the least favorable model" * (len(results) > 1)
    simultaneous = ", with 95% intervals that hold simultaneously for all methods"
    figure = FigureItem(
        "at_a_glance",
        "How often each method finds the segment with the largest effect",
        partial(methods_found, rows.assign(contender=labels(rows)), kinds=_KINDS),
        f"Dots: results{which}{simultaneous * bool(rows['low'].notna().any())}. "
        "Dashed: a random order. n counts clusters of prompts.",
    )
    shown = figure if len(worst) else None
    return glance(question, _headlines(top, problems), sentences, figure=shown, cautions=cautions)


def methods_found(table: pd.DataFrame, *, kinds: Mapping[str, str]) -> Axes:
    """Plot how often each method finds the top segment: dots with intervals, best method first.

    The table has one row per contender, with the columns contender, kind, value, low, high, chance
    (a dashed line) and clusters. `kinds` are the labels of kinds of contenders in the legend.
    """
    with style.house_style():
        ax = style.new_axes(width=WIDTH, height=1.5 + 0.26 * len(table))
        table = table.sort_values("value", ascending=False, kind="stable")
        places = np.arange(len(table), dtype=float)
        for index, (kind, label) in enumerate(kinds.items()):
            of_kind = (table["kind"] == kind).to_numpy()
            if of_kind.any():
                rows, ends = table[of_kind], ("low", "high")
                how = partial(whiskers, ax, rows, places[of_kind], x="value", interval=ends)
                how(index=index, label=label, named=["contender"])
        chance = float(table["chance"].iloc[0])
        ax.axvline(chance, color=style.QUIET, linewidth=1, linestyle="--")
        ax.set_yticks(places, table["contender"])
        ax.set_ylim(len(table) - 0.4, -0.6)
        ax.set_xlim(-0.02, 1.02)
        ax.grid(visible=True, axis="x")
        ax.grid(visible=False, axis="y")
        ax.set_xlabel(f"top segment found ({style.n_of(table['clusters'])} clusters)")
        style.say_if_nothing_is_shown(ax, table, ("low", "high"), null=chance)
        style.add_legend(ax, [label for kind, label in kinds.items() if kind in {*table["kind"]}])
        return ax


def _kind(method: str, score: str) -> str:
    """A method's league or "given", "random", "control", or "" for controls that know."""
    if score != CONTROL:
        return league_of(method) if declared(method) else GIVEN
    return {RANDOM: RANDOM, ORACLE: "", REVERSED: ""}.get(method, CONTROL)


def _headlines(top: pd.DataFrame, problems: dict[str, str]) -> pd.DataFrame:
    """The best method of each league, the best control, and a random order, for each model."""
    parts = []
    for kind, name in _BEST.items():
        rows = top[top["kind"] == kind]
        if kind == GIVEN and rows.empty:
            continue
        values = rows["value"].fillna(-1.0).groupby(rows["model"], sort=False)
        best = rows.loc[values.idxmax()]
        first = rows["value"].fillna(-1.0) == values.transform("max")
        tied = best["model"].map(rows[first].groupby("model")["method"].nunique())
        note = best["model"].map(problems)
        kept = {end: best[end].where(note == "") for end in ("value", "low", "high")}
        label = pd.Series(labels(best), best.index, dtype=object)
        label = label.where(tied == 1, tied.astype(str) + " alike:")  # none of them is the best
        label = label.where((note == "") & (kind != RANDOM), "")
        if kind == RANDOM:
            note = note.mask((note == "") & best["low"].isna(), "a known value")
        shown = best.assign(**kept, label=label, note=note)
        parts.append(headline(shown, name, value="value", n="clusters", unit="clusters"))
    return pd.concat(parts, ignore_index=True)


def _untested(
    results: Sequence[ModelResults], top: pd.DataFrame, problems: dict[str, str]
) -> Iterator[str]:
    """Sentences about models on which no method or not this metric could be judged."""
    of = f" of {counted(len(results), 'model')}"
    clusters = [number for number in map(_judged_clusters, results) if number < FEWEST]
    if clusters:
        which = f"{len(clusters)}{of}" if len(clusters) < len(results) else "any model"
        yield (
            f"Nothing was tested on {which}: {n_units(max(clusters), max(clusters), 'clusters')} "
            f"of prompts, but {FEWEST} are needed."
        )
    prompts = top.groupby("model")["prompts"].max()
    without = {str(name) for name in prompts.index[prompts == 0]}
    if without:
        yield (
            f"On {len(without)}{of}, no segment of any prompt has an effect of "
            f"{LEAST_EFFECT} logits, so top_segment is undefined."
        )
    if unusable := sum(problem != "" and name not in without for name, problem in problems.items()):
        yield (
            f"On {unusable}{of}, top_segment ranks known controls wrongly, so this metric is not "
            f"used to judge methods; n = {int(top['clusters'].max()):,} clusters."
        )


def _judged_clusters(result: ModelResults) -> int:
    """Number of clusters of the prompts on which a model's methods are judged."""
    name = result.verdicts["metric"].iloc[0] if len(result.verdicts) else ADVISING[0]
    return int(result.metrics.loc[result.metrics["metric"] == name, "clusters"].max())


def _leagues(worst: pd.DataFrame, everywhere: str) -> Iterator[str]:
    """For each league, how many scores are above chance on every judged model."""
    leagues = {MODEL: "that use only the model", COALITIONS: "that also use donors' prompts"}
    for kind, words in {**leagues, GIVEN: "of other tools"}.items():
        rows = worst[worst["kind"] == kind]
        if rows["low"].notna().any():
            first, value = rows.iloc[0], with_intervals(rows)[0]
            yield (
                f"{rows['above'].sum()} of {len(rows)} scores {words} are above chance{everywhere};"
                f" best: {first['method']}, {value}; n = {first['clusters']:,} clusters."
            )


def _controls(worst: pd.DataFrame, everywhere: str) -> Iterator[str]:
    """A warning if a control is above chance although it does not use the model."""
    rows = worst[(worst["kind"] == CONTROL) & worst["above"]]
    if len(rows):
        first, value = rows.iloc[0], with_intervals(rows)[0]
        yield (
            f"Beware: {first['method']}, which does not use the model, is above chance{everywhere} "
            f"too, {value}; n = {first['clusters']:,} clusters."
        )


def _random_weights(worst: pd.DataFrame, random_weights: pd.DataFrame) -> Iterator[str]:
    """A warning if some scores are above chance even when the model has random weights."""
    if random_weights.empty:
        return
    sure, key = worst[worst["above"] & (worst["score"] != CONTROL)], ["method", "score"]
    above = random_weights[random_weights["low"] > random_weights["chance"]]
    again = above.merge(sure[key], on=key).drop_duplicates(key)
    if len(again):
        yield (
            f"With random weights, {len(again)} of these {len(sure)} scores are also above chance "
            f"and may depend only on the prompt; n = {int(again['clusters'].max()):,} clusters."
        )
