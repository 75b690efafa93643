"""`pytest -p tests.support.checked_types`: check the types and shapes of every call.

- `make test-types` runs the tests of tests/typed.txt, which together enter every function, and
  fails if a function is not entered any more (`--every-function`). Functions that no test enters in
  its own process are in tests/typed_elsewhere.txt.
- `make choose-typed` runs all tests once with INTERP_RECORD, without checking types, and
  `python -m tests.support.choose_typed` writes both files from what was entered.
"""

import functools
import json
import os
import time
from pathlib import Path

import pytest
from beartype import BeartypeConf, beartype
from jaxtyping import install_import_hook

from tests.support.functions import CHOSEN, ELSEWHERE, all_functions

RECORD = os.environ.get("INTERP_RECORD")
"""A folder for what each test enters and how long it takes; types are not checked then."""

_NOT_CHOSEN = ("organisms", "release")
"""Marks of tests that do not run each time."""

_entered: set[str] = set()
_all_entered: set[str] = set()
_record: dict[str, tuple[float, list[str]]] = {}

# An int passes for a float, as in PEP 484.
_checked = beartype(conf=BeartypeConf(is_pep484_tower=True))


def noted(target):
    """What checks a function's types, and notes that the function is entered."""
    check = target if RECORD else _checked(target)
    if isinstance(target, type):
        return check
    name = f"{target.__module__}.{target.__qualname__}"

    @functools.wraps(check)
    def note(*args, **kwargs):
        _entered.add(name)
        return check(*args, **kwargs)

    return note


install_import_hook(
    ["interp", "interp_probes", "interp_experiments"], "tests.support.checked_types.noted"
)


def pytest_addoption(parser):
    parser.addoption("--every-function", action="store_true", help="fail if one is not entered")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    began = time.process_time()
    result = yield
    if not any(map(item.get_closest_marker, _NOT_CHOSEN)):
        _record[item.nodeid] = (time.process_time() - began, sorted(_entered))
    _all_entered.update(_entered)
    _entered.clear()
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
