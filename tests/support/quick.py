"""Parameters of which `make test` tries a few and `make test-all` every one."""

from collections.abc import Iterable
from typing import Any

import pytest


def some_quick(names: Iterable[str], quick: Iterable[str]) -> list[Any]:
    """The names as parameters; all but the quick ones are slow tests."""
    chosen = {*quick}
    assert chosen <= {*names}
    return [
        pytest.param(name, marks=() if name in chosen else pytest.mark.slow, id=name)
        for name in names
    ]
