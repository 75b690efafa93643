"""The page: a verdict on each method, tables and figures."""

import math
from collections.abc import Sequence
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
from interp.faithfulness.results import ModelResults, read_results, segments_of, shares_of
from interp.faithfulness.trials import CONTROL
from interp.faithfulness.verdicts import ADVISING, across_models, at_worst, labels, with_interval
from interp.models.organisms import PREFIX
from interp.report.figures.style import DIVERGING, PALE, QUIET, house_style, look, new_axes
from interp.report.formatting import number_text, segment_label
from interp.report.page import FigureItem, Report, Section, TableItem
from interp.studies.folder import StudyFolder

PANELS_A_ROW = 4
"""Number of panels in a row of a figure of shares."""

_TEXT = (
    "{models}. The judged segments are {segments}; the rest of each prompt is unchanged. Their "
    "effects are measured by replacing them with donors: v(S) is the logit of the model's own "
    "answer over "
    "the other, with the segments of S kept. Scores are compared with the Shapley values of this "
    "game. Methods that are computed from the same values v(S) cost more forward passes and are "
    "ranked separately. The 95% intervals are over clusters of prompts and hold simultaneously "
    "for all methods of a metric, and thus also for the best method."
)

_ORGANISMS = (
    " The packaged organisms ({prefix}...) are small models made for this project: verdicts on "
    "them may not hold for other models."
)


def report_of(folder: StudyFolder) -> Report:
    """The report on a finished or unfinished study.

    Raises: UserError: there is nothing to judge yet.
    """
    results = read_results(folder)
    trials = [own for model in results for own in model.trials]
    text = _TEXT.format(models=counted(len(results), "model"), segments=segments_of(trials))
    if any(own.model.startswith(PREFIX) for own in results):
        text += _ORGANISMS.format(prefix=PREFIX)
    metrics, random_weights = _joined(results, "metrics"), _joined(results, "random_weights")
    top = metrics[metrics["metric"] == ADVISING[0]]
    paragraphs = [across_models(top, random_weights), *(own.answer for own in results)]
    answer = "\n\n".join(filter(None, paragraphs))
    return Report(
        title="Faithfulness of attribution",
        text=text,
        sections=(
            Section("Which method to trust", answer),
            _ranking_section(results, metrics),
            _share_section(results),
            Section(
                "Which metrics can be used",
                "A metric is used for advice only if no method is above the oracle, the median "
                "method is above a random order, and the reversed oracle is below that order. A "
                "ratio is not used if its divisor, v(N) - v(0), is close to zero.",
                (TableItem("checks", "How metrics rank the controls", _joined(results, "checks")),),
            ),
            _random_section(random_weights),
        ),
        record=folder.provenance(),
        problems=tuple(folder.problems()),
        answer=answer,
    )


def _ranking_section(results: Sequence[ModelResults], metrics: pd.DataFrame) -> Section:
    """Methods by metrics."""
    titles = "; ".join(f"{metric.name}: {metric.title}" for metric in METRICS)
    figures = [
        FigureItem(
            f"methods_by_metrics_{number}",
            f"Methods by metrics, {own.model}",
            partial(methods_by_metrics, standings(own.metrics, own.checks)),
            f"n = {own.prompts} prompts from {own.clusters} clusters{_fewer(own)}. {titles}. cmd: "
            f"lower is better. Grey: undefined. {blanks(own.metrics)}{_left_out(own.checks)}",
        )
        for number, own in enumerate(results, start=1)
    ]
    return Section(
        "Methods by metrics",
        "Scores of a segment are summed over its tokens, or (mean token) divided by their number. "
        "Metrics of sizes compare absolute scores; metrics of coalitions and orders use signed "
        "scores.",
        (
            TableItem(
                "methods_by_metrics",
                "Methods by metrics",
                pd.concat([_wide(own) for own in results], ignore_index=True),
                "Value and 95% interval. The last rows are controls: a perfect, a reversed and a "
                "random order, and scores by length only and by position only. "
                f"Blank: undefined. {blanks(metrics)}",
            ),
            *figures,
            TableItem(
                "verdicts",
                "Verdict on each method",
                _joined(results, "verdicts"),
                "trust: the interval lies above chance, and the method may be the best of its "
                "league. weaker: above chance, but worse than the best. refuted: worse than the "
                "best, and not shown to be above chance. undecided: shown neither to be above "
                "chance nor to be worse than the best. p: that no other "
                "method of the league is better, corrected for all pairs. Methods with p above "
                "0.05 may be the best; together they include the best with 95% confidence. "
                "corrected: the highest value, corrected by a bootstrap for having been selected "
                "as the highest.",
            ),
            TableItem(
                "differences",
                "The best method of each league against the others",
                _joined(results, "differences"),
                "Differences on the same prompts, positive if the best method is better. "
                "Intervals hold simultaneously for all pairs of methods in the metric and league "
                "(Gaffke's bound over clusters). p: "
                "that no other method is better, from the same bounds, with a step-down "
                "correction.",
            ),
            *worst_items(metrics),
            TableItem("metrics", "All values", metrics),
        ),
    )


def worst_items(metrics: pd.DataFrame) -> tuple[TableItem, ...]:
    """The lowest value of each method and control, if there are several models."""
    if metrics["model"].nunique() < 2:
        return ()
    worst = at_worst(metrics[metrics["metric"] == ADVISING[0]])
    columns = ["contender", "model", "value", "low", "high", "chance"]
    return (
        TableItem(
            "worst",
            "How often the top segment is found, on the least favourable model",
            worst.assign(contender=labels(worst))[columns],
            "Length and position may identify the right segment of one model; only a method that "
            "reads the models can identify it for every model.",
        ),
    )


def _share_section(results: Sequence[ModelResults]) -> Section:
    """Shares of the compared segments, plotted against the exact shares."""
    parts = [part for own in results if len(part := shares_of(own.model, own.trials))]
    if not parts:
        return Section("Shares", "The system compares no two segments.")
    table = pd.concat(parts, ignore_index=True)
    table = table.assign(contender=labels(table))
    means = table.groupby(["model", "contender"], sort=False)[["share", "exact_share"]].mean()
    ratio = next(own.ratio for model in results for own in model.trials if own.ratio)
    above, below = map(segment_label, ratio)
    return Section(
        "Shares",
        f"The share of {above} in the absolute scores of {below} and {above}, prompt by prompt. A "
        "method that measures reliance lies on the diagonal.",
        (
            FigureItem(
                "shares_by_method",
                "Share by each method against the exact share",
                partial(shares_by_method, table),
                "One dot for each prompt; n counts prompts. Dotted: equal shares.",
            ),
            TableItem("shares", "Mean shares", means.reset_index()),
        ),
    )


def _random_section(table: pd.DataFrame) -> Section:
    """Scores of the model with random weights."""
    if table.empty:
        return Section("Random weights", "The re-initialised model was omitted.")
    return Section(
        "Random weights",
        "The same methods on the same architecture with random weights, compared with the "
        "effects of the trained model. A method with an interval above chance may read the "
        "prompt rather "
        "than the model.",
        (
            TableItem(
                "reinitialized", "Top segment by scores of the model with random weights", table
            ),
        ),
    )


def _fewer(own: ModelResults) -> str:
    """The number of prompts of metrics that are undefined in some prompts."""
    prompts = own.metrics.groupby("metric", sort=False)["prompts"].first()
    fewer = [f"{name} {n}" for name, n in prompts.items() if 0 < n < own.prompts]
    return f" (fewer for {', '.join(fewer)})" if fewer else ""


def blanks(metrics: pd.DataFrame) -> str:
    """The requirements of metrics that are undefined for at least one method."""
    values = metrics[metrics["score"] != CONTROL]
    undefined = set(values.loc[values["value"].isna(), "metric"])
    needs = [
        f"{metric.name} needs {metric.needs}" for metric in METRICS if metric.name in undefined
    ]
    return f"{'; '.join(needs)}." if needs else ""


def _left_out(checks: pd.DataFrame) -> str:
    """The metrics that a figure omits because of their divisor, and why."""
    reasons = checks[~checks["divisor"]].groupby("problem", sort=False)["metric"]
    told = "; ".join(f"{', '.join(names)} ({problem})" for problem, names in reasons)
    return f" Left out: {told}." if told else ""


def standings(metrics: pd.DataFrame, checks: pd.DataFrame) -> pd.DataFrame:
    """The metrics with contender and standing: 0 for a random order, 1 for the oracle.

    Metrics that are undefined for every method, or have a divisor close to zero, are omitted.
    """
    methods = metrics[metrics["score"] != CONTROL].dropna(subset=["value"])
    shown = set(methods["metric"]) & set(checks.loc[checks["divisor"], "metric"])
    metrics = metrics[metrics["metric"].isin(shown)]
    controls = metrics[metrics["score"] == CONTROL].pivot(
        index="metric", columns="method", values="value"
    )
    random, oracle = (metrics["metric"].map(controls[name]) for name in (RANDOM, ORACLE))
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


def _joined(results: Sequence[ModelResults], name: str) -> pd.DataFrame:
    """One table for all models, stacked vertically."""
    parts: dict[str, pd.DataFrame] = {own.model: getattr(own, name) for own in results}
    joined = pd.concat(parts, names=["model", None]).reset_index(level="model")
    return joined.reset_index(drop=True)


def methods_by_metrics(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """A cell for each contender and metric with its value, coloured from random order to oracle.

    Args:
        table: rows of one model: contender, metric, value, standing (0 for a random order, 1 for
            the oracle).
        ax: the axes to draw on; a new figure if None.
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
    """Write each value into its cell."""
    for (row, column), value in np.ndenumerate(values):
        dark = np.nan_to_num(abs(standing[row, column])) > 0.6
        text = f"{round(float(value), 2) + 0.0:.2f}".replace("-", "−") if np.isfinite(value) else ""
        colour = "w" if dark else "k"
        ax.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)


def shares_by_method(table: pd.DataFrame) -> Axes:
    """A panel for each contender: its share of a segment against the exact share, by prompt.

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
