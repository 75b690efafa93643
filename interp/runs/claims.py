"""Claims: which worker measures a shard, so that no two measure the same one.

1. To claim a shard is to create a file that must not exist yet. The file names host and process.
2. While the shard is measured, the file's mtime is refreshed every few seconds: a heartbeat.
3. A claim has expired when its process is gone, or when an observer has seen no heartbeat for a
   while by its own monotonic clock: clocks that differ or jump decide nothing.
4. An expired claim is not removed but followed by one of the next generation, again a file that
   must not exist: of several workers that see it expire, one gets the shard.

Claims save work; the results do not depend on them. Two workers that measure one shard write the
same numbers, and the second finds the shard there. A record that several commands change is changed
under a claim of its own.
"""

import os
import platform
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from interp.errors import UserError
from interp.files import (
    has_ended,
    inside,
    make_folder,
    names_in,
    process_space,
    remove_plain,
    writing,
)
from interp.runs.records import ClaimOwner, cluster_job, read_record

BEAT = 10.0
"""Seconds between two heartbeats of a claim."""

EXPIRY = 120.0
"""Seconds without a heartbeat after which a claim is void; file systems on a network may show a
change a minute late."""

POLL = 0.05
"""Seconds between two tries to be alone."""

_NAME = re.compile(r"(?P<key>[0-9a-f]{32}|[a-z]{1,20})\.(?P<generation>[0-9]{1,9})")


_TRIES = 100
"""Times that a claim's folder is made again; then the claim counts as another's for now."""


@dataclass(frozen=True)
class Claims:
    """The claims in one folder, as one worker sees them."""

    root: Path
    """The run's folder, which must be there."""
    within: tuple[str, ...] = ()
    """Where in it the claims are; made when one is taken."""
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By file: its time of change, and when that was first seen by this process's clock."""
    _worker: str = field(default_factory=lambda: uuid4().hex)
    """Tells this worker's claims from all others."""

    @property
    def folder(self) -> Path:
        """Where the claims are."""
        return self.root.joinpath(*self.within)

    @contextmanager
    def take(self, key: str) -> Iterator[bool]:
        """Within the block the key, a shard's id say, is claimed, if the block is given True.

        Raises:
            UserError: the claim cannot be written.
        """
        try:
            file = self._create(key)
            if file is None:
                yield False
            else:
                with _renewed(file):
                    yield True
        finally:
            # By what the files say, so that Ctrl-C at any moment leaves none behind.
            self._give_back(key)

    @contextmanager
    def alone(self, key: str) -> Iterator[None]:
        """Within the block no other worker holds a claim on the key; waits until that is so.

        Raises:
            UserError: the claim cannot be written.
        """
        while True:
            with self.take(key) as mine:
                if mine:
                    yield
                    return
            time.sleep(POLL)

    def held(self, key: str) -> bool:
        """Whether somebody holds a claim on the key that has not expired."""
        newest = self._newest(key)
        return newest is not None and not self._expired(newest)

    def holders(self) -> dict[str, ClaimOwner]:
        """Who is at work, by shard: host, process and job of each claim of a living worker.

        A claim on another host is believed as long as the file system says that it is fresh.
        """
        holders = {}
        for key in sorted({found["key"] for found in self._names()}):
            file = self._newest(key)
            owner = None if file is None else _owner(file)
            if file is None or owner is None or has_ended(owner.space, owner.process):
                continue
            if _age(file) < EXPIRY:
                holders[key] = owner
        return holders

    def clear(self) -> None:
        """Remove all claims, which nobody needs when the work is done."""
        with suppress(OSError, UserError):
            # Through no link: whoever can write here may have put one in the place of a folder.
            folder = inside(self.root, *self.within)
            remove_plain(folder, [found.string for found in self._names()])
            folder.rmdir()

    def remove_folder(self) -> None:
        """Remove the folder if nothing is in it: claims on more than shards may be held."""
        with suppress(OSError, UserError):
            inside(self.root, *self.within).rmdir()

    def _create(self, key: str) -> Path | None:
        newest = self._newest(key)
        if newest is not None and not self._expired(newest):
            return None
        generation = 1 if newest is None else _generation(newest) + 1
        name = f"{key}.{generation}"
        for _ in range(_TRIES):
            try:
                return self._write(make_folder(self.root, *self.within) / name)
            except UserError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
                # A command that has ended removed the folder while it was empty.
        return None

    def _write(self, file: Path) -> Path | None:
        myself = self._myself().model_dump_json()
        with writing(file):
            try:
                stream = file.open("x", encoding="utf-8")
            except FileExistsError:
                return None
            try:
                with stream:
                    stream.write(myself)
            except BaseException:  # Ctrl-C too: an empty claim is nobody's to give back
                with suppress(OSError):  # ours: created above; through no link put in between
                    remove_plain(file.parent, [file.name])
                raise
        return file

    def _give_back(self, key: str) -> None:
        # Of a claim that cannot be removed the heartbeat has ended, so that it expires.
        with suppress(OSError, UserError):
            folder = inside(self.root, *self.within)  # through no link, as in `clear`
            remove_plain(folder, [file.name for file in self._files(key) if self._is_mine(file)])

    def _is_mine(self, file: Path) -> bool:
        """Whether this worker made the claim, which then holds its random id."""
        owner = _owner(file)
        return owner is not None and owner.worker == self._worker

    def _myself(self) -> ClaimOwner:
        return ClaimOwner(
            host=platform.node(),
            space=process_space(),
            process=os.getpid(),
            job=cluster_job(),
            worker=self._worker,
        )

    def _names(self) -> Iterator[re.Match[str]]:
        return (found for name in names_in(self.folder) if (found := _NAME.fullmatch(name)))

    def _files(self, key: str) -> list[Path]:
        return [self.folder / found.string for found in self._names() if found["key"] == key]

    def _newest(self, key: str) -> Path | None:
        return max(self._files(key), key=_generation, default=None)

    def _expired(self, file: Path) -> bool:
        try:
            state = file.lstat()
        except FileNotFoundError:
            # Given back a moment ago: the next look finds no claim, or somebody else's.
            return False
        owner = _owner(file)
        if owner is not None and has_ended(owner.space, owner.process):
            return True
        if owner is None and state.st_size:
            return True  # damaged; one that is being written is empty
        now = time.monotonic()
        seen, since = self._seen.get(file.name, (None, now))
        if seen != state.st_mtime_ns:
            self._seen[file.name] = (state.st_mtime_ns, now)
            return False
        return now - since > EXPIRY


@contextmanager
def _renewed(file: Path) -> Iterator[None]:
    """Within the block a thread renews the claim, which needs no space on the disk."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(BEAT):
            with suppress(OSError):
                os.utime(file, follow_symlinks=False)

    thread = threading.Thread(target=renew, name="claim", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _owner(file: Path) -> ClaimOwner | None:
    """Who made a claim; None while it is being written, and of one that is damaged."""
    with suppress(UserError):
        return read_record(file, ClaimOwner)
    return None


def _age(file: Path) -> float:
    with suppress(FileNotFoundError):
        return time.time() - file.lstat().st_mtime
    return float("inf")


def _generation(file: Path) -> int:
    return int(file.suffix[1:])
