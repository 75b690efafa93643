"""A process that has shut itself in, holds everything imported and made, and forks for each case.

`python -m tests.fuzz.server FOLDER SEED` reads lines `TARGET NUMBER` and answers each with a line
of JSON. The folder must be empty and is all that it can write.
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
from pathlib import Path
from random import Random
from typing import IO, TYPE_CHECKING, Any

from tests.fuzz import jail
from tests.fuzz.__main__ import NO_JAIL, PLANTED, ROOT

if TYPE_CHECKING:
    from tests.fuzz.material import Material

CODES = (0, 2, 130)
"""Exit codes of a command: all is well, a mistake in the input, Ctrl-C."""

LIMIT = 20
"""Seconds of processor time after which a case hangs. What other work takes does not count, but
while there is any the same case needs up to twice as many."""

PATIENCE = 300.0
"""Seconds after which a case hangs that waits for something and uses no processor."""

LARGEST_FILE, MOST_MEMORY = 256 << 20, 6 << 30
"""What a case may write to a file, and take of memory, in bytes."""

LONGEST_MESSAGE = 20_000
"""Characters on standard error beyond which nobody finds the message."""


class _NoProcess(subprocess.Popen[bytes]):
    """Stands for all other programs, which libraries can do without."""

    def __init__(self, command: object, *_: object, **__: object) -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(command))


class Server:
    """Runs cases one at a time, each in a fork of this process."""

    def __init__(self, base: Path, seed: str) -> None:
        self.base, self.seed = base, seed
        self.scratch, self.outside = base / "scratch", base / "outside"
        self.home = self.scratch / "home"
        for folder in (self.home / "tmp", self.outside / "sub", self.scratch / "cases"):
            folder.mkdir(parents=True)
        for file in (self.outside / "file", self.outside / "sub" / "file"):
            file.write_text("to stay as it is\n", encoding="utf-8")
        for name in (
            "HOME",
            "HF_HOME",
            "XDG_CACHE_HOME",
            "MPLCONFIGDIR",
            "TORCHINDUCTOR_CACHE_DIR",
        ):
            os.environ[name] = str(self.home)
        os.environ["TMPDIR"] = str(self.home / "tmp")
        self.canary = self._outside()
        from tests.fuzz.files import MAKERS  # imports torch and all the rest, in the jail

        self.makers = MAKERS
        self.material: Material | None = None
        subprocess.Popen = _NoProcess  # type: ignore[misc]
        os.chdir(self.scratch)

    def _outside(self) -> list[tuple[object, ...]]:
        """Everything in the folder outside, so that any change shows."""
        found = [(path, path.lstat()) for path in sorted(self.outside.rglob("*"))]
        return [
            (str(path), state.st_ino, state.st_mode, state.st_mtime_ns, state.st_size)
            for path, state in found
        ]

    def make(self) -> "Material":
        """What cases damage, made before the first of them."""
        if self.material is None:
            import pyarrow
            import torch

            from tests.fuzz.material import make

            torch.set_num_threads(1)
            pyarrow.set_cpu_count(1)
            self.material = make(self.scratch / "material", self.outside)
            gc.collect()
            gc.freeze()  # a fork would copy what the collector touches
        return self.material

    def answer(self, target: str, number: int) -> dict[str, Any]:
        """Run one case; what it was, how it ended and whether that is right."""
        if target != PLANTED:
            self.make()
        folder = self.scratch / "cases" / f"{target}-{number}"
        folder.mkdir()
        streams = {
            name: (self.scratch / name).open("w+b") for name in ("output", "message", "told")
        }
        start = time.monotonic()
        child = os.fork()
        if child == 0:
            self._run(target, number, folder, streams)
        status = _await(child)
        ended: dict[str, Any] = {"target": target, "number": number, "status": status}
        ended |= {name: _read(stream) for name, stream in streams.items()}
        for line in ended.pop("told").splitlines():
            ended |= json.loads(line)
        if self._outside() != self.canary:
            raise RuntimeError(f"{target}:{number} changed what lies outside")
        shutil.rmtree(folder, ignore_errors=True)
        failure, seconds = judged(ended), round(time.monotonic() - start, 2)
        ended |= {name: ended[name][-4000:] for name in ("output", "message")}
        return {**ended, "failure": failure, "seconds": seconds}

    def _run(self, target: str, number: int, folder: Path, streams: dict[str, IO[bytes]]) -> None:
        """The child: make the case, run its command, tell, and end."""
        try:
            os.setsid()
            os.dup2(streams["output"].fileno(), 1)
            os.dup2(streams["message"].fileno(), 2)
            # The kernel sends this signal at the limit: tell where the case is, then end.
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
    """The way in which a case failed and its class, by which like failures are counted; or None."""
    message, code = ended["message"], ended.get("code")
    read_only = os.strerror(errno.EROFS).lower() in message.lower()
    ways = (
        (read_only and not ended.get("asked"), "escape", "what lies outside was to be written"),
        (ended["status"] is None, "hang", _last_place(message)),
        (ended.get("error"), "traceback", ended.get("error")),
        ("Traceback" in ended["output"] + message, "traceback", "written, not raised"),
        (ended.get("unmade"), "other", f"the case could not be made: {ended.get('unmade')}"),
        (ended["status"], "other", f"the process ended with {ended['status']}"),
        (code not in CODES, "other", f"exit code {code}"),
        (len(message) > LONGEST_MESSAGE, "other", "a message that nobody reads to its end"),
        (ended.get("refused") and code == 0, "accepted", "ended well without the weights"),
    )
    return next(((kind, name) for failed, kind, name in ways if failed), None)


def place_of(error: BaseException) -> str:
    """An exception's type, and the innermost line of this repository that it passed."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    return f"{type(error).__name__} {_own(frames[::-1])}"


def _last_place(message: str) -> str:
    """Where the first thread was when faulthandler was asked."""
    thread = message.rpartition("Current thread")[2]
    return _own(re.findall(r'File "([^"]+)", line (\d+)', thread))


def _own(places: list[tuple[str, Any]]) -> str:
    """The first of some places that is in this repository, else the first of all."""
    for file, line in [*places]:
        path = Path(file).resolve()
        parts = path.parts[len(ROOT.parts) :]
        if path.is_relative_to(ROOT) and not {".venv", "fuzz"} & set(parts):
            return f"{path.relative_to(ROOT)}:{line}"
    return f"{Path(places[0][0]).name}:{places[0][1]}" if places else "?"


def _tell(stream: IO[bytes], **told: Any) -> None:
    stream.write(json.dumps(told).encode() + b"\n")
    stream.flush()


def _await(child: int) -> int | None:
    """How a child ended; None if it hung, and it was ended with all that it had started."""
    ended = os.pidfd_open(child)
    in_time = bool(select.select([ended], [], [], PATIENCE)[0])
    if not in_time:
        os.kill(child, signal.SIGXCPU)
        select.select([ended], [], [], 0.5)
    os.close(ended)
    os.killpg(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if in_time and status != -signal.SIGXCPU else None


def _read(stream: IO[bytes]) -> str:
    with stream:
        stream.seek(0)
        return stream.read(64 << 20).decode(errors="replace")


def main() -> None:
    """Shut this process in, make what cases need, and answer until there is no more to do."""
    base, seed = Path(sys.argv[1]).resolve(), sys.argv[2]
    sys.dont_write_bytecode = True
    if not jail.enter(base):
        sys.exit(NO_JAIL)
    questions, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    errors, log = os.fdopen(os.dup(2), "w"), (base / "log").open("w+b")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for stream in (1, 2):
        os.dup2(log.fileno(), stream)
    server = Server(base, seed)
    try:
        for line in questions:
            target, number = line.split()
            print(json.dumps(server.answer(target, int(number))), file=answers, flush=True)
    except BaseException:
        print(_read(log)[-4000:], traceback.format_exc(), file=errors, flush=True)
        raise


if __name__ == "__main__":
    main()
