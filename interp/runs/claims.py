"""Workers' claims on shards, which keep workers from measuring most shards twice.

A worker claims a shard by giving a file that names the worker's process the shard's name, which
fails if that name is taken. A claim is void once its process has ended, or once another process has
seen it for longer than a shard should take (on that process's monotonic clock). Claims only save
work, since two workers that measure the same shard write identical numbers.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from interp import files
from interp.errors import UserError
from interp.runs.records import SHARD_ID, ClaimOwner, read_record

MULTIPLE = 3.0
"""A claim is void after this many times the duration of the longest shard so far."""

PATIENCE = 120.0
"""Minimum number of seconds for which a claim is valid, since the first shards may take this
long."""


@dataclass
class Claims:
    """The claims on one model's shards, as seen by one worker."""

    run: Path
    """The run's folder, which must exist."""
    within: tuple[str, ...]
    """Location of the claims within the folder."""
    longest: float = 0.0
    """Seconds taken by the longest shard so far."""
    _seen: dict[str, tuple[tuple[int, int], float]] = field(default_factory=dict)
    """The file of each shard's claim, and the time when this process first saw it."""
    _worker: str = field(default_factory=lambda: uuid4().hex)

    @contextmanager
    def take(self, shard: str) -> Iterator[bool]:
        """Claim a shard while the block runs; yield whether the claim succeeded."""
        try:
            yield self._claim(shard)
        finally:
            try:
                self._release(shard)
            except KeyboardInterrupt:
                self._release(shard)
                raise

    def held(self, shard: str) -> bool:
        """Whether there is a valid claim on the shard."""
        file = self.run.joinpath(*self.within, shard)
        try:
            state = file.lstat()
        except OSError:
            return False
        owner, now, claim = _owner(file), time.monotonic(), (state.st_ino, state.st_mtime_ns)
        if owner is not None and files.has_ended(owner.space, owner.process):
            return False
        seen, since = self._seen.get(shard, (None, now))
        if claim != seen:
            self._seen[shard] = claim, now
            return True
        return now - since <= max(PATIENCE, MULTIPLE * self.longest)

    def all(self) -> list[str]:
        """The shards with a claim, even a void one."""
        names = files.names_in(self.run.joinpath(*self.within))
        return [name for name in names if re.fullmatch(SHARD_ID, name)]

    def clear(self) -> None:
        """Remove all claims, which are no longer needed once the work is done."""
        with suppress(OSError, UserError):
            folder = files.inside(self.run, *self.within)
            files.remove_plain(folder, self.all())
            files.remove_unfinished(folder)
            folder.rmdir()

    def _release(self, shard: str) -> None:
        with suppress(OSError, UserError):  # a claim that is not removed becomes void later
            folder = files.inside(self.run, *self.within)
            owner = _owner(folder / shard)
            if owner is not None and owner.worker == self._worker:
                files.remove_plain(folder, [shard])

    def _claim(self, shard: str) -> bool:
        file = files.make_folder(self.run, *self.within) / shard
        void = os.path.lexists(file)
        if self.held(shard):
            return False
        space = files.process_space()
        text = ClaimOwner(space=space, process=os.getpid(), worker=self._worker).model_dump_json()
        return files.write_whole(
            file, lambda path: path.write_text(text, encoding="utf-8"), replacing=void
        )


def _owner(file: Path) -> ClaimOwner | None:
    """The owner of a claim; None if the claim is gone, damaged or being written."""
    with suppress(UserError):
        return read_record(file, ClaimOwner)
    return None
