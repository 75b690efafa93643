import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.report.formatting import (
    accuracies_first,
    column,
    mean_with_sd,
    number_text,
    readable,
    signed,
)
from tests.support.tokenizers import byte_level, sentencepiece_style


def texts(values, name="score"):
    return [cell.text for cell in column(pd.Series(values, name=name)).cells]


def test_numbers_have_three_decimals_and_counts_have_thousands():
    assert texts([0.12345, -1.0, 1234.5]) == ["0.123", "−1.000", "1,234.500"]
    assert texts([1, 256_000]) == ["1", "256,000"]


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.104, "+0.10"), (-0.104, "−0.10"), (-0.0, "0.00"), (0.004, "0.00"), (-0.004, "0.00")],
)
def test_a_difference_has_a_sign_unless_it_is_shown_as_zero(number, text):
    assert signed(number) == text


def test_a_small_number_does_not_read_as_zero():
    assert texts([0.0, 0.0004, -0.00001]) == ["0.000", "4.0e−04", "−1.0e−05"]


def test_a_large_number_that_is_no_count_has_three_digits():
    assert texts([95_583_698.111, -1e6, 999_999.0]) == ["9.56e+07", "−1.00e+06", "999,999.000"]
    assert texts([95_583_698]) == ["95,583,698"]


@pytest.mark.parametrize("name", ["p", "p_value", "welch_p", "p_corrected"])
def test_p_values_stop_at_a_ten_thousandth(name):
    """As in the paper's Figure 5."""
    expected = ["< 0.0001", "0.0001", "0.0004", "0.001", "0.040"]
    assert texts([1e-9, 1e-4, 0.0004, 0.001, 0.04], name) == expected


@pytest.mark.parametrize("name", ["pairs", "prompts", "premise1_sum", "probability"])
def test_other_names_with_a_p_are_no_p_values(name):
    assert texts([1e-9], name) == ["1.0e−09"]


def test_what_is_missing_is_blank():
    assert texts([np.nan, 0.5]) == ["", "0.500"]
    assert texts(pd.array([None, 3], dtype="Int64")) == ["", "3"]
    assert texts(["a", None]) == ["a", ""]
    assert texts([float("inf"), float("-inf")]) == ["∞", "−∞"]


def test_truth_is_written_out():
    assert texts([True, False]) == ["yes", "no"]


def test_texts_of_figures_sort_by_their_first_number():
    figures = column(pd.Series(["1,002.5 (3.0)", "-0.5 (0.1)", ""], name="ratio"))
    assert figures.figures
    assert [cell.key for cell in figures.cells] == [1002.5, -0.5, None]
    assert not column(pd.Series(["gemma2", "0.5"], name="model")).figures


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12))
def test_a_number_reads_back_within_what_is_shown(value):
    read = float(number_text(value).replace(",", "").replace("−", "-"))
    assert read == pytest.approx(value, abs=5.1e-4, rel=0.06)


def test_accuracies_come_first_and_the_rest_keeps_its_order():
    columns = ["model", "gradient_ratio", "gradient_sd", "paired_accuracy", "a_accuracy", "prompts"]
    shown = accuracies_first(pd.DataFrame(columns=columns))
    assert list(shown.columns) == [columns[0], *columns[3:], *columns[1:3]]
    other = pd.DataFrame(columns=["model", "ratio", "control_accuracy"])
    assert list(accuracies_first(other).columns) == list(other.columns)


@pytest.mark.parametrize("tokenizer", [byte_level, sentencepiece_style])
def test_pieces_of_plain_text_join_to_the_text(tokenizer):
    plain = "If Anne went to Oslo, then she was not in Norway."
    pieces = tokenizer().tokenize(plain)
    assert "".join(readable(pieces)).strip() == plain


def test_characters_beyond_ascii_are_shown_as_themselves():
    assert readable(["If", "ĠZo", "Ã«", "Ċ"]) == ["If", " Zo", "ë", "\n"]
    assert readable(["▁If", "▁Zo", "ë", "<0x0A>"]) == [" If", " Zo", "ë", "\n"]


def test_part_of_a_character_is_shown_as_its_byte():
    assert readable(["Ġa", "Ã", "«"]) == [" a", "\\xc3", "\\xab"]


def test_special_tokens_stay_as_they_are():
    special = ["<|eot_id|>", "<｜begin▁of▁sentence｜>", "Ġa"]
    assert readable(special) == ["<|eot_id|>", "<｜begin▁of▁sentence｜>", " a"]


@given(st.text(min_size=1))
def test_pieces_of_whole_characters_read_as_the_tokenizer_decodes_them(text):
    tokenizer = byte_level(None)
    pieces = tokenizer.tokenize(f"a {text}")
    shown = "".join(readable(pieces))
    if "\\x" not in shown:
        assert shown == tokenizer.decode(tokenizer.convert_tokens_to_ids(pieces))


def test_means_are_written_with_their_deviation():
    missing = float("nan")
    text = mean_with_sd(pd.Series([0.6894, missing, 0.5]), pd.Series([0.1931, missing, missing]))
    assert text.tolist() == ["0.689 (0.193)", "", "0.500"]
