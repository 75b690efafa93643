"""What commands that measure share: options in, work and its finished run folders out."""

import argparse
import hashlib
import json
import logging
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers.utils import logging as transformers_logging

from interp.cli.options import load_options, unique_models
from interp.cli.threads import set_threads
from interp.console import echo
from interp.errors import UserError
from interp.measurements.core import Measurement
from interp.models.devices import check_placement
from interp.models.load import find_model, load_model
from interp.models.model import Model
from interp.models.organisms import default_organism
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import load_prompts
from interp.runs.execute import execute
from interp.runs.executors import Worker, WorkerCommand, local
from interp.runs.plan import Stage, Work
from interp.runs.run import Run

Origin = Mapping[str, Any]
"""What a model is loaded from, and how."""


def work_of_command(
    arguments: argparse.Namespace,
    *,
    command: str,
    measurement: Callable[..., Measurement],
    parameters: Mapping[str, object],
    prompts: PromptSet | None = None,
) -> Work:
    """The work of a command that makes one measurement of one prompt set.

    Args:
        arguments: of the command line.
        command: name of the run.
        measurement: called with a model, the parameters and batch_tokens.
        parameters: what the numbers depend on.
        prompts: those of the command line if not given.

    Raises:
        UserError: models or prompts that cannot be had.
    """
    models = checked_models(arguments, [default_organism(arguments.system)])
    if prompts is None:
        prompts = load_prompts(
            arguments.system, limit=arguments.limit, seed=arguments.seed, data=arguments.data
        )
    folder = arguments.out or default_folder(
        arguments, command, arguments.system, {**parameters, **prompts.description}
    )
    stage = Stage(command, prompts, measurement, parameters)
    return Work(folder, {folder: stage}, **models_of(arguments, models))


def models_of(arguments: argparse.Namespace, models: Mapping[str, Origin]) -> dict[str, Any]:
    """What any work takes from the command line beside its stages."""
    return {
        "models": models,
        "load": lambda name: loaded(name, arguments),
        "arguments": tuple(arguments.argv),
        "batch_tokens": arguments.batch_tokens,
        "fail_on_error": arguments.fail_on_error,
    }


def run_plan(arguments: argparse.Namespace, work: Work) -> list[Run]:
    """Measure everything by the executor of the command line.

    Raises:
        UserError: options that do not go together, or anything that stops the work.
    """
    start = _start(arguments, work)
    for folder, stage in work.stages.items():
        echo(f"{len(stage.prompts):,} prompts of {stage.prompts.system}, results in {folder}")
    return execute(work, start=start, retry_errors=arguments.retry_errors)


def _start(arguments: argparse.Namespace, work: Work) -> Callable[[], Sequence[Worker]] | None:
    executor, options = arguments.executor, dict(arguments.slurm_options)
    command = WorkerCommand(work.folder, work.call, tuple(arguments.argv))
    if options and executor != "slurm":
        raise UserError("--slurm-option was given without --executor slurm")
    if executor == "slurm":
        from interp.runs.executors import slurm

        return lambda: slurm.start(command, workers=arguments.workers or 1, options=options)
    if executor == "local":
        if re.search(r":\d", arguments.device or ""):
            raise UserError(
                f"--device {arguments.device} names one device, but with --executor local each "
                "worker has its own; give --device cuda, cpu, or nothing"
            )
        on_gpus = arguments.device != "cpu"
        return lambda: local.start(command, workers=arguments.workers, on_gpus=on_gpus)
    if arguments.workers not in (None, 1):
        raise UserError(
            f"--workers {arguments.workers} needs --executor local or slurm; "
            "without, all is measured in this process"
        )
    return None


def checked_models(arguments: argparse.Namespace, default: Sequence[str]) -> dict[str, Origin]:
    """The models of the command line, each found to be there before anything long begins.

    Each with what it is loaded from and how, by which a later call knows it again.

    Raises:
        UserError: a model that is named twice, cannot be found or is incomplete.
    """
    if not sys.stderr.isatty():
        # transformers gives this function no types.
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    options = load_options(arguments)
    if arguments.executor == "inline":
        # Other executors may start workers where there are other devices.
        check_placement(arguments.device, arguments.device_map)
    # Where a model is computed does not say what it is.
    how = {name: value for name, value in options.items() if name not in ("device", "device_map")}
    found: dict[str, Origin] = {}
    for name in unique_models(arguments.models, default):
        model = find_model(
            name,
            revision=arguments.revision,
            allow_pickle=arguments.allow_pickle,
            trust_remote_code=arguments.trust_remote_code,
        )
        found[name] = {**how, **model.source, "files": model.fingerprint}
    return found


def loaded(name: str, arguments: argparse.Namespace) -> Model:
    """A model, loaded as the command line says."""
    model = load_model(name, **load_options(arguments))
    for note in model.notes:
        echo(note)
    set_threads(model, arguments.threads)
    if model.quantization is not None:
        # bitsandbytes tells of every product in 8 bits that its inputs are cast.
        logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
        echo(f"the weights of {name} are quantized: {model.quantization}")
    return model


def default_folder(
    arguments: argparse.Namespace, command: str, subject: str, parameters: Mapping[str, object]
) -> Path:
    """The folder of a command without --out: in runs/, named after command and options."""
    options = [subject, arguments.data, arguments.limit, arguments.seed, dict(parameters)]
    digest = hashlib.sha256(json.dumps(options).encode()).hexdigest()[:8]
    pairs = "all" if arguments.limit is None else str(arguments.limit)
    return Path("runs") / f"{command}-{subject}-{pairs}-{digest}"
