"""`python -m tests.fuzz`: try many cases, print what failed, and exit with 1 if anything did."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Question = tuple[str, int]
"""A case: its target and number."""

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
"""Share of the cases, by target."""

NO_JAIL = 3
"""Exit code of `trials` if the machine allows no namespaces."""

PLANTED = "planted"
"""Target of cases that fail on purpose, to test that failures are found."""

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
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="cases at a time")
    parser.add_argument("--only", metavar="TARGET:NUMBER", help="print everything about one case")
    parser.add_argument("--target", choices=(*SHARES, PLANTED), help="only cases of this target")
    parser.add_argument("--failures", type=Path, metavar="FILE", help="write them here, as JSON")
    options = parser.parse_args(arguments)
    if options.only:
        target, _, number = options.only.partition(":")
        (result,) = tried(options.seed, 1, [(target, int(number))])
        print("\n".join(f"{name}: {value}" for name, value in result.items()))
        return int(bool(result["failure"]))
    shares = {options.target: 1.0} if options.target else SHARES
    results: list[Result] = []
    for result in tried(options.seed, options.jobs, mixed(options.cases, shares)):
        results.append(result)
        if len(results) % 100 == 0:
            failed = sum(bool(result["failure"]) for result in results)
            print(f"{len(results):,} cases, {failed:,} failures", flush=True)
    print(told(results, list(shares)))
    failures = [result for result in results if result["failure"]]
    if options.failures is not None:
        content = {"seed": options.seed, "cases": len(results), "failures": failures}
        options.failures.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return int(bool(failures))


def mixed(cases: int, shares: dict[str, float]) -> list[Question]:
    """Target and number of each case, the targets mixed evenly and each there at least once."""
    counts = {target: max(1, round(cases * share)) for target, share in shares.items()}
    places = [((n + 0.5) / count, t, n) for t, count in counts.items() for n in range(count)]
    return [(target, number) for _, target, number in sorted(places)]


def tried(seed: str, jobs: int, cases: Sequence[Question]) -> Iterator[Result]:
    """The results of the cases, in the order in which they end.

    Raises:
        SystemExit: the machine allows no namespaces, or `trials` failed.
    """
    with tempfile.TemporaryDirectory(prefix="interp-fuzz-") as folder:
        command = [sys.executable, "-m", "tests.fuzz.trials", folder]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **_QUIET}, **pipes) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps([seed, jobs, cases]).encode())
            process.stdin.close()
            yield from map(json.loads, process.stdout)
        if process.returncode == NO_JAIL:
            raise SystemExit("this machine allows no mount namespaces: nothing is tried")
        if process.returncode:
            raise SystemExit(f"tests.fuzz.trials ended with {process.returncode}")


def told(results: Sequence[Result], targets: Sequence[str]) -> str:
    """Cases and failures by target, then each class of failures with a case to try."""
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


if __name__ == "__main__":
    sys.exit(main())
