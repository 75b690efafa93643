"""Benchmarks take time by their nature. What measures time or memory is tried before a release;
what computes the numbers of documents, by `make test-all`."""

from pathlib import Path

import pytest

COMPUTE = {
    "test_calibration.py",
    "test_conformance.py",
    "test_guarantee.py",
    "test_ledger_of_a_graft.py",
    "test_mib.py",
    "test_phrasings.py",
    "test_thoughts_of_grafts.py",
    "test_training_of_grafts.py",
    "test_verdicts.py",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
            if item.path.name not in COMPUTE:
                item.add_marker(pytest.mark.release)
