import shutil
from collections.abc import Iterator

import pandas as pd
import pytest
from playwright.sync_api import Browser, sync_playwright

HOSTILE = "<script>document.title = 'taken over'</script>"

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.fixture(scope="package")
def pair(attributions) -> pd.DataFrame:
    table = attributions.prompts
    return table[table["pair_id"] == table["pair_id"].iloc[0]]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium or google-chrome on PATH")
    flags = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-component-update"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags.split())
        yield browser
        browser.close()
