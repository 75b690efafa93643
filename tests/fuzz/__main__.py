"""`python -m tests.fuzz`: try many cases, print what broke, and exit with 1 if anything did."""

import argparse
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fuzz import report
from tests.fuzz.numbers import SHARES, numbers

Question = tuple[str, int]
ROOT = Path(__file__).resolve().parents[2]
_TOLD_EVERY = 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases; 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, metavar="N")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes")
    parser.add_argument("--only", type=_question, metavar="TARGET:NUMBER", help="tell all of it")
    parser.add_argument("--target", choices=tuple(SHARES), help="cases of this target alone")
    parser.add_argument("--failures", type=Path, metavar="FILE", help="write them here, as JSON")
    parsed = parser.parse_args(arguments)
    if parsed.only is not None:
        return _tell(next(_ask(parsed.seed, _queue([parsed.only]))))
    questions = numbers(parsed.cases)
    if parsed.target:
        questions = [(parsed.target, number) for number in range(parsed.cases)]
    results = _ask_all(parsed.seed, questions, parsed.jobs)
    print(report.table(results))
    print(report.classes(results))
    if parsed.failures is not None:
        report.write(parsed.failures, results, seed=parsed.seed)
    return int(any(result["failure"] for result in results))


def _question(text: str) -> Question:
    target, _, number = text.partition(":")
    if target not in SHARES or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no case such as run_folders:7")
    return target, int(number)


def _tell(result: dict[str, Any]) -> int:
    for name, value in result.items():
        print(f"{name}: {value}")
    return int(bool(result["failure"]))


def _ask_all(seed: str, questions: Sequence[Question], jobs: int) -> list[dict[str, Any]]:
    """The answers of several servers that share the questions."""
    waiting, start = _queue(questions), time.monotonic()
    results: list[dict[str, Any]] = []

    def work(_: int) -> None:
        while not waiting.empty():
            for result in _ask(seed, waiting):
                results.append(result)
                if len(results) % _TOLD_EVERY == 0:
                    seconds = time.monotonic() - start
                    print(f"{len(results):,} of {len(questions):,} in {seconds:.0f} s", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, range(jobs)))
    return sorted(results, key=lambda result: (result["target"], result["number"]))


def _queue(questions: Sequence[Question]) -> "queue.SimpleQueue[Question]":
    waiting: queue.SimpleQueue[Question] = queue.SimpleQueue()
    for question in questions:
        waiting.put(question)
    return waiting


def _ask(seed: str, waiting: "queue.SimpleQueue[Question]") -> Iterator[dict[str, Any]]:
    """Answers of one server, until there is no more to ask or it ends over a case."""
    with _server(seed) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        ready = server.stdout.readline()
        if not ready:
            raise RuntimeError("the server did not start; its message is above")
        if not json.loads(ready)["jailed"]:
            print("this machine allows no mount namespaces: the guard alone holds", flush=True)
        while True:
            try:
                target, number = waiting.get_nowait()
            except queue.Empty:
                return
            server.stdin.write(f"{target} {number}\n")
            server.stdin.flush()
            answer = server.stdout.readline()
            yield json.loads(answer) if answer else _lost(target, number)
            if not answer:
                return


def _lost(target: str, number: int) -> dict[str, Any]:
    failure = ("escape", "the server ended over it")
    return {"target": target, "number": number, "failure": failure, "seconds": 0.0}


@contextmanager
def _server(seed: str) -> Iterator["subprocess.Popen[str]"]:
    """A server, in an empty folder that is removed afterwards."""
    folder = tempfile.mkdtemp(prefix="interp-fuzz-")
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.server", folder, seed],
        cwd=ROOT,
        env={**os.environ, **_QUIET},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield server
    finally:
        server.communicate()
        shutil.rmtree(folder)


_QUIET = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}

if __name__ == "__main__":
    sys.exit(main())
