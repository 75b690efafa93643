"""What a text denies, withdraws, joins, cuts or makes a part of something else is no answer."""

import json
from pathlib import Path

import pytest

from interp.prompts.answers import Unanswered
from interp_experiments.rulebench.answers import category, kinship, letter, number, truth

CHANGED = [
    json.loads(line)
    for line in (Path(__file__).parent / "changed_answers.jsonl").read_text("utf-8").splitlines()
]
"""Parser, the answers that are right to read (empty: none), and text."""

PARSERS = {
    "truth": truth,
    "number": number,
    "letter": letter,
    "category": category,
    "kinship": kinship("Michael", "Clarence"),
}


@pytest.mark.parametrize("parser, right, text", CHANGED)
def test_an_answer_is_read_with_the_words_around_it(parser, right, text):
    found = PARSERS[parser](text)
    assert ("" if isinstance(found, Unanswered) else found) in right


def test_every_parser_is_tried_with_answers_and_without():
    for parser in PARSERS:
        rights = [right for name, right, _ in CHANGED if name == parser]
        assert [""] in rights
        assert any("" not in right for right in rights)


@pytest.mark.parametrize("minus", "-−–‐‑﹣－")
def test_every_minus_sign_is_read(minus):
    assert number(f"Answer: {minus}3") == "-3"
    assert number(f"{minus}1,234.50.") == "-1234.5"


def test_number_words_are_numbers():
    words = {"zero": "0", "forty-two": "42", "one hundred and five": "105", "two thousand": "2000"}
    assert {word: number(f"Answer: {word}.") for word in words} == words
    assert isinstance(number("Answer: two three."), Unanswered)
