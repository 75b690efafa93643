import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from interp.reading.pieces import readable, token_texts
from interp.report.formatting import (
    mean_with_sd,
    number_text,
    segment_label,
    signed,
)
from tests.support.tokenizers import byte_level, sentencepiece_style


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
    texts = mean_with_sd([0.6894, missing, 0.5], [0.1931, missing, missing])
    assert texts == ["0.689 (0.193)", "", "0.500"]


def test_a_line_break_alone_is_text_in_every_vocabulary():
    byte_level = Tokenizer(BPE({"Ġ": 0, "Ċ": 1, "ĠYes": 2, "<eos>": 3}, [], unk_token="<eos>"))
    plain = Tokenizer(BPE({"<eos>": 0, "\n": 1, "▁Yes": 2, "▁": 3}, [], unk_token="<eos>"))
    found = [
        token_texts(PreTrainedTokenizerFast(tokenizer_object=own), [1, 2, 3, 9])
        for own in (byte_level, plain)
    ]
    assert found == [["\n", " Yes", "<eos>", None], ["\n", " Yes", " ", None]]
