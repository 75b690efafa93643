"""What a whole run found: a table by target for people, and a file with every failure."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fuzz.verdict import KINDS


def table(results: Sequence[dict[str, Any]]) -> str:
    """One row a target: cases, those that are right, and the failures by kind."""
    head = ("target", "cases", "right", *KINDS, "s/case")
    targets = list(dict.fromkeys(result["target"] for result in results))
    rows = [head, *(_row(target, results) for target in targets), _row(None, results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )


def _row(target: str | None, results: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    own = [result for result in results if target in (None, result["target"])]
    failed = Counter(result["failure"][0] for result in own if result["failure"])
    counts = [len(own), len(own) - failed.total(), *(failed[kind] for kind in KINDS)]
    seconds = sum(result["seconds"] for result in own) / max(1, len(own))
    return (target or "together", *(f"{count:,}" for count in counts), f"{seconds:.2f}")


def classes(results: Sequence[dict[str, Any]]) -> str:
    """Failures that are alike, the most frequent first, each with a case to try."""
    counts: Counter[tuple[str, str]] = Counter()
    example: dict[tuple[str, str], str] = {}
    for result in results:
        if result["failure"]:
            kind, name = result["failure"]
            counts[kind, name] += 1
            example.setdefault((kind, name), f"{result['target']}:{result['number']}")
    return "\n".join(
        f"{count:6,}  {kind}: {name}  (--only {example[kind, name]})"
        for (kind, name), count in counts.most_common()
    )


def write(file: Path, results: Sequence[dict[str, Any]], *, seed: str) -> None:
    """Every failure with all that is needed to repeat it."""
    failures = [result for result in results if result["failure"]]
    content = {"seed": seed, "cases": len(results), "failures": failures}
    file.write_text(json.dumps(content, indent=1), encoding="utf-8")
