"""The page: an answer, one table, two figures, and the tables behind them."""

import math
from functools import partial

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from interp.choices import ORACLE, RANDOM
from interp.console import counted
from interp.faithfulness.metrics import METRICS
from interp.faithfulness.results import ModelResults, read_results
from interp.faithfulness.trials import CONTROL
from interp.faithfulness.verdicts import ADVISING, across_models, labels, with_interval
from interp.report.figures.style import DIVERGING, PALE, QUIET, house_style, look, new_axes
from interp.report.formatting import number_text
from interp.report.page import FigureItem, Item, Report, Section, TableItem
from interp.studies.folder import StudyFolder

PANELS_A_ROW = 4
"""Panels in a row of a figure of shares."""

_TEXT = (
    "What segments do is measured by donors that replace them: v(S) is the logit of the "
    "model's own answer over the other, the segments of S kept. Shapley values of this game are "
    "the truth that scores are held against. Methods that are computed from the same values v(S) "
    "are ranked separately. Intervals are 95% over clusters of prompts and hold for all methods of "
    "a metric together, so for the best of them too."
)


def report_of(folder: StudyFolder) -> Report:
    """The report on a study, finished or not.

    Raises:
        UserError: there is nothing to judge yet.
    """
    results = read_results(folder)
    across = _across(results)
    answer = "\n\n".join(filter(None, [across, *(own.answer for own in results)]))
    return Report(
        title="Faithfulness of attribution",
        text=f"{counted(len(results), 'model')}. {_TEXT}",
        sections=(
            Section("Which method to trust", answer),
            _ranking_section(results),
            _share_section(results),
            _check_section(results),
            _random_section(results),
        ),
        record=folder.provenance(),
        problems=tuple(folder.problems()),
        answer=answer,
    )


def _ranking_section(results: list[ModelResults]) -> Section:
    """Methods by metrics."""
    titles = "; ".join(f"{metric.name}: {metric.title}" for metric in METRICS)
    items: list[Item] = [
        FigureItem(
            f"methods_by_metrics_{number}",
            f"Methods by metrics, {own.model}",
            partial(methods_by_metrics, standings(own.metrics, own.checks)),
            f"n = {own.prompts} prompts of {own.clusters} clusters; some metrics leave out prompts "
            f"whose effects hardly differ. {titles}. cmd: lower is better. Grey: "
            f"undefined.{_left_out(own.checks)}",
        )
        for number, own in enumerate(results, start=1)
    ]
    wide = pd.concat([_wide(own) for own in results], ignore_index=True)
    verdicts = _joined(results, "verdicts")
    return Section(
        "Methods by metrics",
        "Scores of a segment are summed over its tokens, or (mean token) divided by their number. "
        "Metrics of sizes compare absolute scores; metrics of coalitions and orders take scores "
        "with their sign.",
        (
            TableItem(
                "methods_by_metrics",
                "Methods by metrics",
                wide,
                "Value and 95% interval. Rows below the methods are controls: what a perfect, a "
                "reversed and a random order are worth, and what length and place alone are.",
            ),
            *items,
            TableItem(
                "verdicts",
                "Verdict on each method",
                verdicts,
                "trust: the interval lies above chance, and the method may be the best of its "
                "league. weaker: above chance, but worse than the best. refuted: worse than the "
                "best, and not shown to be above chance. undecided: neither. p is that no other "
                "method of the league is better, corrected for all pairs; above 0.05 a method may "
                "be the best, and these hold the best with 95% confidence. corrected: the highest "
                "value without what it owes to being the highest, estimated by a bootstrap.",
            ),
            TableItem(
                "differences",
                "The best method of each league against the others",
                _joined(results, "differences"),
                "On the same prompts; positive if the best is better. Intervals are for all pairs "
                "of methods of the metric and league together. p by random signs of clusters: that "
                "no other method is better, corrected step by step by the largest statistic.",
            ),
            *worst_items(results),
            TableItem("metrics", "All values", _joined(results, "metrics")),
        ),
    )


def worst_items(results: list[ModelResults]) -> tuple[TableItem, ...]:
    """The worst result of each method and control, if there are several models."""
    if len(results) < 2:
        return ()
    worst = _worst(results)
    columns = ["contender", "model", "value", "low", "high", "chance"]
    return (
        TableItem(
            "worst",
            "The top segment, on the model where a method finds it least often",
            worst.assign(contender=labels(worst))[columns],
            "Length and place may name the right segment of one model; a method that reads the "
            "models names that of each.",
        ),
    )


def _across(results: list[ModelResults]) -> str:
    """A paragraph on methods over all models; empty if fewer than two can be judged."""
    known = _advising(results)
    judged = known["model"].unique()
    if len(judged) < 2:
        return ""
    methods = known[known["score"] != CONTROL]
    return across_models(
        _worst(results),
        undefined=[own.model for own in results if own.model not in judged],
        untested=[str(name) for name in judged if _no_interval(methods, name)],
    )


def _no_interval(methods: pd.DataFrame, model: str) -> bool:
    return bool(methods.loc[methods["model"] == model, "low"].isna().all())


def _advising(results: list[ModelResults]) -> pd.DataFrame:
    """All values of the metric that advises first."""
    table = _joined(results, "metrics")
    return table[table["metric"] == ADVISING[0]].dropna(subset=["value"]).reset_index(drop=True)


def _worst(results: list[ModelResults]) -> pd.DataFrame:
    """The row of each contender's lowest value, if it has a value on each judged model."""
    table = _advising(results)
    by_contender = table.groupby(["method", "score"], sort=False)
    everywhere = by_contender["model"].transform("nunique") == table["model"].nunique()
    table = table.assign(above=table["low"] > table["chance"])[everywhere]
    above = table.groupby(["method", "score"], sort=False)["above"].transform("all")
    table = table.assign(above=above)
    lowest = table.groupby(["method", "score"], sort=False)["value"].idxmin()
    return table.loc[lowest].sort_values("value", ascending=False)


def _share_section(results: list[ModelResults]) -> Section:
    """Shares of the compared segments, against the exact ones."""
    parts = [part for own in results if len(part := own.shares())]
    if not parts:
        return Section("Shares", "The system compares no two segments.")
    table = pd.concat(parts, ignore_index=True)
    table = table.assign(contender=labels(table))
    means = table.groupby(["model", "contender"], sort=False)[["share", "exact_share"]].mean()
    return Section(
        "Shares",
        "The second compared segment's part of the absolute scores of both, prompt by prompt: a "
        "method that measures reliance lies on the diagonal.",
        (
            FigureItem(
                "shares_by_method",
                "Share by each method against the exact share",
                partial(shares_by_method, table),
                "A point for each prompt. Dotted: equal shares.",
            ),
            TableItem("shares", "Mean shares", means.reset_index()),
        ),
    )


def _check_section(results: list[ModelResults]) -> Section:
    return Section(
        "Which metrics can be used",
        "A metric is used for advice only if it puts the oracle below no method, the middle "
        "method above a random order, and the reversed oracle below that. A ratio is not used "
        "where what it divides by, v(N) - v(0), is next to nothing.",
        (
            TableItem(
                "checks", "What each metric says of what is known", _joined(results, "checks")
            ),
        ),
    )


def _random_section(results: list[ModelResults]) -> Section:
    """Scores of the model with random weights."""
    table = _joined([own for own in results if own.reinitialized], "random_weights")
    if table.empty:
        return Section("Random weights", "The re-initialised model was left out.")
    return Section(
        "Random weights",
        "The same methods on the same architecture with random weights, held against the effects "
        "of the trained model. If an interval lies above chance, the method may read the prompt "
        "rather "
        "than the model.",
        (
            TableItem(
                "reinitialized", "Top segment by scores of the model with random weights", table
            ),
        ),
    )


def _left_out(checks: pd.DataFrame) -> str:
    """The metrics that a figure omits because of their divisor, and why."""
    reasons = checks[~checks["divisor"]].groupby("problem", sort=False)["metric"]
    told = "; ".join(f"{', '.join(names)} ({problem})" for problem, names in reasons)
    return f" Left out: {told}." if told else ""


def standings(metrics: pd.DataFrame, checks: pd.DataFrame) -> pd.DataFrame:
    """The metrics with contender and standing: 0 for a random order, 1 for the oracle.

    Metrics that are undefined for every method are omitted, and those that divide by next to
    nothing.
    """
    divisible = checks.loc[checks["divisor"], "metric"]
    of_methods = metrics[metrics["score"] != CONTROL].dropna(subset=["value"])
    of_methods = of_methods[of_methods["metric"].isin(divisible)]
    metrics = metrics[metrics["metric"].isin(of_methods["metric"])]
    of_controls = metrics[metrics["score"] == CONTROL].pivot(
        index="metric", columns="method", values="value"
    )
    random, oracle = (metrics["metric"].map(of_controls[name]) for name in (RANDOM, ORACLE))
    span = (oracle - random).where(lambda own: own.abs() > 1e-9)
    return metrics.assign(contender=labels(metrics), standing=(metrics["value"] - random) / span)


def _wide(own: ModelResults) -> pd.DataFrame:
    """One row per contender, a column per metric with its interval as text."""
    texts = [with_interval(*row) for row in own.metrics[["value", "low", "high"]].to_numpy()]
    table = own.metrics.assign(text=texts, contender=labels(own.metrics))
    wide = table.pivot(index="contender", columns="metric", values="text")
    wide = wide.loc[table["contender"].unique(), table["metric"].unique()].reset_index()
    wide.insert(0, "model", own.model)
    return wide


def _joined(results: list[ModelResults], name: str) -> pd.DataFrame:
    """One table of all models, one below the other."""
    parts = []
    for own in results:
        table: pd.DataFrame = getattr(own, name).copy()
        table.insert(0, "model", own.model)
        parts.append(table)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def methods_by_metrics(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """A cell for each contender and metric: its value, coloured from a random order to the oracle.

    Args:
        table: rows of one model: contender, metric, value, standing (0 for a random order, 1 for
            the oracle).
        ax: where to draw; a new figure if None.
    """
    rows, columns = table["contender"].unique(), table["metric"].unique()
    shown, standing = (
        table.pivot(index="contender", columns="metric", values=name).loc[rows, columns]
        for name in ("value", "standing")
    )
    with house_style():
        ax = ax or new_axes(width=3.2 + 0.72 * len(columns), height=1.6 + 0.27 * len(rows))
        ax.grid(visible=False)
        ax.tick_params(length=0)
        ax.set_facecolor(PALE)
        image = ax.imshow(
            np.ma.masked_invalid(standing.to_numpy(float)),
            cmap=DIVERGING,
            norm=TwoSlopeNorm(0, -1, 1),
            aspect="auto",
        )
        ax.figure.colorbar(
            image, ax=ax, shrink=0.7, pad=0.02, label="0: random order, 1: oracle", extend="both"
        )
        _write(ax, shown.to_numpy(float), standing.to_numpy(float))
        ax.set_yticks(range(len(rows)), list(rows))
        ax.set_xticks(range(len(columns)), [str(name).replace("_", "\n") for name in columns])
        ax.xaxis.tick_top()
        return ax


def _write(
    ax: Axes,
    values: Float[np.ndarray, "contender metric"],
    standing: Float[np.ndarray, "contender metric"],
) -> None:
    """Each value into its cell."""
    for (row, column), value in np.ndenumerate(values):
        dark = np.nan_to_num(abs(standing[row, column])) > 0.6
        text = f"{round(float(value), 2) + 0.0:.2f}".replace("-", "−") if np.isfinite(value) else ""
        colour = "w" if dark else "k"
        ax.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)


def shares_by_method(table: pd.DataFrame) -> Axes:
    """A panel for each contender: its share of a segment against the exact one, by prompt.

    Args:
        table: contender, model, share, exact_share: one row per prompt.
    """
    contenders, models = table["contender"].unique(), table["model"].unique()
    across = min(PANELS_A_ROW, len(contenders))
    down = math.ceil(len(contenders) / across)
    with house_style():
        figure = Figure(figsize=(2.5 * across + 2.4, 2.1 * down + 0.5))
        panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
        for panel, name in zip(panels.flat, contenders, strict=False):
            _panel(panel, table[table["contender"] == name], list(models))
            panel.set_title(str(name), loc="left", fontsize=8)
        for panel in list(panels.flat)[len(contenders) :]:
            panel.set_visible(False)
        for panel in panels[-1]:
            panel.set_xlabel("exact share")
        for panel in panels[:, 0]:
            panel.set_ylabel("share")
        first: Axes = panels.flat[0]
        handles, names = first.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside right upper")
        return first


def _panel(ax: Axes, rows: pd.DataFrame, models: list[str]) -> None:
    ax.plot([0, 1], [0, 1], color=QUIET, linewidth=0.8, linestyle=":")
    for index, model in enumerate(models):
        own = rows[rows["model"] == model].dropna(subset=["share", "exact_share"])
        style = look(index)
        label = f"{model} (n = {number_text(len(own))})"
        ax.scatter(
            own["exact_share"],
            own["share"],
            s=12,
            marker=style.marker,
            color=style.colour,
            alpha=0.5,
            linewidths=0,
            label=label,
        )
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.03, 1.03)
