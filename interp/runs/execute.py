"""Execute a plan in this process, or start workers and watch the folders until all is measured.

1. In this process: take part as the only worker.
2. Otherwise open the folders, start the workers, and watch shards appear until all workers end.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from interp.console import Progress, echo
from interp.errors import UserError
from interp.runs.executors import Worker
from interp.runs.plan import POLL, Plan, take_part
from interp.runs.run import Run, in_use
from interp.runs.shards import manifests
from interp.runs.workers import INTERRUPTED, recorded_worker, worker_records

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
