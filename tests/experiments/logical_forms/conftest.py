import pytest

from tests.experiments.logical_forms.made_up import made_up, with_vocabulary


@pytest.fixture(scope="module")
def results():
    rows = made_up()
    mirror = rows.assign(perplexity=rows["perplexity"] * 3)
    return with_vocabulary({"questions": rows, "nonsense": mirror})
