"""The page: a verdict on each method, tables and figures."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from interp.analysis.cautions.caution import GAP, PATHS, TEXTS, Caution, ordered
from interp.console import counted
from interp.estimates.declared import Share, Table
from interp.estimates.shown import Estimated
from interp.judging import EFFECTS, GIVEN, SCORES
from interp.judging.deciding import deciding_item, spread_cautions
from interp.judging.first_screen import first_screen
from interp.judging.metrics import METRICS
from interp.judging.results import ModelResults, read_results, segments_of, shares_of
from interp.judging.trials import CONTROL
from interp.judging.verdicts import ADVISING, at_worst, labels, with_intervals
from interp.measurements.attribution.show import Attributions
from interp.measurements.effects.show import SegmentEffects
from interp.report.formatting import segment_label
from interp.report.page import Report, Section, TableItem, apart
from interp.results.given import cautions_about
from interp.results.measured import InFolder
from interp.runs.shards import Filters
from interp.studies.folder import StudyFolder
from interp.tables import TEXT, column

_TEXT = (
    "The judged segments are {segments}; the rest of each prompt is unchanged. Effects of segments "
    "are measured by donors that replace them: v(S) is the logit of the model's own answer minus "
    "that of the other, with the segments of S kept. Scores are compared with the Shapley values "
    "of v. Methods that are computed from the same values v(S) cost more forward passes and are "
    "ranked separately. The 95% intervals are over clusters of prompts and hold simultaneously "
    "for all methods of a metric, and thus also for the best method. Verdicts hold for these "
    "models and prompts: how methods rank on one model says little of another, unless the same "
    "segment decides in both."
)


class _OtherTools(InFolder):
    """Scores of other tools without their targets, which some folders have beside the method."""

    def _parts(
        self, name: str, columns: Sequence[str] | None, filters: Filters | None
    ) -> Iterator[pd.DataFrame]:
        for part in super()._parts(name, columns, filters):
            yield part.assign(target="") if "target" in part else part


def report_of(folder: StudyFolder) -> Report:
    """The report on a finished or unfinished study (UserError: there is nothing to judge yet)."""
    results = read_results(folder)
    answers, scores = (cautions_about(InFolder(folder.runs[run])) for run in (EFFECTS, SCORES))
    paths = [caution for caution in scores if caution.kind in (PATHS, GAP)]
    deciding = deciding_item(folder, results)
    spread = spread_cautions(deciding.frame)
    objections = ordered([*answers, *paths, *spread, *_few_scores(results)])
    metrics, random_weights = _joined(results, "metrics"), _joined(results, "random_weights")
    measured = SegmentEffects.of(folder.runs[EFFECTS])
    browser = measured.browser()
    for stage, tables in ((SCORES, InFolder), (GIVEN, _OtherTools)):
        if folder.has(stage):
            browser = browser.beside(Attributions(tables(folder.runs[stage])).browser())
    shares, distances = pd.concat([shares_of(model.model, model.trials) for model in results]), None
    if "share" in shares:
        distances = distances_of(shares.merge(measured.prompts[["prompt_id", "pair_id"]]))
        browser = replace(browser, numbers=(*browser.numbers, *distances.links()))
    return Report(
        title="Faithfulness of attribution",
        text=_TEXT.format(segments=segments_of(results))
        + " Scores of other tools are ranked with the methods that use only the model."
        * any(model.scored for model in results),
        glance=first_screen(results, metrics, random_weights, objections),
        sections=(
            _verdict_section(results, metrics, deciding),
            _ranking_section(results, metrics),
            _share_section(results, distances),
            Section(
                "Which metrics can be used",
                "A metric is void if the oracle is not above the reversed oracle. A metric is "
                "used for advice only if no method is above the oracle, the median "
                "method is above a random order, and the reversed oracle is below a random order. "
                "A ratio is not used if its divisor, v(N) - v(0), is close to zero.",
                (TableItem("checks", "How metrics rank the controls", _joined(results, "checks")),),
            ),
            _random_section(random_weights),
        ),
        record=folder.provenance(),
        problems=tuple(folder.problems()),
        browser=browser,
    )


def _few_scores(results: Sequence[ModelResults]) -> Iterator[Caution]:
    """For each model and other tool, how many of the judged prompts have its scores, if not all."""
    for model in results:
        for name, scored in model.scored.items():
            if scored < model.prompts:
                yield Caution(
                    TEXTS,
                    model.model,
                    f"{name} has scores for {scored:,} of {counted(model.prompts, 'judged prompt')}"
                    + ", and is judged on these alone, as are the methods beside it" * bool(scored)
                    + ".",
                    numbers={"scores": name, "scored": scored, "prompts": model.prompts},
                )


def _verdict_section(
    results: Sequence[ModelResults], metrics: pd.DataFrame, deciding: TableItem
) -> Section:
    verdicts = _joined(results, "verdicts")
    judged = "; ".join(f"{model.model}: {model.described}" for model in results)
    return Section(
        "Which method to trust",
        f"Judged prompts: {judged}.",
        (
            TableItem(
                "verdicts",
                "Verdict on each method",
                verdicts,
                "The value for each model with its 95% interval, and the verdict. trust: the "
                "interval lies above chance, and the method may be the best of its league. weaker: "
                "above chance, but worse than the best. refuted: worse than the best, and not "
                "shown to be above chance. undecided: shown neither to be above chance nor to be "
                "worse than the best. not tested: no interval, as with too few clusters. The file "
                "has two more columns. p: p-value for the hypothesis "
                "that no other method of the league is better, corrected for all pairs; methods "
                "with p above 0.05 may be the best, and include the best with 95% confidence. "
                "corrected: the highest value, corrected by a bootstrap for the bias of selection. "
                "n: fewer prompts than the methods have, because a file has no scores of others.",
                display=verdict_matrix(verdicts),
            ),
            deciding,
            *worst_items(metrics),
        ),
    )


def verdict_matrix(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row per method and one column per model: the value with its interval, and the verdict."""
    if verdicts.empty or "league" not in verdicts:
        return verdicts
    few = verdicts["prompts"] < verdicts.groupby("model")["prompts"].transform("max")
    counts = (" (n = " + verdicts["prompts"].astype(str) + ")").where(few, "")
    said = pd.Series(with_intervals(verdicts), verdicts.index) + " " + verdicts["verdict"] + counts
    table = verdicts.assign(method=labels(verdicts), said=said)
    keys = ["method", "league"]
    order = table.groupby(keys, sort=False)["value"].mean().sort_values(ascending=False).index
    models = table["model"].unique().tolist()
    wide = table.pivot(index=keys, columns="model", values="said").loc[order, models].fillna("")
    return wide.set_axis(apart(models, "model", keys), axis="columns").reset_index()


def _ranking_section(results: Sequence[ModelResults], metrics: pd.DataFrame) -> Section:
    titles = "; ".join(f"{metric.name}: {metric.title}" for metric in METRICS)
    return Section(
        "Methods by metrics",
        "A segment's score is the sum of its tokens' scores or, if marked (mean token), their "
        "mean. Metrics of sizes compare absolute scores; metrics of coalitions and orders use "
        "signed scores.",
        (
            TableItem(
                "methods_by_metrics",
                "Methods by metrics",
                pd.concat([_wide(model) for model in results], ignore_index=True),
                "Value and 95% interval. The last rows are controls: a perfect, a reversed and a "
                "random order, and scores by length only and by position only. void: this metric "
                "ranks the perfect order no higher than the reversed one on this model, so its "
                f"values say nothing about methods. Blank: undefined. {blanks(metrics)} {titles}. "
                "cmd: lower is better.",
            ),
            TableItem(
                "differences",
                "The best method of each league compared with the others",
                _joined(results, "differences"),
                "Differences on the same prompts, positive if the best method is better. "
                "Intervals hold simultaneously for all pairs of methods in the metric and league "
                "(Gaffke's bound over clusters). p: p-value for the hypothesis that no other "
                "method is better, from the same bounds, with a step-down correction.",
            ),
            TableItem(
                "metrics",
                "All values",
                pd.concat([metrics, _joined(results, "partly")], ignore_index=True),
            ),
        ),
    )


def worst_items(metrics: pd.DataFrame) -> tuple[TableItem, ...]:
    """The lowest value of each method and control, if there are several models."""
    if metrics["model"].nunique() < 2:
        return ()
    worst = at_worst(metrics[(metrics["metric"] == ADVISING[0]) & ~metrics["void"]])
    columns = ["contender", "model", "value", "low", "high", "chance"]
    item = TableItem(
        "worst",
        "How often the top segment is found, on the least favorable model",
        worst.assign(contender=labels(worst))[columns],
        "Length or position may identify the top segment of one model, but only a method that "
        "uses the models can identify that of every model.",
    )
    return (item,)


DISTANCES = Table(
    name="share_distances",
    title="Distances from the exact share",
    text="How far each method's share of the compared segments lies from the exact share, prompt "
    "by prompt.",
    by=["contender", "model"],
    measured="segment_scores",
    numbers=[
        Share(
            *("distance", "mean distance from the exact share, from 0 to 1", "share"),
            ends=("low", "high"),
            continuous=True,
        )
    ],
    trials="prompts",
    more=[column("contender", TEXT, "the method, with (mean token) for the mean over tokens")],
)


def distances_of(shares: pd.DataFrame) -> Estimated:
    """Mean distances of methods' shares from the exact ones: rows of `shares_of` with pair_id."""
    distance = (shares["share"] - shares["exact_share"]).abs()
    rows = shares.assign(contender=labels(shares), distance=distance)
    return Estimated(DISTANCES, rows.dropna(subset="distance"))


def _share_section(results: Sequence[ModelResults], distances: Estimated | None) -> Section:
    if distances is None:
        return Section("Shares", "The system does not specify two segments to compare.")
    by = distances.trials.groupby(["model", "contender"], sort=False)
    means = by[["share", "exact_share"]].mean().reset_index()
    ratio = next(trials.ratio for model in results for trials in model.trials if trials.ratio)
    above, below = map(segment_label, ratio)
    return Section(
        "Shares",
        f"The share of {above} in the absolute scores of {below} and {above}, prompt by prompt. A "
        "perfect method would match the exact share, which is computed from the Shapley values, in "
        "every prompt.",
        (
            distances.item,
            TableItem("shares", "Mean shares", means, "Prompts in which both are defined."),
        ),
    )


def _random_section(table: pd.DataFrame) -> Section:
    if table.empty:
        return Section("Random weights", "The reinitialized model was omitted.")
    title = "Top segment by scores of the model with random weights"
    return Section(
        "Random weights",
        "The same methods on the same architecture with random weights, compared with the "
        "effects of the trained model. A method whose interval lies above chance may depend on the "
        "prompt rather than the model.",
        (TableItem("reinitialized", title, table),),
    )


def blanks(metrics: pd.DataFrame) -> str:
    """The requirements of those metrics that are undefined for at least one method."""
    blank = set(metrics.loc[(metrics["score"] != CONTROL) & metrics["value"].isna(), "metric"])
    needs = [f"{metric.name} needs {metric.needs}" for metric in METRICS if metric.name in blank]
    return f"{'; '.join(needs)}." if needs else ""


def _wide(model: ModelResults) -> pd.DataFrame:
    """One row per contender and one column per metric: each value with its interval, as text."""
    texts = [text.replace("−", "-") for text in with_intervals(model.metrics)]
    table = model.metrics.assign(text=texts, contender=labels(model.metrics))
    # The controls keep their values, which show why the others are void.
    table.loc[table["void"] & (table["score"] != CONTROL), "text"] = "void"
    wide = table.pivot(index="contender", columns="metric", values="text")
    wide = wide.loc[table["contender"].unique(), table["metric"].unique()].reset_index()
    wide.insert(0, "model", model.model)
    return wide


def _joined(results: Sequence[ModelResults], name: str) -> pd.DataFrame:
    parts: dict[str, pd.DataFrame] = {model.model: getattr(model, name) for model in results}
    return pd.concat(parts, names=["model", None]).reset_index("model").reset_index(drop=True)
