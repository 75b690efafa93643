"""A jailed process that has imported and made everything, and forks a child for each case.

`python -m tests.fuzz.trials FOLDER` reads `[seed, jobs, cases]` as JSON and writes a line of JSON
for each case that has ended. FOLDER must be empty, and is all that the process can write.
"""

import errno
import faulthandler
import gc
import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import IO, TYPE_CHECKING, Any

from tests.fuzz import jail
from tests.fuzz.__main__ import NO_JAIL, PLANTED, ROOT, Question

if TYPE_CHECKING:
    from tests.fuzz.material import Make, Material

CODES = (0, 2, 130)
"""Exit codes that a command may have: done, a mistake in the input, Ctrl-C."""

LIMIT = 20
"""Seconds of processor time after which a case hangs. Other load on the machine does not count, but
it can make the same case take twice as many."""

PATIENCE = 300.0
"""Seconds after which a case hangs that waits and uses no processor time."""

LARGEST_FILE, MOST_MEMORY = 256 << 20, 6 << 30
"""Most bytes that a case may write to a file, and take of memory."""

LONGEST_MESSAGE = 20_000
"""Characters on standard error beyond which nobody finds the message."""

STREAMS = ("output", "message", "told")
"""What a case writes: standard output, standard error, and what it tells about itself."""


class _OnlyPython(subprocess.Popen[bytes]):
    """Python in a process of its own; libraries must do without any other program."""

    def __init__(self, command: Sequence[str], *arguments: Any, **named: Any) -> None:
        if command[0] != sys.executable:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(command))
        super().__init__(command, *arguments, **named)


@dataclass
class _Trial:
    """A case that runs."""

    target: str
    number: int
    folder: Path
    child: int
    streams: dict[str, IO[bytes]]
    began: float


class Trials:
    """Runs cases, each in a fork of this process."""

    def __init__(self, base: Path, seed: str) -> None:
        self.seed = seed
        self.scratch, self.outside = base / "scratch", base / "outside"
        home = self.scratch / "home"
        for folder in (home / "tmp", self.outside / "sub", self.scratch / "cases"):
            folder.mkdir(parents=True)
        for file in (self.outside / "file", self.outside / "sub" / "file"):
            file.write_text("to stay as it is\n", encoding="utf-8")
        caches = ("HF_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR", "TORCHINDUCTOR_CACHE_DIR")
        os.environ |= dict.fromkeys(("HOME", *caches), str(home)) | {"TMPDIR": str(home / "tmp")}
        self.canary = self._state_outside()
        from tests.fuzz.files import MAKERS  # imports torch and much else, in the jail

        self.makers: dict[str, Make] = MAKERS
        self.material: Material | None = None
        # A class is no variable to type checkers; what the toolkit starts meets this one.
        subprocess.Popen = _OnlyPython  # type: ignore[misc]
        os.chdir(self.scratch)

    def _state_outside(self) -> list[tuple[object, ...]]:
        """The state of everything in the folder outside, so that any change shows."""
        found = [(path, path.lstat()) for path in sorted(self.outside.rglob("*"))]
        return [
            (str(path), state.st_ino, state.st_mode, state.st_mtime_ns, state.st_size)
            for path, state in found
        ]

    def make(self) -> None:
        """Make the material, which all cases but planted ones damage."""
        import pyarrow
        import torch

        from tests.fuzz.material import make

        torch.set_num_threads(1)
        pyarrow.set_cpu_count(1)
        self.material = make(self.scratch / "material", self.outside)
        gc.collect()
        gc.freeze()  # a fork would copy what the collector touches

    def run(self, cases: Sequence[Question], jobs: int) -> Iterator[dict[str, Any]]:
        """Run the cases, so many at a time; what each was, how it ended and whether it failed."""
        if any(target != PLANTED for target, _ in cases):
            self.make()
        waiting, running = list(reversed(cases)), dict[int, _Trial]()
        while waiting or running:
            while waiting and len(running) < jobs:
                trial = self._begin(*waiting.pop())
                running[os.pidfd_open(trial.child)] = trial
            ended = select.select(list(running), [], [], 1.0)[0]
            oldest = time.monotonic() - PATIENCE
            for child, trial in list(running.items()):
                if child in ended or trial.began < oldest:
                    del running[child]
                    os.close(child)
                    yield self._end(trial, hung=child not in ended)

    def _begin(self, target: str, number: int) -> _Trial:
        folder = self.scratch / "cases" / f"{target}-{number}"
        folder.mkdir()
        streams = {
            name: (self.scratch / f"{name}-{target}-{number}").open("w+b") for name in STREAMS
        }
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            self._run(target, number, folder, streams)
        return _Trial(target, number, folder, child, streams, began)

    def _end(self, trial: _Trial, *, hung: bool) -> dict[str, Any]:
        """Judge a child that ended or hung, after ending it with all that it had started."""
        if hung:
            os.kill(trial.child, signal.SIGXCPU)  # it writes where it is
            time.sleep(0.5)
        os.killpg(trial.child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(trial.child, 0)[1])
        ended: dict[str, Any] = {"target": trial.target, "number": trial.number}
        ended["status"] = None if hung or status == -signal.SIGXCPU else status
        for name, stream in trial.streams.items():
            ended[name] = _read(stream)
            Path(stream.name).unlink()
        for line in ended.pop("told").splitlines():
            ended |= json.loads(line)
        before, self.canary = self.canary, self._state_outside()
        ended["changed"] = self.canary != before
        shutil.rmtree(trial.folder, ignore_errors=True)
        failure, seconds = judged(ended), round(time.monotonic() - trial.began, 2)
        ended |= {name: ended[name][-4000:] for name in ("output", "message")}
        return {**ended, "failure": failure, "seconds": seconds}

    def _run(self, target: str, number: int, folder: Path, streams: dict[str, IO[bytes]]) -> None:
        """In the child: make the case, run its command, tell about it, and end."""
        try:
            os.setsid()
            os.dup2(streams["output"].fileno(), 1)
            os.dup2(streams["message"].fileno(), 2)
            # The kernel sends this signal at the limit: write where the case is, then end.
            faulthandler.register(signal.SIGXCPU, all_threads=True, chain=True)
            for what, most in (
                (resource.RLIMIT_CPU, 1 if target == PLANTED else LIMIT),
                (resource.RLIMIT_FSIZE, LARGEST_FILE),
                (resource.RLIMIT_DATA, MOST_MEMORY),
                (resource.RLIMIT_CORE, 0),
            ):
                resource.setrlimit(what, (most, most + 5))
            os.chdir(folder)
            _tell(streams["told"], **self._run_command(target, number, folder, streams["told"]))
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(0)

    def _run_command(
        self, target: str, number: int, folder: Path, told: IO[bytes]
    ) -> dict[str, Any]:
        try:
            chance = Random(f"{self.seed} {target} {number}")
            case = self.makers[target](chance, number, self.material, folder)
        except BaseException as error:
            return {"unmade": f"{error!r} {place_of(error)}"}
        _tell(told, argv=case.argv, damage=case.damage, refused=case.refused, asked=case.asked)
        try:
            return {"code": case.run(self.outside)}
        except SystemExit as stop:
            return {"code": 0 if stop.code is None else stop.code}
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
            return {"error": place_of(error)}


def judged(ended: dict[str, Any]) -> tuple[str, str] | None:
    """The kind of a case's failure, and its class, by which failures are counted; None without."""
    message, code = ended["message"], ended.get("code")
    read_only = os.strerror(errno.EROFS).lower() in message.lower()
    ways = (
        (ended.get("changed"), "escape", "something outside was changed"),
        (read_only and not ended.get("asked"), "escape", "a write outside was tried"),
        (ended["status"] is None, "hang", _last_place(message)),
        (ended.get("error"), "traceback", ended.get("error")),
        ("Traceback" in ended["output"] + message, "traceback", "written, not raised"),
        (ended.get("unmade"), "other", f"the case could not be made: {ended.get('unmade')}"),
        (ended["status"], "other", f"the process ended with {ended['status']}"),
        (code not in CODES, "other", f"exit code {code}"),
        (len(message) > LONGEST_MESSAGE, "other", "a message too long to read"),
        (ended.get("refused") and code == 0, "accepted", "exit code 0 without the weights"),
    )
    return next(((kind, name) for failed, kind, name in ways if failed), None)


def place_of(error: BaseException) -> str:
    """An exception's type, and the innermost line of this repository in its traceback."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    return f"{type(error).__name__} {_own(frames[::-1])}"


def _last_place(message: str) -> str:
    """Where the first thread was when faulthandler was asked."""
    thread = message.rpartition("Current thread")[2]
    return _own(re.findall(r'File "([^"]+)", line (\d+)', thread))


def _own(places: list[tuple[str, Any]]) -> str:
    """The first place that is in this repository, or else the first of all."""
    for file, line in places:
        path = Path(file).resolve()
        parts = path.parts[len(ROOT.parts) :]
        if path.is_relative_to(ROOT) and not {".venv", "fuzz"} & set(parts):
            return f"{path.relative_to(ROOT)}:{line}"
    return f"{Path(places[0][0]).name}:{places[0][1]}" if places else "?"


def _tell(stream: IO[bytes], **told: Any) -> None:
    stream.write(json.dumps(told).encode() + b"\n")
    stream.flush()


def _read(stream: IO[bytes]) -> str:
    with stream:
        stream.seek(0)
        return stream.read(64 << 20).decode(errors="replace")


def main() -> None:
    """Shut this process in and run the cases."""
    base = Path(sys.argv[1]).resolve()
    seed, jobs, cases = json.load(sys.stdin)
    if not jail.enter(base):
        sys.exit(NO_JAIL)
    answers, errors = os.fdopen(os.dup(1), "w"), os.fdopen(os.dup(2), "w")
    log = (base / "log").open("w+b")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for stream in (1, 2):
        os.dup2(log.fileno(), stream)
    try:
        for result in Trials(base, seed).run(cases, jobs):
            print(json.dumps(result), file=answers, flush=True)
    except BaseException:
        print(_read(log)[-4000:], traceback.format_exc(), file=errors, flush=True)
        raise


if __name__ == "__main__":
    main()
