import pytest

from interp.patching.tables import flips


@pytest.mark.parametrize(
    ("metric", "base", "flipped"),
    [(1, -1, True), (-1, 1, True), (0, 1, False), (0, -1, False), (1, 0, False), (-1, 0, False)],
)
def test_a_tie_is_no_preference_that_could_change(metric, base, flipped):
    assert flips(float(metric), float(base)) == flipped
