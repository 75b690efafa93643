"""What came of a case, and whether it is right: a result, or one clear message."""

import re
import traceback
from dataclasses import dataclass
from pathlib import Path

CODES = (0, 2, 130)
"""Exit codes of a command: all is well, a mistake in the input, Ctrl-C."""

LONGEST_MESSAGE = 20_000
"""Characters on standard error beyond which nobody finds the message."""

KINDS = ("traceback", "hang", "escape", "accepted", "other")
"""Ways to fail."""

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    """How a case ended."""

    status: int | None
    """How the process ended, 0 where it told its exit code itself; None if it had to be ended."""
    code: int | None
    """Exit code of the command."""
    error: str
    """The exception that came out of it, and where."""
    unmade: str
    """Why the case could not be made, which is a mistake of the fuzzing itself."""
    output: str
    message: str
    """What it wrote on standard output and standard error."""
    escapes: str
    """What the guard saw."""
    touched: bool
    """Whether anything changed in the folder outside."""
    refused: bool
    """Whether to end well would be wrong."""


def judge(outcome: Outcome) -> tuple[str, str] | None:
    """The way in which a case failed and its class, by which like failures are counted; or None."""
    found = _escape(outcome) or _hang(outcome) or _traceback(outcome) or _other(outcome)
    if found is None and outcome.refused and outcome.code == 0:
        return "accepted", "ended well without the weights"
    return found


def _escape(outcome: Outcome) -> tuple[str, str] | None:
    if outcome.touched:
        return "escape", "the folder outside was changed"
    if outcome.escapes:
        return "escape", outcome.escapes.splitlines()[0].split()[0]
    return None


def _hang(outcome: Outcome) -> tuple[str, str] | None:
    if outcome.status is not None:
        return None
    return "hang", _last_place(outcome.message)


def _traceback(outcome: Outcome) -> tuple[str, str] | None:
    if outcome.error:
        return "traceback", outcome.error
    if "Traceback" in outcome.output + outcome.message:
        return "traceback", "written, not raised"
    return None


def _other(outcome: Outcome) -> tuple[str, str] | None:
    if outcome.unmade:
        return "other", f"the case could not be made: {outcome.unmade}"
    if outcome.status:
        return "other", f"the process ended with {outcome.status}"
    if outcome.code not in CODES:
        return "other", f"exit code {outcome.code}"
    if len(outcome.message) > LONGEST_MESSAGE:
        return "other", "a message of more than 20,000 characters"
    return None


def place_of(error: BaseException) -> str:
    """An exception's type, and the innermost line of this repository that it passed."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_own(frame.filename)] or frames
    where = f"{_relative(own[-1].filename)}:{own[-1].lineno}" if own else "?"
    return f"{type(error).__name__} {where}"


def _last_place(message: str) -> str:
    """Where the first thread was when faulthandler was asked, innermost line first."""
    places = re.findall(r'File "([^"]+)", line (\d+)', message.rpartition("Current thread")[2])
    own = [(file, line) for file, line in places if _is_own(file)] or places
    return f"{_relative(own[0][0])}:{own[0][1]}" if own else "?"


def _is_own(file: str) -> bool:
    path = Path(file).resolve()
    return path.is_relative_to(ROOT) and not {".venv", "fuzz"} & set(path.parts[len(ROOT.parts) :])


def _relative(file: str) -> str:
    path = Path(file).resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else "/".join(path.parts[-2:])
