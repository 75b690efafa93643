import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.report.formatting import number_text, segment_label, signed


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.104, "+0.10"), (-0.104, "−0.10"), (-0.0, "0.00"), (0.004, "0.00"), (-0.004, "0.00")],
)
def test_a_difference_has_a_sign_unless_it_is_shown_as_zero(number, text):
    assert signed(number) == text


@pytest.mark.parametrize(
    ("segment", "label"),
    [
        ("premise1", "premise 1"),
        ("thought12", "thought 12"),
        ("fact_10", "fact 10"),
        ("fact_1", "fact 1"),
        ("premise", "premise"),
        ("x2y3", "x2y 3"),
        ("2024", "2024"),
        ("city_of_premise103", "city of premise 103"),
    ],
)
def test_a_number_at_the_end_of_a_segment_stays_whole(segment, label):
    assert segment_label(segment) == label


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12))
def test_a_number_reads_back_within_what_is_shown(value):
    read = float(number_text(value).replace(",", "").replace("−", "-"))
    assert read == pytest.approx(value, abs=5.1e-4, rel=0.06)
