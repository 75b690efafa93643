"""Texts that only look alike are told apart."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.errors import UserError, unknown
from interp.lookalikes import as_seen, is_blank, lookalike


@pytest.mark.parametrize(
    ("got", "known", "code_point"),
    [
        ("Not wet", "Not\xa0wet", "U+00A0"),
        ("Prämisse", unicodedata.normalize("NFD", "Prämisse"), "U+0308"),
        ("wet", "w\u200bet", "U+200B"),
        ("wet\ufeff", "wet", "U+FEFF"),
        ("\u0410", "A", "U+0410"),
        ("It\u2019s", "It's", "U+2019"),
        ("premise\uff11", "premise1", "U+FF11"),
        ("a  b", "a b", "U+0020"),
    ],
)
def test_the_character_that_differs_is_named(got, known, code_point):
    assert code_point in lookalike(got, ["other", known])
    assert code_point in lookalike(known, [got])
    assert code_point in unknown("side", got, [known])


@pytest.mark.parametrize("known", ["wet", "Wet", "we", "dry"])
def test_a_difference_that_shows_needs_no_words(known):
    assert lookalike("wet", [known]) == ""


@given(st.text(max_size=20))
def test_composing_and_padding_do_not_show(text):
    assert as_seen(unicodedata.normalize("NFD", text)) == as_seen(text)
    assert as_seen(f"\u200b {text}\xa0") == as_seen(text)


@pytest.mark.parametrize("text", ["", " \n", "\xa0", "\u200b\ufeff", "\u3164", "\xad", "\u2800"])
def test_what_nobody_sees_is_blank(text):
    assert is_blank(text)
    assert not is_blank(f"{text}.")


def test_messages_hold_nothing_that_a_terminal_obeys():
    assert str(UserError("side\x1b[31m\0\u202e\nnext")) == "side\\x1b[31m\\x00\\u202e\nnext"
