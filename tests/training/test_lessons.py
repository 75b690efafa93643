from collections import Counter

import numpy as np
import pytest
import torch

from interp.errors import UserError
from interp.measurements.specs import Evaluate
from interp.measuring.core import bind, collect
from interp.reading.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.training.lessons import IGNORED, Lesson, Lessons, read_lessons, steps_of, to_batch
from tests.support.other_kinds import classifier, text_to_text
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level
from tests.support.training import Colors, question

QUESTIONS = [question(number) for number in range(9)]


def test_an_epoch_has_every_lesson_once_in_an_order_of_the_seed():
    lengths = [5, 9, 7, 5, 8, 6, 9] * 30
    groups = [str(place) for place in range(210)]
    steps = steps_of(lengths, groups, batch=8, epochs=3, seed=1)
    assert len(steps) == 3 * 27
    for epoch in range(3):
        places = [place for step in steps[epoch * 27 : (epoch + 1) * 27] for place in step]
        assert Counter(places) == dict.fromkeys(range(210), 1)
    assert steps == steps_of(lengths, groups, batch=8, epochs=3, seed=1)
    assert steps != steps_of(lengths, groups, batch=8, epochs=3, seed=2)
    assert steps[:27] != steps[27:54]


def test_batches_hold_lessons_of_similar_length():
    lengths = list(range(1, 257))
    for step in steps_of(lengths, [""] * 256, batch=8, epochs=1, seed=0):
        own = [lengths[place] for place in step]
        assert max(own) - min(own) == 7


def test_a_curriculum_begins_with_short_groups_and_keeps_them_together():
    groups = [str(place % 1000) for place in range(4000)]
    lengths = [4 + place % 1000 * 7 % 60 for place in range(4000)]
    steps = steps_of(lengths, groups, batch=8, epochs=2, seed=0, curriculum=0.5)
    places = [place for step in steps[:500] for place in step]
    assert Counter(places) == dict.fromkeys(range(4000), 1)
    assert all(place % 1000 == places[at // 4 * 4] % 1000 for at, place in enumerate(places))
    means = [np.mean([lengths[p] for p in places[at : at + 256]]) for at in range(0, 3840, 256)]
    assert (np.diff(means) > 0).all() and means[-1] > 4 * means[0]
    # The lengths of neighboring batches are mixed, and the second epoch is as any other.
    assert steps[500:] == steps_of(lengths, groups, batch=8, epochs=2, seed=0)[500:]
    neighbors = np.diff([np.mean([lengths[p] for p in step]) for step in steps[:500]])
    assert (neighbors < 0).mean() > 0.3


def test_a_strict_curriculum_goes_by_length_alone():
    groups = [str(place % 1000) for place in range(4000)]
    lengths = [4 + place % 1000 * 7 % 60 for place in range(4000)]
    steps = steps_of(lengths, groups, batch=8, epochs=1, seed=0, curriculum=0.0)
    places = [place for step in steps for place in step]
    assert [lengths[place] for place in places] == sorted(lengths)


def test_a_classifier_learns_the_class_of_the_answer():
    model = classifier("bert")
    model.hf.config.id2label = {0: "green", 1: "red", 2: "blue"}
    try:
        lessons = read_lessons(model, Colors(), QUESTIONS).lessons
    finally:
        model.hf.config.id2label = {0: "No", 1: "not sure", 2: "YES"}
    assert [int(one.target[0]) for one in lessons] == [1] * 6 + [2] * 3
    own = tokenize(model, QUESTIONS)
    assert [tuple(one.token_ids) for one in lessons] == [one.token_ids for one in own]


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_a_text_to_text_model_learns_the_whole_target(kind):
    model = text_to_text(kind)
    lessons = read_lessons(model, Colors(), QUESTIONS).lessons
    assert list(lessons[0].target) == model.tokenizer(text_target="red")["input_ids"]
    batch = to_batch(model, [lessons[0], lessons[6]])
    logits = model.hf(**batch).logits
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), batch["labels"].flatten(), ignore_index=IGNORED
    )
    torch.testing.assert_close(model.hf(**batch).loss, expected)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_causal_model_learns_the_answer_alone_where_it_is_read(kind):
    model = tiny_model(kind)
    lessons = read_lessons(model, Colors(), QUESTIONS).lessons
    batch = to_batch(model, lessons)
    learned = batch["labels"] != IGNORED
    assert (batch["labels"][learned] == batch["input_ids"][learned]).all()
    end = model.tokenizer.eos_token_id
    for row, (lesson, prompt) in enumerate(zip(lessons, QUESTIONS, strict=True)):
        (own,) = tokenize(model, [prompt])
        assert tuple(lesson.token_ids[: len(own)]) == own.token_ids
        assert learned[row].nonzero()[0].item() == len(own)
        assert lesson.target[-1] == end
        written = model.tokenizer.decode(lesson.target[:-1])
        assert written.strip() == prompt.answer.gold
    # The first token is the one by which `evaluate` recognizes the answer.
    probabilities = collect(bind(Evaluate(), model), QUESTIONS)["option_probabilities"]
    with torch.no_grad():
        first = model.hf(input_ids=torch.tensor([own.token_ids])).logits[0, -1].softmax(-1)
    last = probabilities[probabilities["prompt_id"] == QUESTIONS[-1].id].set_index("option")
    assert first[lesson.target[0]].item() <= last.loc["blue", "probability"] + 1e-6
    assert first[lesson.target[0]].item() > 0


def test_prompts_that_are_too_long_are_left_out():
    model = tiny_model("gpt2")
    long = question(0)
    object.__setattr__(long, "text", long.text * 40)
    read = read_lessons(model, Colors(), [long, *QUESTIONS])
    assert (len(read.lessons), read.too_long) == (9, 1)
    with pytest.raises(UserError, match="all 1 prompts"):
        read_lessons(model, Colors(), [long])


def test_the_digest_is_of_tokens_and_answers():
    model = tiny_model("llama")
    digest = read_lessons(model, Colors(), QUESTIONS).digest()
    assert digest == read_lessons(model, Colors(), QUESTIONS).digest()
    assert digest != read_lessons(model, Colors(), QUESTIONS[::-1]).digest()
    other = question(0)
    object.__setattr__(other, "answer", question(6).answer)
    assert digest != read_lessons(model, Colors(), [other, *QUESTIONS[1:]]).digest()


def test_behind_a_prompt_that_ends_in_a_blank_the_answer_is_the_one_that_is_scored():
    model = make_tiny("llama", byte_level("{{ messages[0]['content'] }} ANSWER: "))
    lesson = read_lessons(model, Colors(), QUESTIONS[:1]).lessons[0]
    (asked,) = tokenize(model, QUESTIONS[:1])
    assert asked.chat.templated and asked.chat.text.endswith(" ")
    assert tuple(lesson.token_ids[: len(asked)]) == asked.token_ids
    assert int(lesson.target[0]) in AnswerTokenizer(model)(asked).of["red"]


def test_the_longest_lesson_is_the_one_of_which_most_is_read():
    def lesson(read, written):
        return Lesson(np.zeros(read, np.int32), np.zeros(written, np.int32), "")

    # Of a causal model, what is read holds what is to be written.
    lessons = Lessons([lesson(102, 2), lesson(99, 5), lesson(102, 4)], 0)
    assert lessons.longest is lessons.lessons[2]
