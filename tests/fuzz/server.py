"""A process that has shut itself in, holds everything imported and made, and forks for each case.

`python -m tests.fuzz.server FOLDER SEED` reads lines `TARGET NUMBER` and answers each with a line
of JSON. The folder must be empty and is all that it can write.
"""

import faulthandler
import gc
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import IO, Any

from tests.fuzz import jail
from tests.fuzz.guard import Guard
from tests.fuzz.verdict import Outcome, judge, place_of

LIMIT = 20
"""Seconds of processor time after which a case hangs. What other work takes does not count, but
beside it the same case needs up to twice as many."""

PATIENCE = 300.0
"""Seconds after which a case hangs that waits for something and uses no processor."""

LARGEST_FILE = 256 << 20
MOST_MEMORY = 6 << 30
"""What a case may write to a file, and take of memory, in bytes."""

TOLD = 4000
"""How many characters of the end of each case's output are reported."""


@dataclass(frozen=True)
class Places:
    """Folders of a server; only the guard, not the jail, keeps cases out of the others."""

    base: Path

    @property
    def scratch(self) -> Path:
        """Where the server works."""
        return self.base / "scratch"

    @property
    def home(self) -> Path:
        """What libraries find as the user's folder, with their caches."""
        return self.scratch / "home"

    @property
    def outside(self) -> Path:
        """Where damaged records lead; nothing may change here."""
        return self.base / "outside"

    @property
    def cases(self) -> Path:
        """Each case has a folder here, deep enough that `..` leads nowhere else."""
        return self.scratch / "cases"

    def make(self) -> None:
        """Make them all."""
        for folder in (self.home / "tmp", self.outside / "sub", self.cases):
            folder.mkdir(parents=True)
        for file in (self.outside / "file", self.outside / "sub" / "file"):
            file.write_text("to stay as it is\n", encoding="utf-8")

    def canary(self) -> list[tuple[str, int, int, int, bytes]]:
        """Everything outside, so that any change shows, also one that no guard sees."""
        return [
            (str(path), state.st_ino, state.st_mode, state.st_mtime_ns, _content(path))
            for path in sorted(self.outside.rglob("*"))
            for state in [path.lstat()]
        ]


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


class Server:
    """Runs cases one at a time, each in a fork of this process."""

    def __init__(self, places: Places, seed: str, guard: Guard) -> None:
        # Heavy: only once the jail is shut.
        import pyarrow
        import torch

        from tests.fuzz import processes
        from tests.fuzz.makers import MAKERS
        from tests.fuzz.material import make

        torch.set_num_threads(1)
        pyarrow.set_cpu_count(1)
        processes.install()
        self.places, self.seed, self.guard, self.makers = places, seed, guard, MAKERS
        self.material = make(places.scratch / "material", places.outside)
        self.canary = places.canary()
        gc.collect()
        gc.freeze()  # a fork would copy what the collector touches

    def answer(self, target: str, number: int) -> dict[str, Any]:
        """Run one case; what it was, how it ended and whether that is right."""
        folder = self.places.cases / f"{target}-{number}"
        folder.mkdir()
        names = ("output", "message", "escapes", "told")
        streams = {name: (self.places.scratch / name).open("w+b") for name in names}
        start = time.monotonic()
        child = os.fork()
        if child == 0:
            self._run(target, number, folder, streams)
        status = _await(child)
        texts = {name: _read(stream) for name, stream in streams.items()}
        lines = [json.loads(line) for line in texts["told"].splitlines()]
        told = {name: value for line in lines for name, value in line.items()}
        outcome = Outcome(
            status=status,
            code=told.get("code"),
            error=told.get("error", ""),
            unmade=told.get("unmade", ""),
            output=texts["output"],
            message=texts["message"],
            escapes=texts["escapes"],
            touched=self.places.canary() != self.canary,
            refused=told.get("refused", False),
        )
        failure = judge(outcome)
        shutil.rmtree(folder, ignore_errors=True)
        if outcome.touched:
            shutil.rmtree(self.places.outside, ignore_errors=True)
            raise RuntimeError(f"{target}:{number} changed what lies outside")
        shown = asdict(outcome)
        shown.update({name: shown[name][-TOLD:] for name in ("output", "message", "escapes")})
        return {
            "target": target,
            "number": number,
            "failure": failure,
            "seconds": round(time.monotonic() - start, 2),
            "argv": told.get("argv"),
            "damage": told.get("damage"),
            **shown,
        }

    def _run(self, target: str, number: int, folder: Path, streams: dict[str, IO[bytes]]) -> None:
        """The child: make the case, run its command, tell, and end."""
        told = streams["told"]
        try:
            os.setsid()
            os.dup2(streams["output"].fileno(), 1)
            os.dup2(streams["message"].fileno(), 2)
            # The kernel sends this signal at the limit: tell where the case is, then end.
            faulthandler.register(signal.SIGXCPU, all_threads=True, chain=True)
            resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5))
            resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
            resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.chdir(folder)
            self.guard.log = streams["escapes"].fileno()
            _tell(told, **self._run_command(target, number, folder, told))
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(0)

    def _run_command(
        self, target: str, number: int, folder: Path, told: IO[bytes]
    ) -> dict[str, Any]:
        from interp.cli import main

        try:
            chance = Random(f"{self.seed} {target} {number}")
            self.guard.folders = [
                self.places.base
            ]  # links may lead out, and files have names there
            case = self.makers[target](chance, number, self.material, folder)
        except BaseException as error:
            return {"unmade": f"{error!r} {place_of(error)}"}
        self.guard.folders = [folder, self.places.home]
        _tell(told, argv=case.argv, damage=case.damage, refused=case.refused)
        self.guard.answer_as_read_only(case.asked)
        try:
            return {"code": main(case.argv)}
        except SystemExit as stop:
            return {"code": 0 if stop.code is None else stop.code}
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
            return {"error": place_of(error)}


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
    # Workers that it left behind are of its group.
    os.killpg(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if in_time and status != -signal.SIGXCPU else None


def _read(stream: IO[bytes]) -> str:
    with stream:
        stream.seek(0)
        return stream.read(64 << 20).decode(errors="replace")


def main() -> None:
    """Shut this process in, make what cases need, and answer until there is no more to do."""
    places, seed = Places(Path(sys.argv[1]).resolve()), sys.argv[2]
    jailed = jail.enter(places.base)
    places.make()
    questions, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    errors, log = os.fdopen(os.dup(2), "w"), (places.scratch / "log").open("w+b")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for stream in (1, 2):
        os.dup2(log.fileno(), stream)
    _point_caches_to(places.home)
    guard = Guard(places.scratch)
    guard.install()
    os.chdir(places.scratch)
    try:
        server = Server(places, seed, guard)
    except BaseException:
        print(_read(log)[-TOLD:], traceback.format_exc(), file=errors, flush=True)
        raise
    print(json.dumps({"jailed": jailed}), file=answers, flush=True)
    for line in questions:
        target, number = line.split()
        print(json.dumps(server.answer(target, int(number))), file=answers, flush=True)


def _point_caches_to(home: Path) -> None:
    sys.dont_write_bytecode = True
    for name in ("HOME", "HF_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR", "TORCHINDUCTOR_CACHE_DIR"):
        os.environ[name] = str(home)
    os.environ["TMPDIR"] = str(home / "tmp")


if __name__ == "__main__":
    main()
