"""A plan: models and what is measured of each; a worker takes part in it until all is done.

1. A worker takes the models in turn, each worker beginning with another one.
2. It loads a model only if there is something to do for it, and measures in each stage the shards
   that it can claim.
3. When others have claimed everything that is left, it waits: for the shards, or for a claim to
   expire.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from interp.console import Progress, echo
from interp.errors import UserError
from interp.measurements.core import Measurement
from interp.measurements.spec import Spec
from interp.models.model import Model
from interp.prompts.prompt_set import PromptSet
from interp.runs.folder import RECORD
from interp.runs.records import Call, now, versions
from interp.runs.run import Run, in_use
from interp.runs.shards import manifests
from interp.runs.workers import INTERRUPTED, Worker, recorded_worker, worker_records

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
            stage.spec.bind(model, batch_tokens=self.batch_tokens) for stage in self.stages.values()
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


PATIENCE = 10.0
"""Seconds that workers get to end by themselves when all is measured."""


def execute(
    plan: Plan, *, start: Callable[[], Sequence[Worker]] | None, retry_errors: bool = False
) -> list[Run]:
    """Measure everything; what was finished before is not measured again.

    Args:
        plan: what to measure.
        start: starts workers; without it all is measured in this process.
        retry_errors: measure shards that hold errors again.

    Raises:
        UserError: from the plan or its workers, or workers that ended before all was done.
    """
    if start is None and not plan.begun():
        return _take_part_alone(plan)
    runs = _open(plan, retry_errors)
    if not _anything_to_do(plan, runs):
        return runs
    if start is None:
        return _take_part_alone(plan)
    plan.begin(runs)
    with _using(plan, runs):
        _watch(plan, runs, start())
    return runs


def _open(plan: Plan, retry_errors: bool) -> list[Run]:
    runs = plan.open()
    if retry_errors:
        count = sum(run.forget_errors() for run in runs)
        echo(f"{count:,} shards with errors are measured again")
    return runs


def _take_part_alone(plan: Plan) -> list[Run]:
    with ExitStack() as on_record:

        def open_runs() -> list[Run]:
            runs = plan.open()
            plan.begin(runs)
            on_record.enter_context(recorded_worker(plan.folder, plan.call, 0))
            on_record.enter_context(_using(plan, runs))
            return runs

        return take_part(plan, 0, open_runs)


@contextmanager
def _using(plan: Plan, runs: Sequence[Run]) -> Iterator[None]:
    """Within the block the folders are in use; a UserError takes unbegun models off the record."""
    with ExitStack() as stack:
        for run in runs:
            stack.enter_context(in_use(run))
        try:
            yield
        except UserError:
            for run in runs:
                run.forget_models(list(plan.models))
            raise


def _anything_to_do(plan: Plan, runs: Sequence[Run]) -> bool:
    return not plan.complete(runs) or any(
        run.offers(name, origin) for run in runs for name, origin in plan.models.items()
    )


def _watch(plan: Plan, runs: Sequence[Run], workers: Sequence[Worker]) -> None:
    """Show the progress until every worker has ended; stop them when this process is stopped."""
    seen: set[Path] = set()
    done = _newly_done(plan, runs, seen)
    total = sum(len(run.prompts) for run in runs) * len(plan.models)
    try:
        with Progress(f"{len(workers)} workers", total=total, done=done) as progress:
            while any(worker.running() for worker in workers) and not plan.complete(runs):
                time.sleep(POLL)
                progress.advance(_newly_done(plan, runs, seen))
        _wait(workers)
    except BaseException:
        for worker in workers:
            worker.stop()
        raise
    _check(plan, runs, workers)


def _wait(workers: Sequence[Worker]) -> None:
    """Wait for workers that have nothing left to do, and stop those that hang."""
    end = time.monotonic() + PATIENCE
    while any(worker.running() for worker in workers) and time.monotonic() < end:
        time.sleep(POLL / 10)
    for worker in workers:
        if worker.running():
            echo(f"worker {worker.number} does not end though all is measured; it is stopped")
            worker.stop()


def _newly_done(plan: Plan, runs: Sequence[Run], seen: set[Path]) -> int:
    """Prompts of the shards that are done and were not seen yet, all runs and models together."""
    found = {shard for run in runs for model in plan.models for shard in run.done(model)} - seen
    seen.update(found)
    return sum(manifest.prompts for manifest in manifests(found))


def _check(plan: Plan, runs: Sequence[Run], workers: Sequence[Worker]) -> None:
    """Tell how workers failed; an error if their share was not done by others.

    Raises:
        UserError: not all was measured.
    """
    records = worker_records(plan.folder, plan.call)
    errors = {record.number: record.error for record in records}
    problems = [line for worker in workers if (line := _problem(worker, errors))]
    if not plan.complete(runs):
        told = "\n".join(problems) or "the workers ended early"
        raise UserError(
            f"not all was measured. {told}\nWhat is done stays; rerun the same command to resume"
        )
    for problem in problems:
        echo(f"{problem}\nThe others did its share.")


def _problem(worker: Worker, errors: dict[int, str | None]) -> str | None:
    """How a worker failed, in its own words where it left any."""
    problem, error = worker.problem(), errors.get(worker.number)
    if problem is None:
        return None
    return f"worker {worker.number}: {problem if error in (None, INTERRUPTED) else error}"
