import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.report.formatting import readable
from tests.support.tokenizers import byte_level, sentencepiece_style


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
