"""Benchmarks take time by their nature, and what they time is tested elsewhere: they are tried
before a release, and `pytest tests/benchmarks` tries them at any time."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.release)
