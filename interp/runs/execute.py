"""Execute a plan: measure in this process, or start workers and watch until everything is done.

Every worker goes through the models, each starting with a different one, and loads those that have
shards left to measure. If other workers have claimed the rest, it waits for their shards or for a
claim to become void.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from interp.console import Progress, echo
from interp.errors import UserError
from interp.measuring.core import Measurement, bind, check_thinking, explained
from interp.models.model import Model
from interp.plugins import EXECUTORS, load_plugin
from interp.runs.options import INLINE, ExecutionOptions
from interp.runs.plan import RunPlan
from interp.runs.run import Run, in_use
from interp.runs.shards import manifests
from interp.runs.workers import INTERRUPTED, Worker, WorkerCommand, recorded_worker, worker_records

if TYPE_CHECKING:
    from interp.runs.together import Ranks

POLL = 1.0
"""Number of seconds between two checks on other workers' progress."""

PATIENCE = 10.0
"""Number of seconds that workers have to exit by themselves once everything is measured."""


def execute(
    plan: RunPlan, execution: ExecutionOptions | None = None, *, job: str = ""
) -> list[Run]:
    """Measure everything, by default in this process; workers in others receive the job as JSON.

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


def take_part(plan: RunPlan, number: int, ranks: "Ranks | None" = None) -> None:
    """Measure as the worker with this index, in folders that another process has opened.

    `ranks` is this process among those that hold each model together; None if it does so alone.
    """
    if ranks is not None and ranks.rank > 0:
        _follow(plan, ranks)
        return
    with ExitStack() as used:
        runs = plan.open(joins=True)
        for run in runs:
            used.enter_context(in_use(run))
        work(plan, runs, number, ranks)


def work(plan: RunPlan, runs: Sequence[Run], number: int, ranks: "Ranks | None" = None) -> None:
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


def _follow(plan: RunPlan, ranks: "Ranks") -> None:
    """Compute what rank 0 tells this process to, and drop the results."""
    from interp.scoring.own_thoughts import thought_surprise
    from interp.scoring.replies import first_replies
    from interp.scoring.rounding import logit_spacing

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
            elif order["do"] == "find_surprise":
                thought_surprise(measurement.model, prompts)
            elif order["do"] == "find_replies":
                first_replies(measurement.model, prompts, measurement.spec.replies_read)
            elif order["do"] == "explain":
                explained(order["error"], measurement.model, prompts[:1])


def _measure(plan: RunPlan, runs: Sequence[Run], name: str, ranks: "Ranks | None") -> bool:
    """Load a model and measure it in each run; return whether anything was measured."""
    names = list(plan.models)
    if len(names) > 1:
        echo(f"model {names.index(name) + 1} of {len(names)}: {name}")
    # Before weights are loaded; `bind` checks models that are loaded.
    for stage in () if isinstance(plan.models[name], Model) else plan.stages.values():
        given = plan.computing.thoughts is not None
        check_thinking(stage.spec, name, plan.loading.chat(), thoughts=given)
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


def _bound(plan: RunPlan, name: str, ranks: "Ranks | None") -> list[Measurement]:
    """Load a model, and bind all measurements to it first, which reports a missing layer."""
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
    new = {shard for run in runs for model in plan.models for shard in run.done(model)} - seen
    seen.update(new)
    return sum(manifest.prompts for manifest in manifests(new))


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
