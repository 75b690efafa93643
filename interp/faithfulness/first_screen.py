"""The first screen of the page: the best methods for each model, with their uncertainty."""

from collections.abc import Iterator, Sequence
from functools import partial

import pandas as pd

from interp.analysis.cautions.caution import Caution
from interp.choices import LENGTH, ORACLE, POSITION, RANDOM, REVERSED
from interp.console import counted
from interp.faithfulness.agreement import LEAST_EFFECT
from interp.faithfulness.figures import methods_found
from interp.faithfulness.ranking import COALITIONS, MODEL, league_of
from interp.faithfulness.results import ModelResults, segments_of
from interp.faithfulness.trials import CONTROL
from interp.faithfulness.verdicts import ADVISING, above_chance, at_worst, labels
from interp.report.glance import glance, headline, n_units, with_interval
from interp.report.page import FigureItem, Glance
from interp.statistics.clusters import FEWEST

_KINDS = {
    MODEL: "uses only the model",
    COALITIONS: "uses donors' prompts, like the ground truth",
    CONTROL: "control that does not use the model",
}

_DOTS = "Dots: results", "Dots: results on the least favorable model"

_KNOWN = (ORACLE, REVERSED, RANDOM)


def first_screen(
    results: Sequence[ModelResults],
    metrics: pd.DataFrame,
    random_weights: pd.DataFrame,
    cautions: Sequence[Caution] = (),
) -> Glance:
    """Make the first screen of the page.

    Args:
        results: the results of each model.
        metrics: the rows of `metric_table` for every model, with a column `model`.
        random_weights: the same rows for the models with random weights; may be empty.
        cautions: what a careful reader would object to, by severity.
    """
    top = with_kinds(metrics[metrics["metric"] == ADVISING[0]])
    problems = {own.model: _problem(own) for own in results}
    numbers = headline_numbers(top, problems)
    judged = top[top["model"].map(problems).eq("") & ~top["method"].isin(_KNOWN)]
    prompts = sum(own.prompts for own in results)
    trials = [own for model in results for own in model.trials]
    question = (
        f"Which attribution method finds the segment, among {segments_of(trials)}, that determines "
        "the answer? "
        f"{counted(len(results), 'model')}, {counted(prompts, 'judged prompt')}."
    )
    figure = None
    worst = at_worst(judged) if len(judged) else judged
    if len(worst):
        sums = worst["score"].isin(["sum", CONTROL])
        rows = worst[sums].assign(contender=labels(worst[sums]))
        simultaneous = ", with 95% intervals that hold simultaneously for all methods"
        figure = FigureItem(
            "at_a_glance",
            "How often each method finds the segment with the largest effect",
            partial(methods_found, rows, kinds=_KINDS),
            f"{_DOTS[len(results) > 1]}{simultaneous * bool(rows['low'].notna().any())}. "
            "Dashed: a random order. n counts clusters of prompts.",
        )
    everywhere = " on every model" * (judged["model"].nunique() > 1)
    told = [
        *_untested(results, top, problems),
        *_leagues(worst, everywhere),
        *_controls(worst, everywhere),
        *_random_weights(worst, random_weights),
    ]
    return glance(question, numbers, told, figure=figure, cautions=cautions)


def with_kinds(top: pd.DataFrame) -> pd.DataFrame:
    """Add a column `kind`, which is a method's league, or "control"."""
    kinds = [
        CONTROL if score == CONTROL else league_of(method)
        for method, score in zip(top["method"], top["score"], strict=True)
    ]
    return top.assign(kind=kinds)


def headline_numbers(top: pd.DataFrame, problems: dict[str, str]) -> pd.DataFrame:
    """The best method of each league, the best control, and a random order, for each model.

    Args:
        top: how often each contender finds the top segment; rows of `with_kinds`.
        problems: for each model, why methods cannot be judged by finding the top segment; empty if
            they can.
    """
    parts = []
    for kind, words in {**_KINDS, RANDOM: "random order"}.items():
        own = top[top["method"] == RANDOM] if kind == RANDOM else top[top["kind"] == kind]
        own = own if kind == RANDOM else own[~own["method"].isin(_KNOWN)]
        values = own["value"].fillna(-1.0)
        best = own.loc[values.groupby(own["model"], sort=False).idxmax()]
        first = values == values.groupby(own["model"]).transform("max")
        tied = best["model"].map(own[first].groupby("model")["method"].nunique())
        note = best["model"].map(problems)
        kept = {name: best[name].where(note == "") for name in ("value", "low", "high")}
        if kind == RANDOM:
            note = note.mask((note == "") & best["low"].isna(), "a known value")
        label = pd.Series("" if kind == RANDOM else labels(best), best.index, dtype=object)
        label = label.where(tied == 1, tied.astype(str) + " alike:")  # none of them is the best
        shown = best.assign(**kept, label=label.where(note == "", ""), note=note)
        name = (
            words if kind == RANDOM else f"best that {words}" if kind != CONTROL else "best control"
        )
        parts.append(headline(shown, name, value="value", n="clusters", unit="clusters"))
    return pd.concat(parts, ignore_index=True)


def _problem(own: ModelResults) -> str:
    """Why methods cannot be judged by finding the top segment; empty if they can."""
    return str(own.checks.set_index("metric").loc[ADVISING[0], "problem"])


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


def _judged_clusters(own: ModelResults) -> int:
    """Number of clusters of the prompts on which a model's methods are judged."""
    name = own.verdicts["metric"].iloc[0] if len(own.verdicts) else ADVISING[0]
    return int(own.metrics.loc[own.metrics["metric"] == name, "clusters"].max())


def _leagues(worst: pd.DataFrame, everywhere: str) -> Iterator[str]:
    """For each league, a sentence that counts the scores above chance on every judged model."""
    for kind, words in (
        (MODEL, "that use only the model"),
        (COALITIONS, "that also use donors' prompts"),
    ):
        rows = worst[worst["kind"] == kind] if len(worst) else worst
        if rows.empty or rows["low"].isna().all():
            continue
        first = rows.iloc[0]
        value = with_interval(float(first["value"]), float(first["low"]), float(first["high"]))
        yield (
            f"{rows['above'].sum()} of {len(rows)} scores {words} are above chance{everywhere}; "
            f"best: {first['method']}, {value}; n = {first['clusters']:,} clusters."
        )


def _controls(worst: pd.DataFrame, everywhere: str) -> Iterator[str]:
    """A warning if a control is above chance although it does not use the model."""
    rows = worst[worst["method"].isin((LENGTH, POSITION)) & worst["above"]] if len(worst) else worst
    for row in rows.head(1).to_dict("records"):
        value = with_interval(row["value"], row["low"], row["high"])
        yield (
            f"Beware: {row['method']}, which does not use the model, is above chance{everywhere} "
            f"too, {value}; n = {row['clusters']:,} clusters."
        )


def _random_weights(worst: pd.DataFrame, random_weights: pd.DataFrame) -> Iterator[str]:
    """A warning if some scores are above chance even when the model has random weights."""
    if random_weights.empty or worst.empty:
        return
    sure = worst[worst["above"] & (worst["score"] != CONTROL)]
    key = ["method", "score"]
    found = above_chance(random_weights).merge(sure[key], on=key).drop_duplicates(key)
    if len(found):
        yield (
            f"With random weights, {len(found)} of these {len(sure)} scores are also above chance "
            f"and may depend only on the prompt; n = {int(found['clusters'].max()):,} clusters."
        )
