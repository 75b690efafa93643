"""The packaged organisms, by kind, and whether what tests found in them still holds.

Tests with the mark `organisms` measure packaged organisms for minutes. They are skipped while the
weights and the code that they depend on are those with which `make organisms` passed.
"""

import hashlib
from functools import cache
from pathlib import Path

from interp.models.organisms import organism_folder, organism_names
from interp.runs.identity import code_version

DECODERS = [name for name in organism_names() if name not in organism_names("robustlr")]
"""Organisms that generate texts; the others choose among classes."""

_TESTS = Path(__file__).parents[1]

HOLDS = _TESTS / "organisms_hold.txt"
"""The state in which all tests with the mark passed."""

_MODULES = tuple(
    ".".join(file.relative_to(_TESTS.parent).with_suffix("").parts)
    for file in sorted(_TESTS.rglob("test_*.py"))
    if "pytest.mark.organisms" in file.read_text(encoding="utf-8")
)
"""The files with such tests."""


@cache
def organisms_state() -> str:
    """A hash of the organisms' files, and of the tests and all code that these import."""
    digest = hashlib.sha256(code_version(_MODULES).encode())
    for name in organism_names():
        for file in sorted(organism_folder(name).iterdir()):
            digest.update(f"{name} {file.name} ".encode() + file.read_bytes())
    return digest.hexdigest()


def organisms_hold() -> bool:
    """Whether nothing has changed since the tests with the mark passed."""
    return HOLDS.is_file() and HOLDS.read_text().strip() == organisms_state()
