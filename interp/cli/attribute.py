"""`python -m interp attribute`: scores by segment next to accuracy, one row per model."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from interp.attribution.registry import DEFAULT_METHODS, method_names
from interp.choices import TARGETS
from interp.cli import options, values
from interp.cli.parser import Listed
from interp.files import write_whole

if TYPE_CHECKING:
    import pandas as pd

    from interp.prompts.prompt_set import PromptSet
    from interp.runs.folder import RunFolder
    from interp.runs.plan import Work

HELP = "attribute answers to the segments of the prompts and print the attribution table"

EXAMPLES = (
    "attribute --model organism/llama-shallow organism/gemma2",
    "attribute --model org/model --methods input_gradient --limit all --out runs/model",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    options.add_model_options(parser)
    options.add_prompt_options(parser)
    group = parser.add_argument_group("attribution")
    group.add_argument(
        "--methods",
        nargs="+",
        action=Listed,
        type=values.some_of("method", method_names()),
        default=list(DEFAULT_METHODS),
        metavar="NAME",
        help="what `methods` lists, some of it prompt by prompt "
        f"(default: {' '.join(DEFAULT_METHODS)})",
    )
    group.add_argument(
        "--target",
        type=values.one_of("target", TARGETS),
        default="predicted",
        metavar="NAME",
        help="what is attributed: the predicted token, the gold answer, or the contrast of the "
        "positive and the negative answer (default: predicted)",
    )
    group.add_argument(
        "--tokens", action="store_true", help="also keep the tokens, and the score of each"
    )
    options.add_run_options(parser)


def work(arguments: argparse.Namespace) -> "Work":
    """What the command measures."""
    from interp.cli.common import work_of_command
    from interp.measurements.prompts import attribution

    parameters = {
        "methods": arguments.methods,
        "target": arguments.target,
        "token_scores": arguments.tokens,
    }
    return work_of_command(
        arguments, command="attribute", measurement=attribution, parameters=parameters
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.analysis.segments import TABLE_COLUMNS, segment_table
    from interp.cli.common import run_plan
    from interp.cli.summary import summarize
    from interp.console import echo
    from interp.report.console import print_table
    from interp.report.formatting import accuracy_columns
    from interp.runs.conclusion import concluding

    (finished,) = run_plan(arguments, work(arguments))
    ratio = finished.prompts.ratio
    with concluding(finished.folder) as conclusion:
        run = conclusion.run
        answers = run.table("answers", ["model", "prompt_id", "answer", "correct", "error"])
        by_model, failed = _by_model(run, answers, finished.prompts)
        by_segment = segment_table(run.table("segment_scores", TABLE_COLUMNS))
        files = [
            _write_csv(run, "segment_table", by_segment),
            _write_csv(run, "accuracy_table" if ratio is None else "attribution_table", by_model),
        ]
        conclusion.summary = summarize(answers, failed)
    print_table(by_model.loc[:, ["model", *accuracy_columns(by_model)]], title="Accuracy")
    for title, table in _shares(by_segment) if ratio is None else _ratios(by_model, ratio):
        print_table(table, title=f"{title}: mean (sd) over prompts")
    echo(f"written to {files[-1]}; scores by segment in {files[0].name}")


def _by_model(
    run: "RunFolder", answers: "pd.DataFrame", prompts: "PromptSet"
) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """One row per model: accuracies, and ratios where segments are compared; and what failed."""
    import pandas as pd

    from interp.analysis.accuracy import accuracy_table
    from interp.analysis.attribution_table import attribution_table
    from interp.report.run_report import run_ratios

    sides = run.table("prompts", ["prompt_id", "pair_id", "side"])
    if prompts.ratio is None:
        columns = ["model", "prompt_id", "error"]
        parts = run.parts("segment_scores", columns, filters=[("error", "!=", "")])
        table = accuracy_table(answers, sides, prompts.sides)
        return table, pd.concat([answers[answers["error"] != ""], *parts])
    ratios = run_ratios(run)
    table = attribution_table(ratios, answers, sides, prompts.sides)
    return table, pd.concat([rows[rows["error"] != ""] for rows in (answers, ratios)])


def _ratios(table: "pd.DataFrame", ratio: tuple[str, str]) -> Iterator[tuple[str, "pd.DataFrame"]]:
    """The ratios of means and of sums, a method a column, each with its title."""
    from interp.report.console import mean_with_sd
    from interp.report.formatting import segment_label

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


def _shares(table: "pd.DataFrame") -> Iterator[tuple[str, "pd.DataFrame"]]:
    """The share of each segment by each method, a segment a column, each with its title."""
    from interp.report.console import mean_with_sd
    from interp.report.formatting import segment_label

    texts = table.assign(text=mean_with_sd(table["share"], table["share_sd"]))
    for method, rows in texts.groupby("method", sort=False):
        shown = rows.pivot(index="model", columns="segment", values="text").fillna("")
        shown = shown.loc[rows["model"].unique(), rows["segment"].unique()]
        shown.columns = shown.columns.map(segment_label)
        yield f"Share of the scores of the prompt, {method}", shown.reset_index()


def _write_csv(run: "RunFolder", name: str, table: "pd.DataFrame") -> Path:
    file = run.folder / f"{name}.csv"
    write_whole(file, lambda path: table.to_csv(path, index=False))
    return file
