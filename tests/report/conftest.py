import pandas as pd
import pytest

HOSTILE = "<script>document.title = 'taken over'</script>"


@pytest.fixture(scope="package")
def pair(attributions) -> pd.DataFrame:
    table = attributions.prompts
    return table[table["pair_id"] == table["pair_id"].iloc[0]]
