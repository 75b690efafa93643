import pandas as pd
import pytest

import interp

HOSTILE = "<script>document.title = 'taken over'</script>"


@pytest.fixture(scope="package")
def attributions(organism, prompts) -> interp.Attributions:
    """Two pairs, with token scores."""
    return interp.attribute(organism, prompts[:4], keep_tokens=True)


@pytest.fixture(scope="package")
def pair(attributions) -> pd.DataFrame:
    table = attributions.prompts
    return table[table["pair_id"] == table["pair_id"].iloc[0]]
