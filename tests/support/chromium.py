"""Chromium, in which tests open pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

_PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

_FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-component-update"


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser; where there is none, the test is skipped."""
    if _PROGRAM is None:
        pytest.skip("no chromium or google-chrome on PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_PROGRAM, args=_FLAGS.split())
        yield browser
        browser.close()
