"""Which files have a prompt, or what is made of it, in their hands while a command runs.

    python -m tests.support.stations attribute --limit 1 --model NAME --out FOLDER

Prints one path a line, in the order in which the files are reached. A file counts if one of its
functions has a prompt, an instance that prompts are made of, its tokens, its batch, what the model
puts at its answer, its scores, or rows and tables of these as an argument, variable or result.
"""

import sys
import threading
from functools import cache
from pathlib import Path
from types import FrameType

import pandas as pd

from interp.cli import main

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("interp/", "probes/", "experiments/")
KINDS = {
    *("Prompt", "PromptSet", "Outline", "Instance", "TokenizedPrompt", "ChatText", "Batch"),
    *("Predictions", "OnePass", "Captured", "TokenScores", "Scores"),
}
KEYS = {"prompt_id", "model"}


@cache
def station(file: str) -> str:
    """The path of our own file from the root; empty for others."""
    path = Path(file).resolve()
    own = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    return own if own.startswith(FOLDERS) else ""


def holds(value: object, depth: int = 2) -> bool:
    """Whether a value is made of a prompt, or the first members of a collection are."""
    if type(value).__name__ in KINDS:
        return True
    if isinstance(value, pd.DataFrame):
        return not KEYS.isdisjoint(value.columns)
    if type(value) is dict and "prompt_id" in value:
        return True
    members = list(value.values()) if type(value) is dict else value
    return type(members) in (list, tuple) and any(holds(x, depth - 1) for x in members[:depth])


def stations() -> list[str]:
    """The paths that the command of `sys.argv` reaches, each once."""
    found: dict[str, None] = {}

    def watch(frame: FrameType, event: str, result: object) -> None:
        own = station(frame.f_code.co_filename) if event in ("call", "return") else ""
        if not own or own in found or frame.f_code.co_name == "<module>":
            return
        if any(map(holds, [*frame.f_locals.values(), result])):
            found[own] = None

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        main()
    finally:
        sys.setprofile(None)
    return list(found)


if __name__ == "__main__":
    sys.stdout.writelines(f"{path}\n" for path in stations())
