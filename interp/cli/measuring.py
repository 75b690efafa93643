"""What `attribute` and `evaluate` share: prompts and models in, a finished run folder out."""

import argparse
import hashlib
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd
from transformers.utils import logging as transformers_logging

from interp.cli.options import load_options, unique_models
from interp.measure import Measurement
from interp.models.load import find_model, load_model
from interp.models.model import Model
from interp.models.organisms import DEFAULT
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import load_prompts
from interp.runs.run import Run


def run_measurement(
    arguments: argparse.Namespace,
    *,
    command: str,
    parameters: Mapping[str, object],
    measurement: Callable[[Model], Measurement],
    prompts: PromptSet | None = None,
) -> Run:
    """Measure all models of the command line and merge their tables.

    Prompts are those of the command line where none are given.
    """
    models = checked_models(arguments, [DEFAULT])
    if prompts is None:
        prompts = load_prompts(
            arguments.system, limit=arguments.limit, seed=arguments.seed, data=arguments.data
        )
    folder = arguments.out or default_folder(arguments, command, arguments.system, parameters)
    run: Run | None = None
    for name in models:
        # A model is loaded and checked before the folder is touched.
        measure = measurement(loaded(name, arguments))
        if run is None:
            run = Run.open(folder, prompts, measurement=command, parameters=dict(parameters))
            say(f"{len(prompts):,} prompts of {arguments.system}, results in {folder}")
        run.measure(measure)
        # Before the next one is loaded: two may not fit into memory.
        del measure
    assert run is not None
    run.merge_tables()
    return run


def checked_models(arguments: argparse.Namespace, default: Sequence[str]) -> list[str]:
    """The models of the command line, each found to be there before anything long begins.

    Raises:
        UserError: a model that is named twice, cannot be found or is incomplete.
    """
    if not sys.stderr.isatty():
        # transformers gives this function no types.
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    names = unique_models(arguments.models, default)
    for name in names:
        find_model(
            name,
            revision=arguments.revision,
            allow_pickle=arguments.allow_pickle,
            trust_remote_code=arguments.trust_remote_code,
        )
    return names


def loaded(name: str, arguments: argparse.Namespace) -> Model:
    """A model, loaded as the command line says."""
    model = load_model(name, **load_options(arguments))
    if model.quantization is not None:
        # bitsandbytes tells of every product in 8 bits that its inputs are cast.
        logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
        say(f"the weights of {name} are quantized: {model.quantization}")
    return model


def summarize(answers: pd.DataFrame, failed: pd.DataFrame) -> dict[str, dict[str, object]]:
    """Shares that the tables do not show, by model, and a line on each that is not zero.

    Args:
        answers: model, answer and error of each prompt.
        failed: model, prompt_id and error of each row of any table that has an error.
    """
    summary: dict[str, dict[str, object]] = {}
    for model, rows in answers.groupby("model", sort=False):
        errors = failed[failed["model"] == model]
        counts = errors.drop_duplicates("prompt_id")["error"].value_counts().to_dict()
        without = float((rows["answer"] == "").mean())
        summary[str(model)] = {"no_answer_share": without, "errors": counts}
        if without:
            say(f"{model}: {without:.1%} of the prompts have no answer option as likeliest token")
        for error, count in counts.items():
            say(f"{model}: {count:,} prompts stopped with an error: {error}")
    return summary


def say(text: str) -> None:
    """A line for the person at the terminal; standard output is kept for tables."""
    sys.stderr.write(text + "\n")


def default_folder(
    arguments: argparse.Namespace, command: str, subject: str, parameters: Mapping[str, object]
) -> Path:
    """The folder of a command without --out: in runs/, named after command and options."""
    options = [subject, arguments.data, arguments.limit, arguments.seed, dict(parameters)]
    digest = hashlib.sha256(json.dumps(options).encode()).hexdigest()[:8]
    pairs = "all" if arguments.limit is None else str(arguments.limit)
    return Path("runs") / f"{command}-{subject}-{pairs}-{digest}"
