"""`python -m interp attribute`: score ratios of the premises next to accuracy, one row a model."""

import argparse
from typing import TYPE_CHECKING

from interp.choices import ATTRIBUTION_BACKENDS, CAPTUM_METHODS, METHODS, TARGETS
from interp.cli import options, values
from interp.cli.parser import Listed
from interp.files import write_whole

if TYPE_CHECKING:
    import pandas as pd

    from interp.runs.plan import Work

HELP = "attribute answers to the premises and print the attribution table"

EXAMPLES = (
    "attribute --model organism/llama-shallow organism/gemma2",
    "attribute --model org/model --methods gradient --limit all --out runs/model",
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
        type=values.some_of("method", (*METHODS, *CAPTUM_METHODS)),
        default=list(METHODS),
        metavar="NAME",
        help="gradient attention (default: both); by captum, prompt by prompt, also "
        "integrated_gradients input_x_gradient deep_lift occlusion",
    )
    group.add_argument(
        "--target",
        type=values.one_of("target", TARGETS),
        default="predicted",
        metavar="NAME",
        help="what is attributed: the predicted token, the gold answer, or the contrast of the "
        "data's two options, by default of gold and the likeliest other (default: predicted)",
    )
    group.add_argument(
        "--backend",
        type=values.one_of("backend", ATTRIBUTION_BACKENDS),
        default="native",
        metavar="NAME",
        help="native, or inseq as in the paper (default: native)",
    )
    group.add_argument("--tokens", action="store_true", help="also keep the score of every token")
    options.add_run_options(parser)


def work(arguments: argparse.Namespace) -> "Work":
    """What the command measures."""
    from interp.cli.common import work_of_command
    from interp.measurements.prompts import attribution

    parameters = {
        "methods": arguments.methods,
        "target": arguments.target,
        "backend": arguments.backend,
        "token_scores": arguments.tokens,
    }
    return work_of_command(
        arguments, command="attribute", measurement=attribution, parameters=parameters
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    import pandas as pd

    from interp.analysis.attribution_table import attribution_table
    from interp.cli.common import run_plan
    from interp.cli.summary import summarize
    from interp.console import echo
    from interp.report.console import print_table
    from interp.report.formatting import accuracy_columns
    from interp.runs.conclusion import concluding

    (finished,) = run_plan(arguments, work(arguments))
    with concluding(finished.folder) as conclusion:
        run = conclusion.run
        answers = run.table("answers", ["model", "prompt_id", "answer", "correct", "error"])
        attributions = run.table(
            "attributions",
            ["model", "prompt_id", "method", "ratio", "ratio_unnormalized", "error"],
        )
        prompts = run.table("prompts", ["prompt_id", "pair_id", "side"])
        table = attribution_table(attributions, answers, prompts, finished.prompts.sides)
        file = finished.folder / "attribution_table.csv"
        write_whole(file, lambda path: table.to_csv(path, index=False))
        failed = pd.concat([rows[rows["error"] != ""] for rows in (answers, attributions)])
        conclusion.summary = summarize(answers, failed)
    print_table(table.loc[:, ["model", *accuracy_columns(table)]], title="Accuracy")
    for kind, title in _RATIOS.items():
        print_table(_means(table, kind), title=f"{title}: mean (sd) over prompts")
    echo(f"written to {file}")


_RATIOS = {
    "ratio": "Mean score of a token of premise 2 over one of premise 1",
    "ratio_unnormalized": "Summed score of premise 2 over premise 1",
}
"""Ending of the table's columns to what they hold."""


def _means(table: "pd.DataFrame", kind: str) -> "pd.DataFrame":
    """Ratios of one kind, a method a column, each mean with its standard deviation."""
    from interp.report.console import mean_with_sd

    shown = table[["model"]].copy()
    for name in table.columns[table.columns.str.endswith(f"_{kind}")]:
        method, deviations = name.removesuffix(f"_{kind}"), name.replace("_ratio", "") + "_sd"
        if table[name].notna().any():
            shown[method] = mean_with_sd(table[name], table[deviations])
    return shown
