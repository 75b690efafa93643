"""`python -m interp train TASK`: train a model, which every command then takes by --model DIR."""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from interp.cli.choice import Choice
from interp.cli.fields import add_options, given, options_in
from interp.cli.measure import add_config_option, configuration
from interp.cli.parser import Parser
from interp.errors import UserError
from interp.models.loading import Loading, model_name
from interp.plugins import TRAINING
from interp.training.spec import SETTLED, CheckpointOptions, find_training

if TYPE_CHECKING:
    import pandas as pd

    from interp.training.folder import TrainRecord
    from interp.training.lessons import Estimate
    from interp.training.run import Training

TASK = Choice("task", "training task", TRAINING)

HELP = "train a model on a task, from a checkpoint or from scratch"

EXAMPLES = (
    "train irft --model organism/rules-base --out models/rules",
    "train irft --model small-decoder --from-scratch --dry-run",
    "evaluate --model models/rules",
)


def configure(parser: Parser) -> None:
    """Add the command's options, including those of the named task."""
    TASK.add_to(parser)
    add_config_option(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the number of steps and an estimate of memory, and train nothing",
    )
    models = parser.add_argument_group("model")
    models.add_argument(
        "--model",
        type=model_name,
        default=argparse.SUPPRESS,
        metavar="NAME",
        help="hub name, local folder or organism/NAME; from scratch also small-encoder, "
        "small-text-to-text or small-decoder",
    )
    add_options(models, Loading, without=SETTLED)
    add_options(parser.add_argument_group("training"), TASK.options(parser))
    add_options(parser.add_argument_group("run"), CheckpointOptions)


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        UserError: no task or no model was named, or the training cannot be done.
    """
    training, kept = _prepared(arguments)
    from interp.report.console import print_table

    if arguments.dry_run:
        print_table(_estimate_table(training.estimate()), title="Before training")
        return
    record = training.run(kept, command=shlex.join(["interp", *arguments.argv]))
    print_table(_metrics_table(record), title="Held-out splits")


def _prepared(arguments: argparse.Namespace) -> "tuple[Training, CheckpointOptions]":
    """The training run that a command line asks for, and its folder."""
    options = find_training(TASK.name(arguments))
    config = options_in(
        configuration(arguments),
        arguments.config,
        (options, Loading, CheckpointOptions),
        flags={"model": "model", "task": "task"},
        without=SETTLED,
    )
    spec = options(**given(arguments, options, config))
    loading = Loading(**given(arguments, Loading, config))
    kept = CheckpointOptions(**given(arguments, CheckpointOptions, config))
    model = getattr(arguments, "model", config.get("model"))
    if not isinstance(model, str):
        raise UserError("no model was named; give --model NAME")
    # Importing torch takes seconds; mistakes in the options are known by now.
    sys.stderr.write("loading libraries ...\n")
    sys.stderr.flush()
    from interp.training.run import Training

    return Training(spec, model, loading), kept


def _estimate_table(estimate: "Estimate") -> "pd.DataFrame":
    import pandas as pd

    sizes = {
        "memory of weights": estimate.weights,
        "of gradients": estimate.gradients,
        "of AdamW": estimate.optimizer,
        "of activations": estimate.activations,
        "together": estimate.memory,
    }
    counts = {
        "prompts": estimate.lessons,
        "left out, too long": estimate.too_long,
        "tokens of the longest": estimate.longest,
        "steps": estimate.steps,
        "parameters": estimate.parameters,
        "trained parameters": estimate.trained,
    }
    rows = {name: f"{count:,}" for name, count in counts.items()}
    rows |= {name: f"{size / 2**20:,.1f} MiB" for name, size in sizes.items()}
    return pd.DataFrame({"quantity": list(rows), "value": list(rows.values())})


def _metrics_table(record: "TrainRecord") -> "pd.DataFrame":
    import pandas as pd

    rows = [{"split": split, **scores} for split, scores in record.metrics.items()]
    return pd.DataFrame(rows).astype({"prompts": int})
