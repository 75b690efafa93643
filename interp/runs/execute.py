"""Execute a plan: measure in this process, or start workers and watch until everything is done.

1. Open the run folders of the plan; finished shards are not measured again.
2. Measure as the only worker, or start workers and watch for their shards.
3. Every worker goes through the models, each starting with a different one. It loads a model only
   if that model has shards left to measure, and measures the shards that it can claim. If other
   workers have claimed the rest, it waits for their shards or for a claim to become void.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar

import pandas as pd

from interp.console import Progress, echo
from interp.errors import UserError
from interp.files import inside, remove_plain
from interp.measuring.core import Measurement, bind, check_thinking, explained
from interp.measuring.spec import Stage
from interp.models.load import FoundModel, load_found, load_skeleton, set_threads
from interp.models.loading import Loading
from interp.models.model import Model
from interp.plugins import EXECUTORS, load_plugin
from interp.prompts.thought import Thought
from interp.runs.folder import RunFolder
from interp.runs.options import INLINE, ComputeOptions, ExecutionOptions
from interp.runs.records import Call, now, versions
from interp.runs.run import Run, in_use
from interp.runs.shards import manifests
from interp.runs.together import Ranks
from interp.runs.workers import (
    INTERRUPTED,
    Worker,
    WorkerCommand,
    recorded_worker,
    worker_records,
)
from interp.scoring.rounding import logit_spacing

POLL = 1.0
"""Number of seconds between two checks on other workers' progress."""

PATIENCE = 10.0
"""Number of seconds that workers have to exit by themselves once everything is measured."""


@dataclass(frozen=True)
class RunPlan:
    """What to measure, and the folders for the results."""

    folder: Path
    """The folder for the whole plan, with the workers' records."""
    stages: Mapping[Path, Stage]
    """The stages by run folder."""
    models: Mapping[str, FoundModel | Model]
    """The models by name: loaded, or only located on disk; the latter are loaded one at a time."""
    loading: Loading = field(default_factory=Loading)
    computing: ComputeOptions = field(default_factory=ComputeOptions)
    command: str | None = None
    """The command line, for the record; None for a call from Python."""
    call: str = field(default_factory=lambda: token_hex(6))
    """Id that distinguishes the records and workers of this call from those of other calls on the
    same folder.
    """

    kept: ClassVar[list[tuple[object, Model]] | None] = None
    """Within `keeping_model`: what was loaded last, by name, origin and presence of weights."""

    @property
    def needs_weights(self) -> bool:
        """Whether this machine computes at least one stage."""
        return any(stage.spec.needs_weights for stage in self.stages.values())

    def origin(self, name: str) -> dict[str, Any]:
        """A model's source and loading options, which let later calls recognize it."""
        model = self.models[name]
        if isinstance(model, Model):
            return {**model.source, "files": None}
        origin = {**self.loading.identity(), **model.source, "files": model.fingerprint}
        if self.computing.thoughts is not None:
            origin["thoughts"] = RunFolder.read(self.computing.thoughts).shards_hash(model.name)
        return origin

    def model(self, name: str) -> Model:
        """The model with this name; if it is not in memory yet, it is loaded."""
        found = self.models[name]
        if isinstance(found, Model):
            return found
        key = name, self.origin(name), self.needs_weights
        for known, model in self.kept or ():
            if known == key:
                return model
        if self.kept:
            self.kept.clear()  # two models may not fit into memory
        if len(self.models) == 1:
            echo(f"loading {name} ...")
        model = load_for_run(found, self.loading, self.computing, weights=self.needs_weights)
        if self.kept is not None:
            self.kept.append((key, model))
        return model

    def check_thinking(self, name: str) -> None:
        """Check that a model thinks as the stages require, before its weights are loaded.

        Raises:
            UserError: it does not think, or has no thoughts yet.
        """
        if isinstance(self.models[name], Model):
            return  # `bind` checks it
        given = self.computing.thoughts is not None
        for stage in self.stages.values():
            check_thinking(stage.spec, name, self.loading.chat(), thoughts=given)

    def open(self, *, joins: bool = False) -> list[Run]:
        """Open the folders; workers that join a run change nothing in them."""
        return [
            Run.open(
                folder,
                stage.prompts,
                stage.spec,
                models=list(self.models),
                fail_on_error=self.computing.fail_on_error,
                joins=joins,
            )
            for folder, stage in self.stages.items()
        ]

    def note(self, runs: Sequence[Run]) -> None:
        """Record the call in the history of each of its runs."""
        for run in runs:
            run.note(self.this_call())

    def this_call(self) -> Call:
        """The record of this call as it starts."""
        return Call(
            id=self.call,
            command=self.command,
            models=list(self.models),
            started=now(),
            versions=versions(),
        )

    def withdraw(self, runs: Sequence[Run]) -> None:
        """Undo the preparations of a call that has failed.

        If it created all of its folders and measured nothing in them, remove the folders.
        Otherwise, remove the models that no command has begun from the folders' records.
        """
        if all(run.gives_way() for run in runs):
            with suppress(OSError):
                workers = inside(self.folder, "workers")
                remove_plain(workers, [f"{self.call}-0.json"])
                workers.rmdir()
            for run in runs:
                run.remove()
        else:
            for run in runs:
                run.forget_models(list(self.models))

    def complete(self, runs: Sequence[Run]) -> bool:
        """Whether all shards exist."""
        return not any(run.missing(self.models) for run in runs)


@contextmanager
def keeping_model() -> Iterator[None]:
    """Within the block, a plan does not load the model again that an earlier plan loaded last."""
    RunPlan.kept = []
    try:
        yield
    finally:
        RunPlan.kept = None


def load_for_run(
    found: FoundModel, loading: Loading, computing: ComputeOptions, *, weights: bool = True
) -> Model:
    """Load a located model for measurement, without its weights if a server computes."""
    model = load_found(found, loading) if weights else load_skeleton(found, loading)
    set_threads(model, computing.threads)
    if computing.thoughts is not None:
        model = with_thoughts(model, computing.thoughts)
    if model.quantization is not None:
        echo(f"the weights of {model.name} are quantized: {model.quantization}")
    return model


def with_thoughts(model: Model, thoughts: Path | pd.DataFrame) -> Model:
    """The model with its own thoughts, after which answers are read.

    Args:
        model: a model loaded with thinking on.
        thoughts: the folder of a run of generate --thinking on, or its thoughts table.

    Raises:
        UserError: thinking is off, or the folder or table has no thoughts of this model.
    """
    if not model.chat.thinks:
        raise UserError(
            f"got thoughts, but thinking is off for {model.name}; turn it on "
            "(--thinking on), or omit the thoughts"
        )
    if isinstance(thoughts, Path):
        where, run = str(thoughts), RunFolder.read(thoughts)
        if "thoughts" not in run.tables():
            raise UserError(
                f"{where} holds no thoughts; expected the folder of a run of generate --thinking on"
            )
        table = run.table("thoughts")
    else:
        where, table = "the table of thoughts", thoughts
    own = table[(table["model"] == model.name) & (table["error"] == "")]
    if own.empty:
        there = ", ".join(table["model"].unique())
        raise UserError(f"{where} has no thoughts of {model.name}; it has thoughts of {there}")
    if own.duplicated(["prompt_id", "draw"]).any():
        raise UserError(f"{where} has two thoughts of one draw; draw the thoughts again")
    found: dict[str, list[Thought]] = {}
    for row in own.sort_values("draw").to_dict("records"):
        ended = row["finished"] == "marker" or bool(row["forced"])
        thought = Thought(row["before"], tuple(row["sentences"]), row["after"], ended=ended)
        found.setdefault(row["prompt_id"], []).append(thought)
    return replace(model, thoughts={prompt: tuple(draws) for prompt, draws in found.items()})


def execute(
    plan: RunPlan, execution: ExecutionOptions | None = None, *, job: str = ""
) -> list[Run]:
    """Measure everything; finished shards are not measured again.

    Args:
        plan: the plan to execute.
        execution: where to measure; by default, in this process.
        job: the job as JSON, for workers in other processes.

    Raises:
        UserError: the plan or a worker failed, or workers ended before everything was done.
    """
    execution = execution or ExecutionOptions()
    for model in plan.models.values():
        if isinstance(model, Model) and model.is_sharded:
            raise UserError(
                f"{model.name} is spread over processes (tp_plan), which would each claim shards "
                "of one folder and wait for one another; pass the model's name and "
                "tensor_parallel, or use a call that writes no folder, such as interp.evaluate"
            )
    runs = plan.open()
    for run in runs:
        for line in run.repair():
            echo(line)
    if execution.retry_errors:
        count = sum(run.forget_errors() for run in runs)
        echo(f"{count:,} shards with errors are measured again")
    if plan.complete(runs) and not any(_offered(plan, runs, name) for name in plan.models):
        return runs
    with ExitStack() as used:
        for run in runs:
            used.enter_context(in_use(run))
        plan.note(runs)
        try:
            if execution.executor == INLINE and plan.loading.ranks == 1:
                work(plan, runs, 0)
            else:
                _watch(plan, runs, _start(plan, execution, job))
        except UserError:
            used.close()
            plan.withdraw(runs)
            raise
    return runs


def take_part(plan: RunPlan, number: int, ranks: Ranks | None = None) -> None:
    """Measure as a worker in folders that another process has opened.

    Args:
        plan: what to measure.
        number: the worker's index.
        ranks: this process among those that hold each model together; None if it does so alone.
    """
    if ranks is not None and ranks.rank > 0:
        _follow(plan, ranks)
        return
    with ExitStack() as used:
        runs = plan.open(joins=True)
        for run in runs:
            used.enter_context(in_use(run))
        work(plan, runs, number, ranks)


def work(plan: RunPlan, runs: Sequence[Run], number: int, ranks: Ranks | None = None) -> None:
    """Measure as the worker with this index until every shard is done."""
    names = list(plan.models)
    names = names[number % len(names) :] + names[: number % len(names)]
    waited = False
    if ranks is not None:
        for stage, run in enumerate(runs):
            run.tell = partial(ranks.tell, stage=stage)
    with recorded_worker(plan.folder, plan.call, number, ranks=plan.loading.ranks):
        while True:
            measured = [
                _measure(plan, runs, name, ranks) for name in names if _offered(plan, runs, name)
            ]
            if ranks is not None:
                ranks.tell("end" if plan.complete(runs) else "wait")
            if plan.complete(runs):
                return
            if not any(measured):
                if not waited:
                    echo("waiting for shards that other workers have claimed")
                waited = True
                time.sleep(POLL)


def _offered(plan: RunPlan, runs: Sequence[Run], name: str) -> bool:
    return any(run.offers(name, plan.origin(name)) for run in runs)


def _follow(plan: RunPlan, ranks: Ranks) -> None:
    """Compute what rank 0 tells this process to, and drop the results."""
    stages = list(plan.stages.values())
    measurements: Sequence[Measurement] = ()
    while (order := ranks.told())["do"] != "end":
        if order["do"] == "load":
            measurements = _bound(plan, order["model"], ranks)
        elif order["do"] != "wait":
            measurement, prompts = measurements[order["stage"]], stages[order["stage"]].prompts
            if order["do"] == "attempt":
                measurement.budget.tokens = order["tokens"]
                measurement.attempt(list(prompts[order["start"] : order["end"]]))
            elif order["do"] == "find_spacing":
                logit_spacing(measurement.model, prompts)
            elif order["do"] == "explain":
                explained(order["error"], measurement.model, prompts[:1])


def _measure(plan: RunPlan, runs: Sequence[Run], name: str, ranks: Ranks | None) -> bool:
    """Load a model and measure it in each run; return whether anything was measured."""
    names = list(plan.models)
    if len(names) > 1:
        echo(f"model {names.index(name) + 1} of {len(names)}: {name}")
    plan.check_thinking(name)
    if ranks is not None:
        ranks.tell("load", model=name)
    measurements = _bound(plan, name, ranks)
    measured = False
    stages = [stage.name for stage in plan.stages.values()]
    for number, (run, measurement) in enumerate(zip(runs, measurements, strict=True)):
        if len(stages) > 1:
            left = ", ".join([*stages[number + 1 :], "the report"])
            echo(f"stage {number + 1} of {len(stages)}: {stages[number]}; then {left}")
        measured |= run.measure(measurement, origin=plan.origin(name))
    return measured


def _bound(plan: RunPlan, name: str, ranks: Ranks | None) -> list[Measurement]:
    """Load a model, and bind all measurements to it before measuring begins.

    A missing layer is thus reported first.
    """
    model = plan.model(name)
    bound = [
        bind(stage.spec, model, batch_tokens=plan.computing.batch_tokens)
        for stage in plan.stages.values()
    ]
    if ranks is None:
        return bound
    assert model.identity  # computed here, since all ranks must gather the weights at once
    return [ranks.in_step(measurement) for measurement in bound]


def _start(plan: RunPlan, execution: ExecutionOptions, job: str) -> Sequence[Worker]:
    if execution.executor == INLINE:  # for processes that hold a model together
        execution = execution.model_copy(update={"executor": "local", "workers": 1})
    start = load_plugin(EXECUTORS, "executor", execution.executor)
    on_gpus = plan.needs_weights and plan.loading.device != "cpu"
    command = WorkerCommand(plan.folder, plan.call, job, on_gpus=on_gpus, ranks=plan.loading.ranks)
    workers: Sequence[Worker] = start(command, execution)
    return workers


def _watch(plan: RunPlan, runs: Sequence[Run], workers: Sequence[Worker]) -> None:
    """Show progress until all workers have ended; stop them if this process is stopped."""
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
    """Wait for the workers to exit once everything is measured, and stop any that hang."""
    end = time.monotonic() + PATIENCE
    while any(worker.running() for worker in workers) and time.monotonic() < end:
        time.sleep(POLL / 10)
    for worker in workers:
        if worker.running():
            echo(
                f"worker {worker.number} is still running although everything has been measured; "
                "stopping it"
            )
            worker.stop()


def _newly_done(plan: RunPlan, runs: Sequence[Run], seen: set[Path]) -> int:
    """Number of prompts in newly finished shards, summed over all runs and models."""
    found = {shard for run in runs for model in plan.models for shard in run.done(model)} - seen
    seen.update(found)
    return sum(manifest.prompts for manifest in manifests(found))


def _check(plan: RunPlan, runs: Sequence[Run], workers: Sequence[Worker]) -> None:
    records = worker_records(plan.folder, plan.call)
    own_words = {r.number: r.error for r in records if r.error not in (None, INTERRUPTED)}
    problems = [
        f"worker {worker.number}: {own_words.get(worker.number, problem)}"
        for worker in workers
        if (problem := worker.problem()) is not None
    ]
    if not plan.complete(runs):
        reasons = "\n".join(problems) or "the workers ended early"
        raise UserError(
            f"not everything was measured. {reasons}\nFinished work is kept; rerun the same "
            "command to resume"
        )
    for problem in problems:
        echo(f"{problem}\nThe other workers did this worker's share.")
