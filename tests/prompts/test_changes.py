import dataclasses

import pytest

from interp.choices import ALL_PREMISES
from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.around import with_messages
from interp.prompts.changes import (
    CONTENT_FREE,
    content_free,
    premises,
    swapped_options,
    without_premises,
    without_segments,
)
from interp.prompts.mixing import with_donors
from interp.prompts.prompt import Demonstration, Messages, Prompt, compose
from interp.prompts.systems import load_prompts
from tests.support.prompts import some_prompts


def asked(text, *names):
    names = names or ("Yes", "No")
    options = tuple(AnswerOption(name, (name, name.lower())) for name in names)
    return Prompt("1", text, {}, Choice(options, gold=options[0].name), "p", "s", {})


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("Is it so? Yes or No?", "Is it so? No or Yes?"),
        ("Answer No or Yes.", "Answer Yes or No."),
        ('Say "yes" or "no", only Yes/No.', 'Say "no" or "yes", only No/Yes.'),
        ("Yes, No", "No, Yes"),
        ("Antworte Yes oder No.", "Antworte No oder Yes."),
        ("Is it True, False or Unknown?", "Is it Unknown, False or True?"),
    ],
)
def test_lists_of_options_are_reversed(text, swapped):
    names = ("True", "False", "Unknown") if "True" in text else ()
    (found,) = swapped_options(asked(text, *names))
    assert (found.kind, found.what, found.prompt.text) == ("swapped", "", swapped)
    (back,) = swapped_options(found.prompt)
    assert back.prompt.text == text


@pytest.mark.parametrize(
    "text",
    [
        "Does it follow?",
        "Yes? It rains. No.",  # options in sentences of their own are no list
        "Yes or yes",
        "Nobody or Yesterday",
        "It is a Yes but never a No.",
    ],
)
def test_other_texts_are_not_changed(text):
    assert list(swapped_options(asked(text))) == []
    assert list(swapped_options(asked("A or B? Then C.", "A", "B", "C"))) == []


def test_each_segment_is_left_out_with_the_white_space_around_it():
    parts = [(None, "Given: "), ("a", "It rains."), (None, " "), ("b", "It snows."), (None, "\n")]
    text, segments = compose([*parts, ("question", "Does it? Yes or No?")])
    prompt = dataclasses.replace(asked(text), segments=segments)
    assert {own.what: own.prompt.text for own in without_segments(prompt)} == {
        "a": "Given: It snows.\nDoes it? Yes or No?",
        "b": "Given: It rains.\nDoes it? Yes or No?",
        "question": "Given: It rains. It snows.",
    }
    text, segments = compose([("all", "It rains.")])  # nothing would be left
    assert list(without_segments(dataclasses.replace(asked(text), segments=segments))) == []


@pytest.mark.parametrize(
    ("names", "rest", "found"),
    [
        (["premise1", "premise2", "question"], "\nAnswer:", ["premise1", "premise2"]),
        (["question", "premise1", "conclusion", "premise2"], "", ["premise1", "premise2"]),
        (["instruction", "fact1", "rule1", "statement"], "", ["fact1", "rule1"]),
        (["premise1", "premise2"], " Is the street wet?", ["premise1", "premise2"]),
        (["premise1", "premise2"], "", ["premise1", "premise2"]),
        (["story", "frage"], "\nAntwort:", ["story"]),
        (["story", "twist"], " Say whether he lied.", ["story", "twist"]),
        (["question"], "", []),
        ([], "Is it?", []),
    ],
)
def test_premises_are_what_does_not_ask(names, rest, found):
    text, segments = compose([*((name, f"The {name}. ") for name in names), (None, rest or "?")])
    prompt = dataclasses.replace(asked(text), segments=segments)
    assert premises(prompt) == found
    left = [own.prompt.text for own in without_premises(prompt)]
    assert len(left) == bool(found)
    assert all(f"The {name}." not in text for text in left for name in found)
    assert all(f"The {name}." in text for text in left for name in {*names} - {*found})


@pytest.mark.parametrize(
    ("system", "names"),
    [
        ("rulebreakers", {"premise1", "premise2"}),
        ("logical-forms", {"premise1", "premise2"}),
        ("robustlr", {"fact1", "rule1", "rule2"}),
    ],
)
def test_the_premises_of_each_system_are_left_out_together(system, names):
    prompt = load_prompts(system, limit=1)[0]
    assert {*premises(prompt)} == names
    (own,) = without_premises(prompt)
    assert own.what == ALL_PREMISES not in prompt.segments
    assert not any(prompt.segment_text(name) in own.prompt.text for name in names)
    assert prompt.segment_text("question") in own.prompt.text


def test_content_is_what_donors_replace():
    prompt = with_donors(some_prompts(4), count=1)[0]
    found = {own.what: own.prompt for own in content_free(prompt)}
    assert tuple(found) == CONTENT_FREE
    question = prompt.segment_text("question")
    assert found["N/A"].text == f"Premises: N/A N/A\nConclusion: N/A\n{question}"
    assert found[""].text == f"Premises:\nConclusion:\n{question}"
    assert all(own.answer == prompt.answer for own in found.values())
    assert list(content_free(some_prompts(4)[0])) == []


@pytest.mark.slow
def test_demonstrations_change_as_the_prompt_does():
    prompts = load_prompts(limit=1)
    shown = with_messages(prompts, shots=2, instruction="Answer Yes or No.")
    prompt = shown[0]
    (without,) = [own.prompt for own in without_segments(prompt) if own.what == "instruction"]
    for own, other in zip(
        prompt.messages.demonstrations, without.messages.demonstrations, strict=True
    ):
        assert own.question == f"Answer Yes or No.\n{other.question}"
        assert own.answer == other.answer
    bare = with_messages(prompts, shots=2)[0]
    assert without.messages == bare.messages and without.text == bare.text


def test_lists_in_demonstrations_are_reversed_too():
    shot = Demonstration("Is it cold? Yes or No?", "No")
    prompt = dataclasses.replace(
        asked("Is it so? Yes or No?"), messages=Messages(demonstrations=(shot,))
    )
    (swapped,) = swapped_options(prompt)
    assert swapped.prompt.messages.demonstrations == (
        Demonstration("Is it cold? No or Yes?", "No"),
    )
