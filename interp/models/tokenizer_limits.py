"""Limits on what a tokenizer may use and produce, tried in a process of its own.

A tokenizer.json of 200 bytes can ask for terabytes, or for a search that takes years. Neither a
signal nor an exception reaches the library, which aborts the process that runs out of memory, so
only another process can find this out.
"""

import hashlib
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

from transformers.utils.hub import cached_file

from interp.errors import UserError
from interp.files import read_bytes

SECONDS = 10
"""Processor time for loading a tokenizer and encoding the text of the trial."""

BYTES = 2**32
"""Address space of the process that does so."""

GROWTH = 32
"""Most characters or tokens that a tokenizer may make of a byte; Unicode's own forms make 18."""

_TRIAL = f"""
import resource, string, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
resource.setrlimit(resource.RLIMIT_AS, ({BYTES}, {BYTES}))
text = string.printable * 10 + "é漢字\\U0001f600 " * 50
for one in "a0 _=\\n":
    text += one * 500 + "!"
try:
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(sys.argv[1])
    ids = tokenizer.encode(text).ids
    normal = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else ""
    most = max(map(len, (ids, normal, tokenizer.decode(ids))))
except MemoryError:
    sys.exit(3)
except BaseException:  # the library's own message is better
    sys.exit(0)
sys.exit(4 if most > {GROWTH} * len(text.encode()) else 0)
"""

_REASONS = {
    3: f"needs more than {BYTES >> 30} GiB of memory",
    4: f"makes more than {GROWTH} tokens or characters of one",
    -signal.SIGABRT: f"needs more than {BYTES >> 30} GiB of memory, or aborts",
    -signal.SIGXCPU: f"takes more than {SECONDS} s",
    -signal.SIGKILL: f"takes more than {SECONDS} s",
}


def check_limits(location: Path | str, revision: str | None = None) -> None:
    """Raise a UserError if a model's tokenizer.json takes or makes too much with a short text."""
    file = cached_file(
        location,
        "tokenizer.json",
        revision=revision,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    if file is None:
        return
    reason = _reason(file, hashlib.sha256(read_bytes(Path(file).resolve())).hexdigest())
    if reason is not None:
        raise UserError(
            f"the tokenizer in {file} {reason} for a short text; expected one that "
            "belongs to a language model: look for Replace and Split in the file"
        )


@cache
def _reason(file: str, content: str) -> str | None:
    """Why the tokenizer with this content is refused; None if it is not."""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", _TRIAL, file],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
        check=False,
    )
    return _REASONS.get(ended.returncode, "ends the process" if ended.returncode < 0 else None)
