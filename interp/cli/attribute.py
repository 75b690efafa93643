"""`python -m interp attribute`: score ratios of the premises next to accuracy, one row a model."""

import argparse
from typing import TYPE_CHECKING

import pandas as pd

from interp.cli import options
from interp.files import write_whole

if TYPE_CHECKING:
    from interp.runs.work import Work

HELP = "attribute answers to the premises and print the attribution table"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    options.add_model_options(parser)
    options.add_prompt_options(parser)
    group = parser.add_argument_group("attribution")
    group.add_argument(
        "--methods",
        type=options.names,
        default=["gradient", "attention"],
        metavar="LIST",
        help="comma-separated: gradient,attention (default: both); by captum, prompt by prompt, "
        "also integrated_gradients,input_x_gradient,deep_lift,occlusion",
    )
    group.add_argument(
        "--target",
        default="predicted",
        help="what is attributed: the predicted token, the gold answer, or the contrast of the "
        "positive and the negative answer (default: predicted)",
    )
    group.add_argument(
        "--backend", default="native", help="native, or inseq as in the paper (default: native)"
    )
    group.add_argument("--tokens", action="store_true", help="also keep the score of every token")
    options.add_run_options(parser)


def work(arguments: argparse.Namespace) -> "Work":
    """What the command measures."""
    from interp.cli.measuring import work_of_command
    from interp.measure import attribution

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
    from interp.analysis.attribution_table import attribution_table
    from interp.cli.measuring import carry_out
    from interp.cli.summary import summarize
    from interp.report.console import print_table
    from interp.runs.progress import tell

    (finished,) = carry_out(arguments, work(arguments))
    with finished.concluding() as conclusion:
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
    print_table(_for_people(table), title="Premise 2 over premise 1: mean (sd) over prompts")
    tell(f"written to {file}")


def _for_people(table: pd.DataFrame) -> pd.DataFrame:
    """The table with each mean and its standard deviation in one column."""
    from interp.report.console import mean_with_sd

    shown = table[["model"]].copy()
    for kind in ("", "_unnormalized"):
        for name in table.columns[table.columns.str.endswith(f"_ratio{kind}")]:
            method, means = name.removesuffix(f"_ratio{kind}"), table[name]
            if means.notna().any():
                shown[f"{method}{kind}"] = mean_with_sd(means, table[f"{method}{kind}_sd"])
    return shown.join(table.loc[:, "paired_accuracy":])
