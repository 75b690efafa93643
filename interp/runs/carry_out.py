"""Carry out work: here, or by workers elsewhere that the folder is watched for.

1. In this process: take part as the only worker.
2. Otherwise open the folders, start the workers, and watch shards appear until all workers end.
3. Merge each run's tables.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from interp.errors import UserError
from interp.runs.executors import Worker
from interp.runs.progress import Progress, tell
from interp.runs.run import Run
from interp.runs.shards import read_manifest
from interp.runs.work import POLL, Work, take_part
from interp.runs.workers import INTERRUPTED, recorded_worker, worker_records


def carry_out(
    work: Work, *, start: Callable[[], Sequence[Worker]] | None, retry_errors: bool = False
) -> list[Run]:
    """Measure everything and merge the tables; what was finished before is not done again.

    Args:
        work: what to measure.
        start: starts workers; without it all is measured in this process.
        retry_errors: measure shards that hold errors again.

    Raises:
        UserError: from the work or its workers, or workers that ended before all was done.
    """
    if start is None:
        runs = _take_part_alone(work, retry_errors)
    else:
        runs = _open(work, retry_errors)
        if _anything_to_do(work, runs):
            _watch(work, runs, start())
    for run in runs:
        run.merge_tables()
    return runs


def _open(work: Work, retry_errors: bool) -> list[Run]:
    runs = work.open()
    if retry_errors:
        count = sum(run.forget_errors() for run in runs)
        tell(f"{count:,} shards with errors are measured again")
    return runs


def _take_part_alone(work: Work, retry_errors: bool) -> list[Run]:
    with ExitStack() as on_record:

        def open_runs() -> list[Run]:
            runs = _open(work, retry_errors)
            on_record.enter_context(recorded_worker(work.folder, 0))
            return runs

        return take_part(work, 0, open_runs)


def _anything_to_do(work: Work, runs: Sequence[Run]) -> bool:
    return not work.complete(runs) or any(
        run.offers(name, origin) for run in runs for name, origin in work.models.items()
    )


def _watch(work: Work, runs: Sequence[Run], workers: Sequence[Worker]) -> None:
    """Show the progress until every worker has ended; stop them when this process is stopped."""
    seen: set[Path] = set()
    done = _newly_done(work, runs, seen)
    total = sum(len(run.prompts) for run in runs) * len(work.models)
    try:
        with Progress(f"{len(workers)} workers", total=total, done=done) as progress:
            while any(worker.running() for worker in workers):
                time.sleep(POLL)
                progress.advance(_newly_done(work, runs, seen))
    except BaseException:
        for worker in workers:
            worker.stop()
        raise
    _check(work, runs, workers)


def _newly_done(work: Work, runs: Sequence[Run], seen: set[Path]) -> int:
    """Prompts of the shards that are done and were not seen yet, all runs and models together."""
    found = {
        shard: manifest["prompts"]
        for run in runs
        for model in work.models
        for shard in run.shards(model)
        if shard not in seen and (manifest := read_manifest(shard)) is not None
    }
    seen.update(found)
    return sum(found.values())


def _check(work: Work, runs: Sequence[Run], workers: Sequence[Worker]) -> None:
    errors = {record["number"]: record.get("error") for record in worker_records(work.folder)}
    problems = []
    for worker in workers:
        problem, error = worker.problem(), errors.get(worker.number)
        if problem is not None:
            told = problem if error in (None, INTERRUPTED) else error
            problems.append(f"worker {worker.number}: {told}")
    if not work.complete(runs):
        told = "\n".join(problems) or "the workers ended early"
        raise UserError(
            f"not all was measured. {told}\nWhat is done stays, and the same command goes on"
        )
    for problem in problems:
        tell(f"{problem}\nThe others did its share.")
