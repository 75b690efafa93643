"""Logs of scores as other tools store them, in the fields that lm-eval and Inspect write."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from interp.comparing import differences
from interp.comparing.options import Comparing
from tests.support.stored import lines

YES, NO = [1, 0, 1, 1] * 5, [0, 0, 1, 0] * 5
"""Scores of twenty items in two logs."""


def letters(scores: Iterable[object]) -> dict[int, list[str]]:
    """Scores as letters of Inspect, by item."""
    return {item: ["CI"[not score]] for item, score in enumerate(scores)}


def question(item: object) -> str:
    """What each tool asks about an item."""
    return f"How many legs have {item} cows?"


def samples(
    file: Path,
    scores: Iterable[object],
    *,
    metric: str = "acc",
    shots: str = "",
    filter_: str = "none",
    append: bool = False,
    **fields: Sequence[object],
) -> Path:
    """Samples of lm-eval: a score for each item from 0."""
    records = []
    for number, score in enumerate(scores):
        doc = {"question": question(number), **{key: own[number] for key, own in fields.items()}}
        asked = {
            "arg_0": f"{shots}Question: {question(number)}\nAnswer:",
            "arg_1": {"until": ["\n"]},
        }
        records.append(
            {
                "doc_id": number,
                "doc": doc,
                "target": "4",
                "arguments": {"gen_args_0": asked},
                "resps": [["4" if score else "5"]],
                "filtered_resps": ["4"],
                "filter": filter_,
                "metrics": [metric],
                "doc_hash": json.dumps(doc),
                "prompt_hash": "",
                metric: score,
            }
        )
    before = file.read_text(encoding="utf-8") if append else ""
    lines(file, records)
    file.write_text(before + file.read_text(encoding="utf-8"), encoding="utf-8")
    return file


def log(
    scores: Mapping[Any, Sequence[object]], *, name: str = "org/model", **header: Any
) -> dict[str, Any]:
    """A log of Inspect: the values of the scorer `match` in each epoch of an item."""
    samples = [
        {
            "id": item,
            "epoch": epoch,
            "input": question(item),
            "target": "4",
            "metadata": {"herd": f"herd {item}"},
            "output": {"model": name, "choices": [], "completion": f"completion {item} {value}"},
            "scores": {"match": {"value": value, "answer": str(value)}},
        }
        for item, values in scores.items()
        for epoch, value in enumerate(values, start=1)
    ]
    done = {"total_samples": len(samples), "completed_samples": len(samples), "scores": []}
    about = {"task": "legs", "model": name, "dataset": {}, "config": {}, **header.pop("eval", {})}
    return {
        **{"version": 2, "status": "success", "eval": about, "results": done},
        **{"samples": samples, **header},
    }


def archive(file: Path, document: dict[str, Any], *, summaries: int | None = None) -> Path:
    """A log in the format .eval, with so many summaries (by default all), without completions."""
    members = document["samples"]
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        header = {key: own for key, own in document.items() if key != "samples"}
        archive.writestr("header.json", json.dumps(header))
        if summaries != 0:
            short = [{key: own for key, own in one.items() if key != "output"} for one in members]
            archive.writestr("summaries.json", json.dumps(short[:summaries]))
        named = {f"samples/{one['id']}_epoch_{one['epoch']}.json": one for one in members}
        for name, one in named.items():
            archive.writestr(name, json.dumps(one))
    return file


def table(file: Path, scores: Iterable[object], *, texts: bool = True) -> Path:
    """A table with an item, a score and, if asked, its text."""
    rows = ["item,score,text" if texts else "item,score"]
    rows += [f"{n},{own}" + f",{question(n)}" * texts for n, own in enumerate(scores)]
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return file


def says(lines, *facts) -> bool:
    """Whether a line has these values, names and flags as words of their own, in this order."""
    words = (rf"(?<![\w.]){re.escape(str(fact))}(?!\w)" for fact in facts)
    pattern = re.compile(".*".join(words), re.DOTALL)
    return any(pattern.search(line) for line in lines)


def compared(logs: Sequence[Path], **options: Any) -> differences.Compared:
    """The logs, aligned and compared."""
    return differences.compared(logs, Comparing(**options))
