import numpy as np
import pytest

from benchmarks.controls import TESTS, study


@pytest.mark.parametrize("control", TESTS, ids=lambda control: control.name)
def test_every_test_gives_a_p_value_on_a_study_and_finds_what_is_there(control):
    rng = np.random.default_rng(0)
    nothing, something = (
        study(rng, planted=planted, entities=60) for planted in (None, control.planted)
    )
    assert 0 < control.p(nothing) <= 1
    # The planted effect is so large that one study shows it, but between entities.
    assert control.p(something) < (0.5 if "between" in control.name else 0.05)


def test_tests_over_entities_keep_their_level_and_mcnemar_does_not():
    by_name = {control.name: control for control in TESTS}
    rng = np.random.default_rng(1)
    studies = [study(rng, planted=None, entities=24) for _ in range(60)]
    rejected = {
        name: np.mean([by_name[name].p(rows) <= 0.05 for rows in studies])
        for name in ("model, within entities", "model, McNemar over pairs")
    }
    # 60 studies: up to 0.13 is likely of a test at 5%.
    assert rejected["model, within entities"] <= 0.13
    assert rejected["model, McNemar over pairs"] > rejected["model, within entities"]
