"""`make test-types` checks the types and shapes of every package."""

import numpy as np
import pandas as pd
import pytest
from jaxtyping import TypeCheckError

from interp.statistics.classical import spearman
from interp_experiments.logical_forms.tables import accuracy
from interp_probes.linear import linear_probes


@pytest.mark.parametrize(
    "call",
    [
        lambda: spearman(np.zeros(3), pd.Series([1.0])),
        lambda: linear_probes("residuals.parquet", [], pd.DataFrame()),
        lambda: accuracy([]),
    ],
    ids=["interp", "interp_probes", "interp_experiments"],
)
def test_a_wrong_type_is_refused(call, request):
    if not request.config.pluginmanager.has_plugin("tests.support.checked_types"):
        pytest.skip("types are checked by make test-types")
    with pytest.raises(TypeCheckError):
        call()
