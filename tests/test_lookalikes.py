"""Texts that only look alike are told apart."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.errors import UserError, unknown
from interp.lookalikes import as_seen, is_blank, lookalike, unseen


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


@pytest.mark.parametrize(
    ("got", "known"),
    [
        *(("wet", known) for known in ("wet", "Wet", "we", "dry")),
        # Of long texts, only the beginnings are compared.
        *(("a " * 200 + "a", "a " * 200 + ending) for ending in ("B", "b", " a", "\xa0a", "")),
    ],
)
def test_a_difference_that_shows_needs_no_words(got, known):
    assert lookalike(got, [known]) == ""


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


UNSEEN = (
    "\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u2066\u2069\ufeff\xad\u061c\u180e\u034f\u3164"
    "\u2800\u115f\uffa0\ufe0e\ufe0f\U000e0041\U000e0100\x00\x1b\x7f"
)


@pytest.mark.parametrize("character", UNSEEN)
def test_invisible_characters_are_named_wherever_they_are(character):
    for text in (f"{character}Yes", f"Y{character}es", f"Yes{character}", f" {character} Yes"):
        assert f"U+{ord(character):04X}" in unseen(text)


@pytest.mark.parametrize("space", "\xa0\u2003\u202f\u2028\x0b")
def test_unusual_white_space_is_named_only_around_a_text(space):
    assert unseen(f"{space}Yes")
    assert unseen(f"Yes{space}")
    assert not unseen(f"New{space}York")


def test_an_accent_apart_from_its_letter_is_named():
    assert "U+0301" in unseen(unicodedata.normalize("NFD", "é"))
    assert "U+0301" in unseen("\u0301Yes")


@pytest.mark.parametrize(
    "text",
    [
        *("Yes", " No", "n/a", "São", "שלום", "क़", "が"),
        *("می\u200cخواهم", "👨\u200d👩", "✅\ufe0f", "1\ufe0f\u20e3"),
    ],
)
def test_what_belongs_to_a_text_is_not_called_invisible(text):
    assert not unseen(text)
