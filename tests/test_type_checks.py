"""`make test-types` checks the types and shapes of every package."""

import numpy as np
import pandas as pd
import pytest
from jaxtyping import TypeCheckError

from interp.statistics.classical import spearman
from interp.statistics.summaries import weighted_median
from interp_experiments.logical_forms.tables import accuracy
from interp_probes.linear.probes import linear_probes
from tests.support.choose_typed import choose
from tests.support.functions import all_functions


@pytest.mark.parametrize(
    "call",
    [
        lambda: spearman(np.zeros(3), pd.Series([1.0])),
        lambda: weighted_median(np.zeros(3), np.zeros(4)),
        lambda: linear_probes("residuals.parquet", [], pd.DataFrame()),
        lambda: accuracy([]),
    ],
    ids=["interp", "shapes", "interp_probes", "interp_experiments"],
)
def test_a_wrong_type_or_shape_is_refused(call, request):
    if not request.config.pluginmanager.has_plugin("tests.support.checked_types"):
        pytest.skip("types are checked by make test-types")
    # Where beartype was not imported first, it stumbles over what other libraries add to `object`.
    from beartype.roar import BeartypeCallHintViolation

    with pytest.raises((TypeCheckError, BeartypeCallHintViolation)):
        call()


def test_chosen_tests_enter_everything_in_little_time():
    record = {"slow": (9.0, ["f", "g"]), "quick": (1.0, ["f"]), "other": (1.0, ["g", "helper"])}
    assert choose(record, {"f", "g"}) == ["quick", "other"]
    record = {"middle": (1.0, ["g", "h"]), "one": (1.0, ["f", "g"]), "two": (1.0, ["h", "i"])}
    assert choose(record, set("fghi")) == ["one", "two"]


def test_functions_are_found_in_every_package_and_without_their_declarations():
    found = all_functions()
    assert {"interp.files.write_whole", "interp_probes.linear.probes.linear_probes"} <= found
    assert "interp.runs.workers.Worker.running" not in found
