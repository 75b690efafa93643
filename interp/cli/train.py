"""`python -m interp train TASK`: train a model; every command then accepts it as --model DIR."""

import argparse
from typing import TYPE_CHECKING, Annotated, Any

from interp.cli.fields import Choice, Configuration, add_options, given, options_in
from interp.cli.parser import Parser
from interp.console import echo
from interp.models.loading import Loading
from interp.models.names import model_name
from interp.options import FromText, Options
from interp.plugins import TRAINING
from interp.training.spec import SETTLED, CheckpointOptions, find_training

if TYPE_CHECKING:
    from interp.training.lessons import Estimate

TASK = Choice("task", "training task", TRAINING)

RESUMES = True

HELP = "train a model on a task, from a checkpoint or from scratch"

EXAMPLES = (
    "train irft --model organism/rules-base --out models/rules",
    "train irft --model small-decoder --from-scratch --dry-run",
    "evaluate --model models/rules",
)


class TrainOptions(Options):
    """The options that only this command has."""

    model: Annotated[str, FromText(model_name, "NAME")]
    """hub name, local folder or organism/NAME; with --from-scratch, also small-encoder,
    small-text-to-text or small-decoder
    """
    dry_run: bool = False
    """print the number of steps and an estimate of memory without training"""


def configure(parser: Parser) -> None:
    """Add the command's options, including those of the named task."""
    TASK.add_to(parser)
    add_options(parser, Configuration)
    models = parser.add_argument_group("model")
    add_options(models, TrainOptions)
    add_options(models, Loading, without=SETTLED)
    add_options(parser.add_argument_group("training"), TASK.options(parser))
    add_options(parser.add_argument_group("run"), CheckpointOptions)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    kinds = (find_training(TASK.name(arguments)), Loading, CheckpointOptions, TrainOptions)
    config = options_in(arguments, kinds, others=("task",), without=SETTLED)
    made: list[Any] = [kind(**given(arguments, kind, config)) for kind in kinds]
    spec, loading, kept, options = made
    # Importing torch takes seconds, so mistakes in the options are reported before it.
    echo("loading libraries ...")
    import pandas as pd

    from interp.report.console import print_table
    from interp.runs.run import check_takes
    from interp.training.folder import RECORD
    from interp.training.run import Training

    if kept.out is not None:
        check_takes(kept.out, RECORD)  # before the training set is read, which takes minutes
    training = Training(spec, options.model, loading)
    if options.dry_run:
        print_table(_estimate_table(training.estimate()), title="Before training")
        return
    record = training.run(kept, command=arguments.command_line)
    rows = [{"split": split, **scores} for split, scores in record.metrics.items()]
    print_table(pd.DataFrame(rows).astype({"prompts": int}), title="Held-out splits")


def _estimate_table(estimate: "Estimate") -> dict[str, list[str]]:
    sizes = {
        "memory of weights": estimate.weights,
        "of gradients": estimate.gradients,
        "of AdamW": estimate.optimizer,
        "of activations": estimate.activations,
        "together": estimate.memory,
    }
    counts = {
        "prompts read for this estimate": estimate.read,
        "prompts": estimate.lessons,
        "omitted, too long": estimate.too_long,
        "tokens of the longest prompt read": estimate.longest,
        "steps": estimate.steps,
        "parameters": estimate.parameters,
        "trained parameters": estimate.trained,
    }
    rows = {name: f"{count:,}" for name, count in counts.items()}
    rows |= {name: f"{size / 2**20:,.1f} MiB" for name, size in sizes.items()}
    return {"quantity": list(rows), "value": list(rows.values())}
