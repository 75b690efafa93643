"""Claims: which worker measures a shard, so that no two measure the same one.

1. To claim a shard is to create a file that must not exist yet. The file names host and process.
2. While the shard is measured, the file's time of change is renewed every few seconds.
3. A claim has expired when its process is gone, or when an observer has seen no renewal for a while
   by its own monotonic clock: clocks that differ or jump decide nothing.
4. An expired claim is not removed but followed by one of the next generation, again a file that
   must not exist: of several workers that see it expire, one gets the shard.

Claims save work; the results do not depend on them. Two workers that measure one shard write the
same numbers, and the second finds the shard there.
"""

import json
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from interp.files import has_ended, writing
from interp.runs.record import cluster_job

BEAT = 10.0
"""Seconds between two renewals of a claim."""

EXPIRY = 120.0
"""Seconds without renewal after which a claim is void; file systems on a network may show a change
a minute late."""


@dataclass(frozen=True)
class Claims:
    """The claims in one folder, as one worker sees them."""

    folder: Path
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By file: its time of change, and when that was first seen by this process's clock."""
    _worker: str = field(default_factory=lambda: uuid4().hex)
    """Tells this worker's claims from all others."""

    @contextmanager
    def take(self, shard: str) -> Iterator[bool]:
        """Within the block the shard is claimed, if the block is given True.

        Raises:
            UserError: the claim cannot be written.
        """
        try:
            file = self._create(shard)
            if file is None:
                yield False
            else:
                with _renewed(file):
                    yield True
        finally:
            # By what the files say, so that Ctrl-C at any moment leaves none behind.
            self._give_back(shard)

    def held(self, shard: str) -> bool:
        """Whether somebody holds a claim on the shard that has not expired."""
        newest = self._newest(shard)
        return newest is not None and not self._expired(newest)

    def holders(self) -> dict[str, dict[str, Any]]:
        """Who is at work, by shard: host, process and job of each claim of a living worker.

        A claim on another host is believed as long as the file system says that it is fresh.
        """
        holders = {}
        for shard in sorted({file.stem for file in self.folder.glob("*.*")}):
            file = self._newest(shard)
            owner = None if file is None else _owner(file)
            if file is None or owner is None or has_ended(owner["host"], owner["process"]):
                continue
            if _age(file) < EXPIRY:
                holders[shard] = owner
        return holders

    def _create(self, shard: str) -> Path | None:
        newest = self._newest(shard)
        if newest is not None and not self._expired(newest):
            return None
        generation = 1 if newest is None else _generation(newest) + 1
        file = self.folder / f"{shard}.{generation}"
        with writing(file):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                stream = file.open("x", encoding="utf-8")
            except FileExistsError:
                return None
            try:
                with stream:
                    json.dump(self._myself(), stream)
            except OSError:
                file.unlink(missing_ok=True)
                raise
        return file

    def _give_back(self, shard: str) -> None:
        for file in self.folder.glob(f"{shard}.*"):
            owner = _owner(file)
            if owner is not None and owner.get("worker") == self._worker:
                file.unlink(missing_ok=True)

    def _myself(self) -> dict[str, Any]:
        return {
            "host": platform.node(),
            "process": os.getpid(),
            "job": cluster_job(),
            "worker": self._worker,
        }

    def _newest(self, shard: str) -> Path | None:
        return max(self.folder.glob(f"{shard}.*"), key=_generation, default=None)

    def _expired(self, file: Path) -> bool:
        try:
            changed = file.stat().st_mtime_ns
        except FileNotFoundError:
            # Given back a moment ago: the next look finds no claim, or somebody else's.
            return False
        owner = _owner(file)
        if owner is not None and has_ended(owner["host"], owner["process"]):
            return True
        now = time.monotonic()
        seen, since = self._seen.get(file.name, (None, now))
        if seen != changed:
            self._seen[file.name] = (changed, now)
            return False
        return now - since > EXPIRY


@contextmanager
def _renewed(file: Path) -> Iterator[None]:
    """Within the block a thread renews the claim, which needs no space on the disk."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(BEAT):
            with suppress(OSError):
                os.utime(file)

    thread = threading.Thread(target=renew, name="claim", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _owner(file: Path) -> dict[str, Any] | None:
    """Who made a claim; None while it is being written."""
    try:
        owner = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return owner if isinstance(owner, dict) and {"host", "process"} <= set(owner) else None


def _age(file: Path) -> float:
    with suppress(FileNotFoundError):
        return time.time() - file.stat().st_mtime
    return float("inf")


def _generation(file: Path) -> int:
    return int(file.suffix[1:])
