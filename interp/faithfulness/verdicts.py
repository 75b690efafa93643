"""Conclusions: a verdict on each method, and one paragraph of advice."""

import math
from collections.abc import Sequence

import pandas as pd

from interp.choices import LENGTH, POSITION
from interp.faithfulness.ranking import COALITIONS, MODEL, league_of
from interp.faithfulness.trials import CONTROL
from interp.statistics.clusters import FEWEST

ADVISING = ("top_segment", "lds", "morf_lerf")
"""Metrics for advice; the first one that passes its check is used."""

TRUST, WEAKER, UNDECIDED, REFUTED = "trust", "weaker", "undecided", "refuted"

_KEY = ["method", "score"]

_UNTESTED = f"nothing was tested, since fewer than {FEWEST} clusters of prompts have a value"


def verdict_table(
    metrics: pd.DataFrame, checks: pd.DataFrame, differences: pd.DataFrame
) -> pd.DataFrame:
    """One row per method and score, by the advising metric, the best first.

    Columns are metric, title, league, method, score, value, corrected (for the best of the league,
    its value without the gain from being chosen), low, high, chance, p (that none of the league
    is better), may_be_best, verdict:
    trust: its interval lies above chance, and it may be the best;
    weaker: above chance, but worse than the best;
    refuted: worse than the best, and not shown to be above chance;
    undecided: neither, as far as the prompts show.
    Verdicts hold for all methods of the model together. There are no rows if no metric can be used.
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
    # The only method of a league has no other to be worse than.
    table["may_be_best"] = table["may_be_best"].ne(False)
    table["verdict"] = _verdicts(table["low"] > table["chance"], table["may_be_best"])
    table = table.sort_values("value", ascending=False, kind="stable")
    columns = ["metric", "title", "league", *_KEY, "value", "corrected", "low", "high", "chance"]
    return table[[*columns, "p", "may_be_best", "verdict"]].reset_index(drop=True)


def _verdicts(above: pd.Series, best: pd.Series) -> pd.Series:
    found = pd.Series(UNDECIDED, index=above.index)
    return found.mask(above & best, TRUST).mask(above & ~best, WEAKER).mask(~above & ~best, REFUTED)


def advice(
    model: str, described: str, verdicts: pd.DataFrame, metrics: pd.DataFrame, note: str = ""
) -> str:
    """One paragraph: what to trust for a model, how sure that is, and what is refuted.

    Args:
        model: its name.
        described: the prompts, such as "48 prompts".
        verdicts: rows of `verdict_table`.
        metrics: rows of `metric_table`, for the controls.
        note: further text.
    """
    if verdicts.empty:
        return (
            f"{model}: no advice. On {described} no metric ranked the oracle above the methods and "
            "these above a random order."
        )
    own = verdicts[verdicts["league"] == MODEL]
    first = verdicts.iloc[0]
    whether = "whether the" if first["metric"] == ADVISING[0] else "the"
    judged = f"{described} by {whether} {first['title']} (a random order: {first['chance']:.2f})"
    others = [
        _coalitions(verdicts[verdicts["league"] == COALITIONS]),
        f"Note: {note}." if note else "",
    ]
    if first[["low", "high"]].isna().all():
        values = f"{model}: {_UNTESTED}. Values on {judged}: {_values(own)}"
        return " ".join(filter(None, [values, *others]))
    sentences = [
        f"{model}: judged on {judged}.",
        _trusted(own),
        _trivial(metrics[metrics["metric"] == first["metric"]]),
        _named(own, WEAKER, "Better than a random order, but worse than the best"),
        _named(own, REFUTED, "Refuted, since worse than the best and not shown to be above chance"),
        _named(own, UNDECIDED, "Shown neither to be above chance nor to be worse than the best"),
        *others,
    ]
    return " ".join(filter(None, sentences))


def _values(rows: pd.DataFrame) -> str:
    """The values of methods on these prompts, without any test."""
    if rows.empty:
        return "no method that reads the model alone has one."
    return f"from {_listed(rows.iloc[:1])} to {_listed(rows.iloc[-1:])}."


def across_models(worst: pd.DataFrame, *, undefined: Sequence[str], untested: Sequence[str]) -> str:
    """One paragraph on several models: what each method is worth on its worst one.

    Args:
        worst: rows of `metric_table` with their model, one per method and score, of contenders with
            a value on each model: their lowest value; and above, whether the interval lies above a
            random order on every model.
        undefined: the models on which no contender has a value.
        untested: the models with too few clusters for an interval.
    """
    worst = worst[worst["score"] != CONTROL].sort_values("value", ascending=False, kind="stable")
    leagues = worst["method"].map(league_of)
    alone, coalitions = worst[leagues == MODEL], worst[leagues == COALITIONS]
    sentences = []
    if len(alone):
        sentences.append(_values_at_worst(alone) if untested else _above_on_all(alone))
    if len(coalitions):
        sentences.append(
            f"Of those that read donors' prompts, at worst: {_listed_with_models(coalitions)}."
        )
    if not sentences:
        return ""
    but = f" but {', '.join(undefined)}, where it is undefined" if undefined else ""
    over = f"Over all models{but}, by the top segment:"
    return " ".join([_not_tested(untested), over, *sentences]).strip()


def _not_tested(models: Sequence[str]) -> str:
    if not models:
        return ""
    return (
        f"On {', '.join(models)} {_UNTESTED}: no method is shown to be above a random order on "
        "every model, and none is shown not to be."
    )


def _values_at_worst(alone: pd.DataFrame) -> str:
    return (
        f"Of methods that read the model alone, the best where it does worst is "
        f"{_listed_with_models(alone.iloc[:1])}, the least {_listed_with_models(alone.iloc[-1:])}."
    )


def _above_on_all(alone: pd.DataFrame) -> str:
    sure = alone[alone["above"]]
    if len(sure):
        return f"Above a random order on every model: {_listed_with_models(sure)}."
    return (
        "No method that reads the model alone is shown to be above a random order on every model. "
        f"The best where it does worst is {_listed_with_models(alone.iloc[:1])}, the least "
        f"{_listed_with_models(alone.iloc[-1:])}."
    )


def _listed_with_models(rows: pd.DataFrame) -> str:
    found = zip(labels(rows), rows["value"], rows["model"], strict=True)
    return ", ".join(f"{name} {value:.2f} ({model})" for name, value, model in found)


def _trusted(rows: pd.DataFrame) -> str:
    trusted = rows[rows["verdict"] == TRUST]
    if rows.empty:
        return ""
    may = int(rows["may_be_best"].sum())
    among = (
        f" The best of these {len(rows)} is with 95% confidence one of the {may} that are not "
        "shown to be worse than another."
        if len(rows) > 1
        else ""
    )
    if trusted.empty:
        return f"No method that reads the model alone is shown to be better than chance.{among}"
    others = (
        f"; also above chance and not shown to be worse: {_listed(trusted.iloc[1:])}"
        if len(trusted) > 1
        else ""
    )
    first = trusted.iloc[0]
    (best,) = labels(trusted.iloc[:1])
    value = with_interval(*first[["value", "low", "high"]].to_numpy(float))
    return (
        f"Of the methods that read the model alone, trust {best} {value}"
        f"{_correction(first)}{others}.{among}"
    )


def _correction(best: pd.Series) -> str:
    """The highest of several values, corrected for being the highest."""
    corrected = f"{best['corrected']:.2f}"
    if not math.isfinite(best["corrected"]) or corrected == f"{best['value']:.2f}":
        return ""
    return f", {corrected} when corrected for being the highest"


def _trivial(metrics: pd.DataFrame) -> str:
    """A warning if a control that knows nothing about the model is better than a random order."""
    known = metrics[(metrics["score"] == CONTROL) & metrics["method"].isin((LENGTH, POSITION))]
    found = known[known["low"] > known["chance"]]
    if found.empty:
        return ""
    return (
        f"Beware: what does not look at the model is above a random order too ({_listed(found)}), "
        "so that this model alone cannot show that a method reads it."
    )


def of_random_weights(verdicts: pd.DataFrame, random_weights: pd.DataFrame) -> str:
    """A warning of trusted methods that are also above chance with random weights; empty if none.

    Args:
        verdicts: rows of `verdict_table`.
        random_weights: rows of `metric_table` for scores of the model with random weights.
    """
    if verdicts.empty or random_weights.empty:
        return ""
    above = random_weights[random_weights["low"] > random_weights["chance"]]
    found = above.merge(verdicts.loc[verdicts["verdict"] == TRUST, _KEY], on=_KEY)
    if found.empty:
        return ""
    return (
        "With random weights these are above chance too, so that they may read the prompt and not "
        f"the model: {_listed(found)}."
    )


def _coalitions(rows: pd.DataFrame) -> str:
    """A note on methods that are computed from the same values v(S) as the truth."""
    if rows.empty:
        return ""
    return (
        "Methods that read donors' prompts, as the truth itself does: "
        f"{_listed(rows)}; they cost more forward passes."
    )


def _named(rows: pd.DataFrame, verdict: str, words: str) -> str:
    found = rows[rows["verdict"] == verdict]
    return f"{words}: {_listed(found)}." if len(found) else ""


def _listed(rows: pd.DataFrame) -> str:
    named = zip(labels(rows), rows["value"], strict=True)
    return ", ".join(
        f"{name} {value:.2f}" if math.isfinite(value) else f"{name} undefined"
        for name, value in named
    )


def with_interval(value: float, low: float, high: float) -> str:
    """The numbers as text, without undefined ones."""
    interval = f" [{low:.2f}, {high:.2f}]" if math.isfinite(low) else ""
    return f"{value:.2f}{interval}" if math.isfinite(value) else ""


def label(method: str, score: str) -> str:
    """A contender for people, such as "attention (mean token)"."""
    return f"{method} (mean token)" if score == "mean" else method


def labels(rows: pd.DataFrame) -> Sequence[str]:
    """The labels of the contenders of a table."""
    return [label(*pair) for pair in zip(rows["method"], rows["score"], strict=True)]
