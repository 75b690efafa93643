"""`python -m tests.fuzz`: try many cases, print what broke, and exit with 1 if anything did."""

import argparse
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Question = tuple[str, int]
Result = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("traceback", "hang", "escape", "accepted", "other")
SHARES = {
    "command_lines": 0.3,
    "data_files": 0.2,
    "run_folders": 0.33,
    "study_folders": 0.03,
    "model_folders": 0.08,
    "templates": 0.02,
    "trainings": 0.02,
    "degenerate": 0.02,
}
"""By target: its share of the cases."""

NO_JAIL = 3
"""How a server ends that cannot shut itself in."""

PLANTED = "planted"
"""Cases that are wrong on purpose, to see that they are found."""

_QUIET = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "HF_HUB_OFFLINE"), "1"),
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "TOKENIZERS_PARALLELISM": "false",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases; 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, metavar="N")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes")
    parser.add_argument("--only", metavar="TARGET:NUMBER", help="tell all of one case")
    parser.add_argument("--target", choices=(*SHARES, PLANTED), help="cases of this target alone")
    parser.add_argument("--failures", type=Path, metavar="FILE", help="write them here, as JSON")
    parsed = parser.parse_args(arguments)
    if parsed.only:
        target, _, number = parsed.only.partition(":")
        (result,) = _answers(parsed.seed, _queue([(target, int(number))]))
        print("\n".join(f"{name}: {value}" for name, value in result.items()))
        return int(bool(result["failure"]))
    shares = {parsed.target: 1.0} if parsed.target else SHARES
    waiting = _queue(mixed(parsed.cases, shares))
    results: list[Result] = []

    def work(_: int) -> None:
        while not waiting.empty():
            for result in _answers(parsed.seed, waiting):
                results.append(result)
                if len(results) % 100 == 0:
                    failed = sum(bool(result["failure"]) for result in results)
                    print(f"{len(results):,} cases, {failed:,} failures", flush=True)

    with ThreadPoolExecutor(parsed.jobs) as pool:
        list(pool.map(work, range(parsed.jobs)))
    print(told(results, list(shares)))
    failures = [result for result in results if result["failure"]]
    if parsed.failures is not None:
        content = {"seed": parsed.seed, "cases": len(results), "failures": failures}
        parsed.failures.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return int(bool(failures))


def mixed(cases: int, shares: dict[str, float]) -> list[Question]:
    """Target and number of each case, the targets mixed evenly and each there at least once."""
    counts = {target: max(1, round(cases * share)) for target, share in shares.items()}
    places = [((n + 0.5) / count, t, n) for t, count in counts.items() for n in range(count)]
    return [(target, number) for _, target, number in sorted(places)]


def told(results: Sequence[Result], targets: Sequence[str]) -> str:
    """Cases and failures by target, then failures that are alike, each with a case to try."""
    lines = [f"{'':15}{'cases':>8}" + "".join(f"{kind:>11}" for kind in KINDS) + f"{'s':>8}"]
    for target in (*targets, None):
        own = [result for result in results if target in (None, result["target"])]
        failed = Counter(result["failure"][0] for result in own if result["failure"])
        seconds = sum(result["seconds"] for result in own) / max(1, len(own))
        counts = "".join(f"{failed[kind]:11,}" for kind in KINDS)
        lines.append(f"{target or 'together':15}{len(own):8,}{counts}{seconds:8.2f}")
    alike: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        if result["failure"]:
            alike.setdefault(tuple(result["failure"]), []).append(result)
    for failure, found in sorted(alike.items(), key=lambda item: -len(item[1])):
        example = f"--only {found[0]['target']}:{found[0]['number']}"
        lines.append(f"{len(found):6,}  {': '.join(failure)}  ({example})")
    return "\n".join(lines)


def _queue(questions: Sequence[Question]) -> "queue.SimpleQueue[Question]":
    waiting: queue.SimpleQueue[Question] = queue.SimpleQueue()
    for question in questions:
        waiting.put(question)
    return waiting


def _answers(seed: str, waiting: "queue.SimpleQueue[Question]") -> Iterator[Result]:
    """Answers of one server, until there is no more to ask or it ends over a case."""
    folder = tempfile.mkdtemp(prefix="interp-fuzz-")
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.server", folder, seed],
        cwd=ROOT,
        env={**os.environ, **_QUIET},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        while not waiting.empty():
            target, number = waiting.get()
            server.stdin.write(f"{target} {number}\n")
            server.stdin.flush()
            if answer := server.stdout.readline():
                yield json.loads(answer)
                continue
            if server.wait() == NO_JAIL:
                raise SystemExit("this machine allows no mount namespaces: nothing is tried")
            lost = ["escape", "the server ended over it"]
            yield {"target": target, "number": number, "failure": lost, "seconds": 0.0}
            return
    finally:
        server.communicate()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
