"""Conclusions: a verdict on each method, and paragraphs of advice."""

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from interp.choices import LENGTH, POSITION
from interp.faithfulness.ranking import COALITIONS, MODEL, league_of
from interp.faithfulness.trials import CONTROL
from interp.statistics.clusters import FEWEST

ADVISING = ("top_segment", "lds", "morf_lerf")
"""Metrics for advice; the first metric that passes its check is used."""

TRUST, WEAKER, UNDECIDED, REFUTED = "trust", "weaker", "undecided", "refuted"

_MEANINGS = {
    WEAKER: "Above chance, but worse than the best",
    REFUTED: "Refuted, being worse than the best and not shown to be above chance",
    UNDECIDED: "Undecided, shown neither to be above chance nor to be worse than the best",
}

_LEAGUES = {
    MODEL: "methods that read only the model",
    COALITIONS: "methods that read donors' prompts, like the truth",
}

_KEY = ["method", "score"]

_UNTESTED = f"nothing was tested, since fewer than {FEWEST} clusters of prompts have a value"


def verdict_table(
    metrics: pd.DataFrame, checks: pd.DataFrame, differences: pd.DataFrame
) -> pd.DataFrame:
    """One row per method and score, by the advising metric, starting with the best.

    Columns are metric, title, league, method, score, value, corrected (for the best of the league,
    its value corrected for selection), low, high, chance, p (that no method of the league is
    better), may_be_best, verdict:
    trust: its interval lies above chance, and it may be the best;
    weaker: above chance, but worse than the best;
    refuted: worse than the best, and not shown to be above chance;
    undecided: shown neither to be above chance nor to be worse than the best. Verdicts hold
    simultaneously for all methods of the model. There are no rows if no metric can be used.
    """
    used = checks[checks["used"] & checks["metric"].isin(ADVISING)].set_index("metric")
    name = next((name for name in ADVISING if name in used.index), None)
    if name is None:
        return pd.DataFrame()
    values = metrics[(metrics["metric"] == name) & (metrics["score"] != CONTROL)]
    table = values.assign(
        title=str(used.loc[name, "title"]), league=values["method"].map(league_of)
    )
    against = differences.reindex(
        columns=["metric", *_KEY, "best", "best_score", "corrected", "p", "may_be_best"]
    )
    against = against[against["metric"] == name].drop(columns="metric")
    table = table.merge(against, on=_KEY, how="left", validate="one_to_one")
    is_best = (table["method"] == table["best"]) & (table["score"] == table["best_score"])
    table["corrected"] = table["corrected"].where(is_best)
    # The only method of a league cannot be worse than another method.
    best = table["may_be_best"] = table["may_be_best"].ne(False)
    above = table["low"] > table["chance"]
    table["verdict"] = UNDECIDED
    table.loc[above & best, "verdict"] = TRUST
    table.loc[above & ~best, "verdict"] = WEAKER
    table.loc[~above & ~best, "verdict"] = REFUTED
    table = table.sort_values("value", ascending=False, kind="stable")
    columns = ["metric", "title", "league", *_KEY, "value", "corrected", "low", "high", "chance"]
    return table[[*columns, "p", "may_be_best", "verdict"]].reset_index(drop=True)


def advice(
    model: str,
    described: str,
    verdicts: pd.DataFrame,
    metrics: pd.DataFrame,
    random_weights: pd.DataFrame,
) -> str:
    """One paragraph about the methods to trust for a model, the confidence, and refuted methods.

    Args:
        model: its name.
        described: the segments and prompts, such as "premise 1 and premise 2 in 48 prompts".
        verdicts: rows of `verdict_table`.
        metrics: rows of `metric_table`, for the controls.
        random_weights: those rows for the model with random weights; may be empty.
    """
    if verdicts.empty:
        return (
            f"{model}: no advice. On {described}, no metric ranked the oracle above the methods "
            "and the methods above a random order."
        )
    first = verdicts.iloc[0]
    whether = "whether the" if first["metric"] == ADVISING[0] else "the"
    judged = f"{described} by {whether} {first['title']} (a random order: {first['chance']:.2f})"
    leagues = [(words, verdicts[verdicts["league"] == name]) for name, words in _LEAGUES.items()]
    if first[["low", "high"]].isna().all():
        values = [f"{words}: {_listed(rows)}" for words, rows in leagues if len(rows)]
        return f"{model}: {_UNTESTED}. Values on {judged}, of {'; of '.join(values)}."
    sentences = [f"{model}: judged on {judged}."]
    for words, rows in leagues:
        sentences += _of_league(words, rows)
    sentences += [
        _of_controls(_above(metrics[metrics["metric"] == first["metric"]])),
        _of_random_weights(verdicts[verdicts["verdict"] == TRUST], random_weights),
    ]
    return " ".join(filter(None, sentences))


def _of_league(words: str, rows: pd.DataFrame) -> Iterator[str]:
    """A verdict on each method of a league."""
    if rows.empty:
        return
    trusted = rows[rows["verdict"] == TRUST]
    if trusted.empty:
        yield f"Of the {words}, none is shown to be above chance."
    else:
        first = trusted.iloc[0]
        value = with_interval(*first[["value", "low", "high"]].to_numpy(float))
        text = f"Of the {words}, trust {labels(trusted)[0]} {value}"
        corrected = f"{first['corrected']:.2f}"
        if math.isfinite(first["corrected"]) and corrected != f"{first['value']:.2f}":
            text += f", {corrected} when corrected for being the highest"
        if len(trusted) > 1:
            text += f"; also above chance and not shown to be worse: {_listed(trusted.iloc[1:])}"
        yield f"{text}."
    if len(rows) > 1:
        yield (
            f"With 95% confidence, the best of these {len(rows)} is one of the "
            f"{rows['may_be_best'].sum()} not shown to be worse than another."
        )
    for verdict, meaning in _MEANINGS.items():
        found = rows[rows["verdict"] == verdict]
        if len(found):
            yield f"{meaning}: {_listed(found)}."


def _above(metrics: pd.DataFrame) -> pd.DataFrame:
    """The contenders above chance."""
    return metrics[metrics["low"] > metrics["chance"]]


def _of_controls(above: pd.DataFrame, where: str = "for this model") -> str:
    """A warning if a control that knows nothing about the model is better than a random order."""
    found = above[(above["score"] == CONTROL) & above["method"].isin((LENGTH, POSITION))]
    if found.empty:
        return ""
    return (
        f"Beware: a control that does not read the model is also above chance {where} "
        f"({_listed(found)}), so being above chance does not show that a method reads the model."
    )


def _of_random_weights(trusted: pd.DataFrame, random_weights: pd.DataFrame) -> str:
    """A warning if trusted methods are also above chance with random weights."""
    if random_weights.empty:
        return ""
    found = _above(random_weights).merge(trusted[_KEY], on=_KEY)
    if found.empty:
        return ""
    return (
        "With random weights, these methods are also above chance, so they may read the prompt "
        f"rather than the model: {_listed(found)}."
    )


def at_worst(metrics: pd.DataFrame) -> pd.DataFrame:
    """The row of each contender's lowest value over several models, in descending order.

    Args:
        metrics: rows of `metric_table` with their model. Contenders are omitted unless they have a
            value on every model on which any method has one.

    Returns:
        The rows, with above: whether the contender is above chance on every model.
    """
    models = _judged(metrics)
    table = metrics[metrics["model"].isin(models)].dropna(subset=["value"]).reset_index(drop=True)
    table["above"] = table["low"] > table["chance"]
    contenders = table.groupby(_KEY, sort=False)
    table["above"] = contenders["above"].transform("all")
    everywhere = contenders["model"].transform("nunique") == len(models)
    lowest = table[everywhere].groupby(_KEY, sort=False)["value"].idxmin()
    return table.loc[lowest].sort_values("value", ascending=False)


def _judged(metrics: pd.DataFrame) -> list[str]:
    """The models on which at least one method has a value."""
    methods = metrics[metrics["score"] != CONTROL].dropna(subset=["value"])
    return [str(name) for name in methods["model"].unique()]


def across_models(metrics: pd.DataFrame, random_weights: pd.DataFrame) -> str:
    """One paragraph about several models: each method on the model where it performs worst.

    Args:
        metrics: rows of `metric_table` for the first advising metric, with their model.
        random_weights: such rows for models with random weights; may be empty.

    Returns:
        The paragraph; empty if fewer than two models can be judged.
    """
    judged = _judged(metrics)
    if len(judged) < 2:
        return ""
    worst = at_worst(metrics)
    methods = worst[worst["score"] != CONTROL].sort_values("value", ascending=False, kind="stable")
    if methods.empty:
        return ""
    intervals = metrics[metrics["score"] != CONTROL].groupby("model")["low"].count()
    untested = [name for name in judged if not intervals[name]]
    undefined = [str(name) for name in metrics["model"].unique() if name not in judged]
    but = f" but {', '.join(undefined)}, where it is undefined" if undefined else ""
    sentences = [
        f"Over all models{but}, methods are judged by the top segment; values are their lowest."
    ]
    if untested:
        sentences.insert(
            0,
            f"On {', '.join(untested)} {_UNTESTED}: whether any method is above a random order "
            "on every model remains open.",
        )
    for league, words in _LEAGUES.items():
        own = methods[methods["method"].map(league_of) == league]
        if len(own):
            sentences.append(_over_models(words, own, tested=not untested))
    if not untested:
        sure = worst[worst["above"]]
        sentences.append(_of_controls(sure, "on every model"))
        sentences.append(_of_random_weights(sure, random_weights))
    return " ".join(filter(None, sentences))


def _over_models(words: str, rows: pd.DataFrame, *, tested: bool) -> str:
    """The lowest values of the methods of a league."""
    if not tested:
        return f"{words.capitalize()}: {_listed(rows)}."
    sure, others = rows[rows["above"]], rows[~rows["above"]]
    text = f"Of the {words}, above a random order on every model: {_listed(sure) or 'none'}"
    return f"{text}; not shown to be: {_listed(others)}." if len(others) else f"{text}."


def _listed(rows: pd.DataFrame) -> str:
    """Contenders with their values and, if there are several models, the model."""
    models = rows["model"] if "model" in rows else [""] * len(rows)
    named = zip(labels(rows), rows["value"], models, strict=True)
    return ", ".join(
        f"{name} {value:.2f}{f' ({model})' if model else ''}"
        if math.isfinite(value)
        else f"{name} undefined"
        for name, value, model in named
    )


def with_interval(value: float, low: float, high: float) -> str:
    """The numbers as text, omitting undefined numbers."""
    interval = f" [{low:.2f}, {high:.2f}]" if math.isfinite(low) else ""
    return f"{value:.2f}{interval}" if math.isfinite(value) else ""


def labels(rows: pd.DataFrame) -> Sequence[str]:
    """The contenders of a table in words, such as "attention (mean token)"."""
    pairs = zip(rows["method"], rows["score"], strict=True)
    return [f"{method} (mean token)" if score == "mean" else str(method) for method, score in pairs]
