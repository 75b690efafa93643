"""Thoughts and their sentences."""

import random
import time

import pytest

from interp.prompts.thought import Thought, split_sentences

THOUGHT = Thought("<think>\n", ("One is odd. ", "So?\n\n", "Yes!"), "\n</think>\n\n")


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Bern is in it . so is she .", ["Bern is in it . ", "so is she ."]),
        ("Is it? Yes! Wait… Go.", ["Is it? ", "Yes! ", "Wait… ", "Go."]),
        ("1. Look.\n2. Think (hard).) Done", ["1. Look.\n", "2. Think (hard).) ", "Done"]),
        ("Dr. Low, e.g. at 3.5 km. Then J. Orr.", ["Dr. Low, e.g. at 3.5 km. ", "Then J. Orr."]),
        ("The sum is 5. Then add.", ["The sum is 5. ", "Then add."]),
        ("你好。再见！ok", ["你好。", "再见！", "ok"]),
        ("\n\n  A line\nand another", ["\n\n  A line\n", "and another"]),
        ("", []),
    ],
)
def test_sentences(text, sentences):
    assert list(split_sentences(text)) == sentences


def test_joined_sentences_are_the_text_and_segments_are_the_sentences():
    chance = random.Random(0)
    for _ in range(300):
        text = "".join(chance.choice("ab1. .\n!?) A") for _ in range(chance.randrange(40)))
        sentences = split_sentences(text)
        assert "".join(sentences) == text
        thought = Thought("<t> ", sentences, " </t> ")
        assert thought.written == f"<t> {text.rstrip()} </t> "
        named = [thought.written[start:end] for start, end in thought.segments.values()]
        assert named == [sentence.strip() for sentence in sentences if sentence.strip()]
        (start, end) = thought.roles["end_of_thought"]
        assert thought.written[start:end] == "</t>"


@pytest.mark.parametrize(
    ("part", "sentences"),
    [
        *((part, 1) for part in (".", "!?", ".)", '."', "A. ", "e.g. ")),
        *((part, 100_000) for part in (" .", "1. ", "\n.")),
        ("So it is. ", 200_000),
    ],
)
def test_a_very_long_thought_is_cut_in_little_time(part, sentences):
    text = part * 200_000
    start = time.process_time()
    found = split_sentences(text)
    assert time.process_time() - start < 10
    assert "".join(found) == text
    assert len(found) == pytest.approx(sentences, abs=1)


def test_other_sentences_between_the_same_marks():
    assert THOUGHT.holding(THOUGHT.sentences[:1]).written == "<think>\nOne is odd.\n</think>\n\n"
    assert THOUGHT.holding(()).written == "<think>\n\n</think>\n\n"
    changed = THOUGHT.exchanged({"thought1": "Two is even.", "thought3": ""})
    assert changed.written == "<think>\nTwo is even. So?\n</think>\n\n"
    assert THOUGHT.exchanged({}) == THOUGHT
    assert THOUGHT.sentence("thought2") == "So?" and THOUGHT.sentence("thought9") == ""
