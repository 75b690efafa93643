"""Files that appear whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path


def write_whole(file: Path, write_to: Callable[[Path], object]) -> None:
    """Let `write_to` fill a file beside `file`, then rename it into place."""
    unfinished = file.with_name(f".{os.getpid()}.{file.name}")
    try:
        write_to(unfinished)
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
