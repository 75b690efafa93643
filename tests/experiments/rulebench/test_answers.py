"""Parsers against answers that were labeled by hand, and against what is said around an answer.

What a text denies, withdraws, joins, cuts or makes a part of something else is no answer.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from interp.prompts.answers import FreeText, Unanswered
from interp.runs.identity import closure
from interp_experiments.rulebench.answers import (
    category,
    kinship,
    letter,
    number,
    parser_of,
    truth,
)
from interp_experiments.rulebench.items import READ, STRING_GAME, Item


def rows(name):
    text = (Path(__file__).parent / name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


LABELLED = rows("labeled_answers.jsonl")
"""Kind, question, label, shape and text. The question of other kinds is its correct answer."""

CHANGED = rows("changed_answers.jsonl")
"""Parser, the answers that are right to read (empty: none), and text."""

KINSHIPS = {
    "k1": ("Who is Michael to Clarence?", "grandson"),
    "k2": ("Who is Laura to James?", "daughter-in-law"),
    "k3": ("Who is Michael to Clarence?", "mother"),
}

CHARGES = ("盗窃", "抢劫", "诈骗", "盗窃、抢夺枪支、弹药、爆炸物")

KINDS = {kind.name: kind for kind in (*READ, STRING_GAME)}


def judged(kind, question, text):
    """right, wrong, unparsed or refused."""
    asked, gold = KINSHIPS.get(question, ("?", question))
    item = Item("1", asked, gold, "0")
    answer = FreeText((gold,), parser_of(KINDS[kind], item, CHARGES))
    outcome, _, correct = answer.judge(text)
    return outcome if outcome != "answered" else "right" if correct else "wrong"


@pytest.mark.parametrize("kind, question, label, shape, text", LABELLED)
def test_the_parser_agrees_with_the_label(kind, question, label, shape, text):
    assert judged(kind, question, text) == label


def test_the_labeled_answers_are_of_every_kind_label_and_shape():
    assert len(LABELLED) >= 200
    assert len({tuple(row) for row in LABELLED}) == len(LABELLED)
    labels = {"right", "wrong", "unparsed", "refused"}
    assert {(row[0], row[2]) for row in LABELLED} == {(k, each) for k in KINDS for each in labels}
    assert Counter(row[3] for row in LABELLED).keys() == {
        *("direct", "sentence", "thought", "several", "cut", "hedged", "offtopic", "refused")
    }


def test_a_parser_is_named_by_what_it_depends_on():
    def name(kind, question, labels=CHARGES):
        parse = parser_of(KINDS[kind], Item("1", question, "", "0"), labels)
        return FreeText(("x",), parse).record()[2]

    assert name("clutrr", "Who is [Al] to [Bo]?").endswith("kinship of Al to Bo")
    assert name("deer", "?").endswith("answers.letters.letter")
    assert name("cail2018", "?") == name("cail2018", "other", CHARGES[::-1])
    assert name("cail2018", "?") != name("cail2018", "?", CHARGES[1:])


@pytest.mark.parametrize("kind", KINDS)
def test_how_texts_are_read_is_part_of_the_code_of_every_parser(kind):
    parse = parser_of(KINDS[kind], Item("1", "?", "", "0"), CHARGES)
    assert "interp_experiments.rulebench.reading" in closure([parse.__module__])


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
