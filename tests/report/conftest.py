from collections.abc import Iterator

import pandas as pd
import pytest
from playwright.sync_api import Browser

from tests.support.chromium import chromium

HOSTILE = "<script>document.title = 'taken over'</script>"


@pytest.fixture(scope="package")
def pair(attributions) -> pd.DataFrame:
    table = attributions.prompts
    return table[table["pair_id"] == table["pair_id"].iloc[0]]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started
