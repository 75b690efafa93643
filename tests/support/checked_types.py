"""`pytest -p tests.support.checked_types`: check the types and shapes of calls.

- `make test-types` runs the tests of tests/typed.txt, which together enter every function, and
  fails if a function is not entered any more (`--every-function`). Functions that no test enters in
  its own process are in tests/typed_elsewhere.txt.
- `make choose-typed` runs all tests once with INTERP_RECORD, and
  `python -m tests.support.choose_typed` writes both files from what was entered.
"""

import dataclasses
import functools
import json
import os
from collections import Counter
from pathlib import Path
from typing import get_args

import jaxtyping
import pytest
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray, install_import_hook
from jaxtyping._decorator import _destring_annotation

from tests.support.functions import CHOSEN, ELSEWHERE, all_functions

RECORD = os.environ.get("INTERP_RECORD")
"""A folder for what each test enters, and for the seconds of CPU that it takes."""

CALLS = 200
"""Calls of each function that are checked in a test, more than hypothesis makes examples."""

_NOT_CHOSEN = ("organisms", "release")
"""Marks of tests that do not run each time."""

_entered: set[str] = set()
_all_entered: set[str] = set()
_record: dict[str, tuple[float, list[str]]] = {}
_calls: Counter[str] = Counter()

# An int passes for a float, as in PEP 484.
_checked = beartype(conf=BeartypeConf(is_pep484_tower=True))


def checked(target=None, *, typechecker):
    """In place of `jaxtyping.jaxtyped`, which binds the arguments of every call to compare shapes.

    Most functions have no shapes: beartype alone checks them in a seventh of the time.
    """
    if target is None:
        return functools.partial(checked, typechecker=typechecker)
    if isinstance(target, type):
        if dataclasses.is_dataclass(target) and not hasattr(target.__init__, "__wrapped__"):
            target.__init__ = checked(target.__init__, typechecker=typechecker)
        return target
    own = target.__annotations__
    known = {name: _destring_annotation(each, target.__globals__) for name, each in own.items()}
    if any(map(_has_shape, known.values())):
        check = _with_shapes(target, typechecker=typechecker)
    else:
        # beartype reads annotations now, and refuses names that only mypy imports.
        target.__annotations__ = known
        try:
            check = noted(target)
        finally:
            target.__annotations__ = own
    name = f"{target.__module__}.{target.__qualname__}"

    @functools.wraps(target)
    def the_first_calls(*args, **kwargs):
        if _calls[name] == CALLS or jaxtyping.config.jaxtyping_disable:
            return target(*args, **kwargs)
        _calls[name] += 1
        return check(*args, **kwargs)

    return the_first_calls


def _has_shape(annotation) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, AbstractArray):
        return True
    parts = annotation if isinstance(annotation, list) else get_args(annotation)
    return any(map(_has_shape, parts))


def noted(target):
    """What checks a function's types, and notes that the function is entered."""
    check = _checked(target)
    name = f"{target.__module__}.{target.__qualname__}"

    @functools.wraps(check)
    def note(*args, **kwargs):
        _entered.add(name)
        return check(*args, **kwargs)

    return note


_with_shapes, jaxtyping.jaxtyped = jaxtyping.jaxtyped, checked
install_import_hook(
    ["interp", "interp_probes", "interp_experiments"], "tests.support.checked_types.noted"
)


def pytest_addoption(parser):
    parser.addoption("--every-function", action="store_true", help="fail if one is not entered")


def _seconds() -> float:
    """Of this process and of those that it has started and waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    began = _seconds()
    result = yield
    if not any(map(item.get_closest_marker, _NOT_CHOSEN)):
        _record[item.nodeid] = (_seconds() - began, sorted(_entered))
    _all_entered.update(_entered)
    _entered.clear()
    _calls.clear()
    return result


def pytest_sessionfinish(session):
    worker = getattr(session.config, "workeroutput", None)
    if worker is not None:
        worker["entered"] = sorted(_all_entered)
    if RECORD and _record:
        name = os.environ.get("PYTEST_XDIST_WORKER", "main")
        Path(RECORD, f"{name}.json").write_text(json.dumps(_record))
    if worker is None and session.config.getoption("every_function"):
        missed = sorted(all_functions() - _all_entered - set(ELSEWHERE.read_text().splitlines()))
        if missed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            session.config.stash[_MISSED] = missed


_MISSED = pytest.StashKey[list[str]]()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    _all_entered.update(getattr(node, "workeroutput", {}).get("entered", ()))


def pytest_terminal_summary(terminalreporter, config):
    missed = config.stash.get(_MISSED, [])
    if missed:
        terminalreporter.section("functions that no test of tests/typed.txt enters")
        terminalreporter.write_line("\n".join(missed))
        terminalreporter.write_line(f"add a test that enters them to {CHOSEN.name}")
