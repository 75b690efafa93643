"""The index of words: what it finds, and codes that a page reads back."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.report import pieces
from interp.report.words import _shorter, indexed, pairs_by_word, words_of


def numbers_of(code: str) -> list[int]:
    """What templates/pairs.js makes of a code."""
    digits = [pieces.CODES.index(letter) for letter in code[1:]]
    if code[0] == "b":
        return [
            6 * place + bit
            for place, own in enumerate(digits)
            for bit in range(6)
            if own >> bit & 1
        ]
    found, number, step = [], -1, 0
    for digit in digits:
        step = step * 45 + digit % 45
        if digit < 45:
            number += step + 1
            found.append(number)
            step = 0
    return found


@given(st.sets(st.integers(0, 30_000), min_size=1))
def test_the_numbers_of_pairs_are_read_back(numbers):
    code = _shorter(sorted(numbers), pieces.CODES)
    assert numbers_of(code) == sorted(numbers)
    assert len(code) <= 2 + max(numbers) // 6


def test_what_every_pair_has_takes_a_sixth_of_a_letter():
    assert len(_shorter(range(25_600), pieces.CODES)) == 1 + -(-25_600 // 6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("RULE_0012/infer-tf", {"rule", "0012", "12", "infer", "tf"}),
        ("It's 𝔸, ÜBER 0!", {"it", "s", "𝔸", "über", "0"}),
        ("東京 abc한", {"東", "京", "abc", "한"}),
        ("x" * 50, {"x" * 40}),
    ],
)
def test_words_are_letters_and_digits(text, words):
    assert words_of(text) == words


def test_words_of_ids_and_of_all_prompts_are_indexed_in_the_order_of_a_page():
    prompts = pd.DataFrame({"text": ["One \U0001d538", "two", "One \uff21"]})
    having = pairs_by_word(prompts, {"p": [0, 1], "q": [2]})
    found = dict(indexed(having, pieces.CODES))
    assert {word: numbers_of(code) for word, code in found.items()} == {
        "one": [0, 1],
        "p": [0],
        "q": [1],
        "two": [0],
        "\U0001d538": [0],
        "\uff41": [1],
    }
    assert list(found)[-2:] == ["\U0001d538", "\uff41"]
