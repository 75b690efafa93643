"""The small tables of attribution scores, beside accuracy."""

from collections.abc import Iterator, Sequence
from functools import partial

import pandas as pd

from interp.analysis.accuracy import accuracy_table
from interp.analysis.attribution_table import attribution_table
from interp.analysis.decisive import decisive_table
from interp.analysis.segments import TABLE_COLUMNS, segment_table
from interp.report.console import mean_with_sd
from interp.report.formatting import accuracy_columns, segment_label
from interp.report.results import Results
from interp.report.run_tables import run_finds, run_ratios
from interp.results.notes import summarize
from interp.runs.folder import RunFolder


def of_attributions(run: RunFolder) -> Results:
    """Scores by segment next to accuracy, one row per model; ratios where segments are compared."""
    answers = run.table("answers", ["model", "prompt_id", "answer", "correct", "error"])
    by_segment = segment_table(run.table("segment_scores", TABLE_COLUMNS))
    by_model, failed = _by_model(run, answers)
    ratio = run.record.run.ratio
    tables = {"segment_table": by_segment}
    tables["accuracy_table" if ratio is None else "attribution_table"] = by_model
    scores = _shares(by_segment) if ratio is None else _ratios(by_model, ratio)
    shown = [("Accuracy", by_model.loc[:, ["model", *accuracy_columns(by_model)]])]
    shown += [(f"{title}: mean (sd) over prompts", table) for title, table in scores]
    found = run_finds(run)
    if found.empty:
        return Results(tables, shown, summarize(answers, failed))
    # matplotlib is imported for those alone who have something to draw.
    from interp.report.figures.bars import decisive_segments, decisive_title

    tables["decisive_table"] = table = decisive_table(found)
    shown.append((decisive_title(run.record.run.decisive), table))
    figures = {"decisive_segments": partial(decisive_segments, table)}
    return Results(tables, shown, summarize(answers, failed), figures)


def _by_model(run: RunFolder, answers: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One row per model: accuracies, and ratios where segments are compared; and what failed."""
    prompts = run.table("prompts", ["prompt_id", "pair_id", "side", "weight"])
    if run.record.run.ratio is None:
        columns = ["model", "prompt_id", "error"]
        parts = run.parts("segment_scores", columns, filters=[("error", "!=", "")])
        table = accuracy_table(answers, prompts)
        return table, pd.concat([answers[answers["error"] != ""], *parts])
    ratios = run_ratios(run)
    table = attribution_table(ratios, answers, prompts)
    return table, pd.concat([rows[rows["error"] != ""] for rows in (answers, ratios)])


def _ratios(table: pd.DataFrame, ratio: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """The ratios of means and of sums, one column per method, each with its title."""
    above, below = map(segment_label, ratio)
    titles = {
        "ratio": f"Mean score of a token of {above} over one of {below}",
        "ratio_unnormalized": f"Summed score of {above} over {below}",
    }
    for kind, title in titles.items():
        shown = table[["model"]].copy()
        for name in table.columns[table.columns.str.endswith(f"_{kind}")]:
            method, deviations = name.removesuffix(f"_{kind}"), name.replace("_ratio", "") + "_sd"
            if table[name].notna().any():
                shown[method] = mean_with_sd(table[name], table[deviations])
        yield title, shown


def _shares(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The share of each segment by each method, one column per segment, each with its title."""
    texts = table.assign(text=mean_with_sd(table["share"], table["share_sd"]))
    for method, rows in texts.groupby("method", sort=False):
        shown = rows.pivot(index="model", columns="segment", values="text").fillna("")
        shown = shown.loc[rows["model"].unique(), rows["segment"].unique()]
        shown.columns = shown.columns.map(segment_label)
        yield f"Share of the scores of the prompt, {method}", shown.reset_index()
