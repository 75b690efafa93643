"""A plan: models and what is measured of each; a worker takes part in it until all is done.

1. A worker takes the models in turn, each worker beginning with another one.
2. It loads a model only if there is something to do for it, and measures in each stage the shards
   that it can claim.
3. When others have claimed everything that is left, it waits: for the shards, or for a claim to
   expire.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from interp.console import echo
from interp.measurements.core import Measurement, bind
from interp.measurements.spec import Spec
from interp.models.model import Model
from interp.prompts.prompt_set import PromptSet
from interp.runs.environment import now, versions
from interp.runs.folder import RECORD
from interp.runs.run import Run
from interp.runs.schemas import Call

POLL = 1.0
"""Seconds between two looks at what other workers have done."""


@dataclass(frozen=True)
class Stage:
    """One measurement of one prompt set."""

    name: str
    prompts: PromptSet
    spec: Spec


@dataclass(frozen=True)
class Plan:
    """What is to be measured, and where it is kept."""

    folder: Path
    """Of all of it; workers leave their records here."""
    stages: Mapping[Path, Stage]
    """What is measured, by run folder."""
    models: Mapping[str, Mapping[str, Any]]
    """What each model is loaded from, by name: where it is, and how it is loaded."""
    load: Callable[[str], Model]
    """Loads a model by name."""
    command: str | None = None
    """The command line, for the record; None for a call from Python."""
    batch_tokens: int | None = None
    fail_on_error: float = 1.0
    call: str = field(default_factory=lambda: token_hex(6))
    """Tells this call's records and workers from those of other calls on the same folder."""

    def begun(self) -> bool:
        """Whether an earlier call has taken the folders."""
        return all((folder / RECORD).exists() for folder in self.stages)

    def open(self) -> list[Run]:
        """Take the folders; damaged shards are set aside, with a line on each.

        Raises:
            UserError: a folder that holds something else.
        """
        runs = [
            Run.open(
                folder,
                stage.prompts,
                stage.spec,
                models=list(self.models),
                fail_on_error=self.fail_on_error,
            )
            for folder, stage in self.stages.items()
        ]
        for run in runs:
            for line in run.repair():
                echo(line)
        return runs

    def begin(self, runs: Sequence[Run]) -> None:
        """Note the call in the history of its runs."""
        for run in runs:
            run.begin(self.this_call())

    def this_call(self) -> Call:
        """What records say of this call when it begins."""
        return Call(
            id=self.call,
            command=self.command,
            models=list(self.models),
            started=now(),
            versions=versions(),
        )

    def join(self) -> list[Run]:
        """Join, as a worker, what another process has opened.

        Raises:
            UserError: a folder that holds something else.
        """
        return [
            Run.join(
                folder,
                stage.prompts,
                stage.spec,
                fail_on_error=self.fail_on_error,
            )
            for folder, stage in self.stages.items()
        ]

    def complete(self, runs: Sequence[Run]) -> bool:
        """Whether nothing is left to do."""
        return all(run.complete(model) for run in runs for model in self.models)

    def measurements(self, model: Model) -> list[Measurement]:
        """What is measured of a model, stage by stage.

        Raises:
            UserError: something that the model lacks, such as a layer.
        """
        return [
            bind(stage.spec, model, batch_tokens=self.batch_tokens)
            for stage in self.stages.values()
        ]


def take_part(plan: Plan, number: int, open_runs: Callable[[], list[Run]]) -> list[Run]:
    """Measure, as the worker of a number, until every shard is done; returns the runs.

    `open_runs` is called when the first model has been loaded and its options are found to be
    good, so that a mistake leaves no folder behind.

    Raises:
        UserError: from loading, measuring or writing.
    """
    names = list(plan.models)
    first, *rest = names[number % len(names) :] + names[: number % len(names)]
    measurements = _measurements(plan, first)
    runs = open_runs()
    measured = _measure(runs, measurements, plan.models[first])
    # Before the next model is loaded: two may not fit into memory.
    del measurements
    measured |= _measure_each(plan, runs, rest)
    waiting = False
    while not plan.complete(runs):
        if not measured:
            if not waiting:
                echo("waiting for what other workers have claimed")
            waiting = True
            time.sleep(POLL)
        measured = _measure_each(plan, runs, [first, *rest])
    return runs


def _measure_each(plan: Plan, runs: Sequence[Run], names: Sequence[str]) -> bool:
    """Measure the models for which there is something to do; whether there was."""
    measured = False
    for name in names:
        if any(run.offers(name, plan.models[name]) for run in runs):
            measurements = _measurements(plan, name)
            measured |= _measure(runs, measurements, plan.models[name])
            del measurements
    return measured


def _measurements(plan: Plan, name: str) -> list[Measurement]:
    """Load a model, saying which of several it is, and bind what is measured of it."""
    names = list(plan.models)
    if len(names) > 1:
        echo(f"model {names.index(name) + 1} of {len(names)}: {name}")
    return plan.measurements(plan.load(name))


def _measure(
    runs: Sequence[Run], measurements: Sequence[Measurement], origin: Mapping[str, Any]
) -> bool:
    measured = [
        run.measure(measurement, origin=origin)
        for run, measurement in zip(runs, measurements, strict=True)
    ]
    return any(measured)
