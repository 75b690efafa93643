"""Options that commands share, so that one thing has one name everywhere."""

import argparse
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from interp.errors import UserError
from interp.models.chat_format import DEFAULT_DATE

DEFAULT_LIMIT = 480
"""Pairs that a command takes without --limit: each combination of strata of RULEBREAKERS twice."""


DEFAULT_ERROR_SHARE = 0.1
"""Share of a model's prompts that may have an error without --fail-on-error."""


def add_model_options(
    parser: argparse.ArgumentParser, *, default: str = "the packaged organism/llama-shallow"
) -> None:
    """Which models, and how to load them; `default` tells in words what is taken without any."""
    group = parser.add_argument_group("models")
    group.add_argument(
        "--model",
        nargs="+",
        action="extend",
        dest="models",
        metavar="NAME",
        help="hub name, local folder, or organism/NAME; several give one row each "
        f"(default: {default})",
    )
    group.add_argument("--device", help="cpu, cuda, cuda:1 ... (default: a GPU if there is one)")
    group.add_argument(
        "--dtype",
        default="auto",
        help="float32, bfloat16, float16, float64, or auto: float32 on a CPU, "
        "the checkpoint's own type on a GPU (default: auto)",
    )
    group.add_argument("--device-map", help="spread a large model over devices (auto)")
    group.add_argument(
        "--quantization", help="8bit or 4bit, by bitsandbytes (default: the checkpoint's own)"
    )
    group.add_argument("--revision", help="branch, tag or commit on the hub")
    group.add_argument(
        "--attn-implementation", help="sdpa, eager, flash_attention_2 ... (default: the model's)"
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
        type=iso_date,
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
    return {name: getattr(arguments, name) for name in names}


def add_prompt_options(parser: argparse.ArgumentParser) -> None:
    """Which prompts of which system."""
    add_system_options(parser)
    add_selection_options(parser, default_limit=str(DEFAULT_LIMIT))
    parser.set_defaults(limit=DEFAULT_LIMIT)


def add_system_options(parser: argparse.ArgumentParser) -> None:
    """Which data set."""
    parser.add_argument(
        "--system", default="rulebreakers", help="data set of prompts (default: rulebreakers)"
    )
    add_data_option(parser)


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """Where the data set's published form is read from."""
    parser.add_argument(
        "--data",
        metavar="SOURCE",
        help="published data instead of generated: a CSV, JSON, JSONL or Parquet file, a folder, "
        "or a hub name",
    )


def add_selection_options(parser: argparse.ArgumentParser, *, default_limit: str) -> None:
    """How many of the prompts; the command sets the limit's default and tells it in words."""
    parser.add_argument(
        "--limit",
        type=limit,
        default=argparse.SUPPRESS,
        metavar="N",
        help="take N pairs, both sides of each, spread evenly over rules, groups, verbs and "
        f"phrasings; or all (default: {default_limit})",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of data and selection (default: 0)"
    )


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """How to run, and where results go."""
    group = parser.add_argument_group("run")
    group.add_argument(
        "--batch-tokens",
        type=int,
        metavar="N",
        help="tokens in a batch, padding included (default: 2048 on a CPU, 512 there to patch, "
        "32768 on a GPU, 8192 there to attribute)",
    )
    group.add_argument(
        "--out",
        type=Path,
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
        help="inline: in this process; local: in processes on this machine, each with its share of "
        "the GPUs or the cores; slurm: in jobs on a SLURM cluster (default: inline)",
    )
    group.add_argument(
        "--workers",
        type=workers,
        metavar="N",
        help="how many processes or jobs (default: local one for each GPU, or two; slurm one)",
    )
    group.add_argument(
        "--slurm-option",
        type=slurm_option,
        action="append",
        default=[],
        dest="slurm_options",
        metavar="K=V",
        help="option of the SLURM jobs, such as partition=gpu, time=240 (minutes), mem=64GB, "
        "gpus_per_node=1; may be repeated",
    )
    group.add_argument(
        "--fail-on-error",
        type=share,
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


def iso_date(text: str) -> str:
    """A date such as 2024-07-26, as it was given."""
    try:
        date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r:.60} is no date such as {DEFAULT_DATE}"
        ) from error
    return text


def workers(text: str) -> int:
    """The value of --workers."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of workers such as 4")
    return int(text)


def share(text: str) -> float:
    """A share between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share between 0 and 1")
    return value


def slurm_option(text: str) -> tuple[str, str]:
    """A SLURM option and its value."""
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is no option such as partition=gpu")
    return name.removeprefix("--").replace("-", "_"), value


def limit(text: str) -> int | None:
    """The value of --limit: a number of pairs, or None for "all"."""
    if text == "all":
        return None
    try:
        pairs = int(text)
    except ValueError:
        pairs = 0
    if pairs < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of pairs nor 'all'")
    return pairs


def names(text: str) -> list[str]:
    """A comma-separated list without repetition."""
    found = dict.fromkeys(name.strip() for name in text.split(",") if name.strip())
    return list(found)


def numbers(text: str) -> list[int]:
    """A comma-separated list of numbers without repetition."""
    try:
        return [int(name) for name in names(text)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers such as 0,1,2") from error


def unique_models(models: list[str] | None, default: Sequence[str]) -> list[str]:
    """The models that were named, or the default ones.

    Raises:
        UserError: a model that is named twice.
    """
    chosen = list(models or default)
    for index, name in enumerate(chosen):
        if name in chosen[:index]:
            raise UserError(f"--model {name} is given twice; name each model once")
    return chosen
