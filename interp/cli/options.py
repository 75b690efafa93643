"""Options that commands share, so that one thing has one name everywhere."""

import argparse
from collections.abc import Sequence
from typing import Any

from interp.choices import QUANTIZATIONS
from interp.cli import values
from interp.errors import UserError
from interp.models.chat_format import DEFAULT_DATE
from interp.models.dtypes import canonical_dtype
from interp.models.names import canonical_name
from interp.plugins import SYSTEMS, plugins

DEFAULT_LIMIT = 480
"""Pairs that a command takes without --limit: each combination of strata of RULEBREAKERS twice."""


DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Values of --device-map, as accelerate knows them."""

DEFAULT_ERROR_SHARE = 0.1
"""Share of a model's prompts that may have an error without --fail-on-error."""


def add_model_options(
    parser: argparse.ArgumentParser,
    *,
    default: str = "a packaged organism that learned the system's prompts",
) -> None:
    """Which models, and how to load them; `default` tells in words what is taken without any."""
    group = parser.add_argument_group("models")
    group.add_argument(
        "--model",
        nargs="+",
        action="extend",
        type=values.model,
        dest="models",
        metavar="NAME",
        help="hub name, local folder, or organism/NAME; several give one row each "
        f"(default: {default})",
    )
    group.add_argument(
        "--device",
        type=values.device,
        metavar="NAME",
        help="cpu, cuda, cuda:1 ... (default: a GPU if there is one)",
    )
    group.add_argument(
        "--dtype",
        type=values.dtype,
        default="auto",
        metavar="NAME",
        help="float32, bfloat16, float16, float64 (or fp32 ...), or auto: float32 on a CPU, "
        "the checkpoint's own type on a GPU (default: auto)",
    )
    group.add_argument(
        "--device-map",
        type=values.one_of("device map", DEVICE_MAPS),
        metavar="NAME",
        help="spread a large model over devices: auto, balanced, balanced_low_0 or sequential",
    )
    group.add_argument(
        "--quantization",
        type=values.one_of("quantization", QUANTIZATIONS),
        metavar="NAME",
        help="8bit or 4bit, by bitsandbytes (default: the checkpoint's own)",
    )
    group.add_argument("--revision", metavar="NAME", help="branch, tag or commit on the hub")
    group.add_argument(
        "--attn-implementation",
        metavar="NAME",
        help="sdpa, eager, flash_attention_2 ... (default: the model's)",
    )
    group.add_argument(
        "--allow-pickle", action="store_true", help="load weights that are not safetensors"
    )
    group.add_argument(
        "--trust-remote-code", action="store_true", help="run code that comes with the model"
    )
    chat = group.add_mutually_exclusive_group()
    chat.add_argument(
        "--no-chat-template",
        action="store_false",
        dest="chat_template",
        help="write prompts plainly, also for models that have a chat template",
    )
    chat.add_argument(
        "--system-prompt",
        metavar="TEXT",
        help="system prompt of the chat template (default: what the template inserts by itself, "
        "mostly none)",
    )
    group.add_argument(
        "--template-date",
        type=values.iso_date,
        default=DEFAULT_DATE,
        metavar="YYYY-MM-DD",
        help=f"today, for chat templates that write the date (default: {DEFAULT_DATE})",
    )


def load_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `interp.load_model` that were given."""
    names = (
        "device",
        "dtype",
        "device_map",
        "quantization",
        "revision",
        "attn_implementation",
        "allow_pickle",
        "trust_remote_code",
        "chat_template",
        "system_prompt",
        "template_date",
    )
    options = {name: getattr(arguments, name) for name in names}
    return {**options, "dtype": canonical_dtype(options["dtype"])}


def add_prompt_options(parser: argparse.ArgumentParser) -> None:
    """Which prompts of which system."""
    add_system_options(parser)
    add_selection_options(parser, default_limit=str(DEFAULT_LIMIT))
    parser.set_defaults(limit=DEFAULT_LIMIT)


def add_system_options(parser: argparse.ArgumentParser) -> None:
    """Which data set."""
    parser.add_argument(
        "--system",
        type=values.one_of("system", plugins(SYSTEMS)),
        default="rulebreakers",
        metavar="NAME",
        help="data set of prompts (default: rulebreakers)",
    )
    add_data_option(parser)


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """Where the data set's published form is read from."""
    parser.add_argument(
        "--data",
        type=values.name,
        metavar="SOURCE",
        help="published data instead of generated: a CSV, JSON, JSONL or Parquet file, a folder, "
        "or a hub name",
    )


def add_selection_options(parser: argparse.ArgumentParser, *, default_limit: str) -> None:
    """How many of the prompts; the command sets the limit's default and tells it in words."""
    parser.add_argument(
        "--limit",
        type=values.limit,
        default=argparse.SUPPRESS,
        metavar="N",
        help="take N pairs, both sides of each, spread evenly over rules, groups, verbs and "
        f"phrasings; or all (default: {default_limit})",
    )
    parser.add_argument(
        "--seed",
        type=values.whole_number(0, values.LARGEST_SEED),
        default=0,
        metavar="N",
        help="seed of data and selection (default: 0)",
    )


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """How to run, and where results go."""
    group = parser.add_argument_group("run")
    group.add_argument(
        "--threads",
        type=values.whole_number(1, values.MOST_THREADS),
        metavar="N",
        help="threads of a process on the CPU (default: one for small models, else one a core, or "
        "what OMP_NUM_THREADS says)",
    )
    group.add_argument(
        "--batch-tokens",
        type=values.whole_number(1, values.MOST_TOKENS),
        metavar="N",
        help="tokens in a batch, padding included (default: 2048 on a CPU, 512 there to patch, "
        "32768 on a GPU, 8192 there to attribute)",
    )
    group.add_argument(
        "--out",
        type=values.folder,
        metavar="DIR",
        help="folder of the results; the same command goes on where it stopped "
        "(default: a folder in runs/ named after command and options)",
    )
    add_worker_options(parser)


def add_worker_options(parser: argparse.ArgumentParser) -> None:
    """Where the work is done, and what becomes of errors."""
    group = parser.add_argument_group("workers")
    group.add_argument(
        "--executor",
        choices=("inline", "local", "slurm"),
        default="inline",
        metavar="NAME",
        help="inline: in this process; local: in processes on this machine, each with its share of "
        "the GPUs or the cores; slurm: in jobs on a SLURM cluster (default: inline)",
    )
    group.add_argument(
        "--workers",
        type=values.whole_number(1, values.MOST_WORKERS),
        metavar="N",
        help="how many processes or jobs, at most 1,024 (default: local one for each GPU, or two; "
        "slurm one)",
    )
    group.add_argument(
        "--slurm-option",
        type=values.slurm_option,
        action="append",
        default=[],
        dest="slurm_options",
        metavar="K=V",
        help="option of the SLURM jobs, such as partition=gpu, time=4:00:00, mem=64GB, "
        "gpus-per-node=1; may be repeated",
    )
    group.add_argument(
        "--fail-on-error",
        type=values.share,
        default=DEFAULT_ERROR_SHARE,
        metavar="SHARE",
        help="stop when a larger share of a model's prompts than this has an error "
        f"(default: {DEFAULT_ERROR_SHARE})",
    )
    group.add_argument(
        "--retry-errors",
        action="store_true",
        help="measure shards that hold errors of an earlier call again",
    )


def unique_models(models: list[str] | None, default: Sequence[str]) -> list[str]:
    """The models that were named, or the default ones.

    Raises:
        UserError: a model that is named twice.
    """
    chosen = [canonical_name(name) for name in models or default]
    for index, name in enumerate(chosen):
        if name in chosen[:index]:
            raise UserError(f"--model {name} is given twice; name each model once")
    return chosen
