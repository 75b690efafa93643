"""Replies that take their first option back have no answer; explanations keep theirs."""

import time

import pytest

from interp.prompts.answers import AnswerOption, Choice


def forms(*names):
    return {form: name for name in names for form in (name, name.upper(), name.lower())}


OPTIONS = {
    "yes": forms("Yes", "No"),
    "capital": {"Yes": "Yes", "No": "No"},
    "true": forms("True", "False", "Unknown"),
    "letter": {"A": "A", "B": "B", "C": "C"},
    "number": {"1": "1", "2": "2", "7": "7", "5": "5"},
    "place": forms("New York", "New Jersey"),
    "city": forms("Paris", "London", "Rome"),
    "spanish": forms("Sí", "No"),
    "polish": forms("Łódź", "Kraków"),
    "russian": forms("Да", "Нет"),
    "wet": {"Wet": "Wet", "Not wet": "Not wet"},
    "valid": forms("Valid", "Invalid"),
}

TAKEN_BACK = {
    "yes": [
        "No, wait: Yes", "No. Actually, yes", "NO. ACTUALLY, YES.", "No — actually yes, it does.",
        "**No**. Wait, **Yes**", '"No." Sorry, I mean "Yes".', "No, sorry: yes",
        "No. Hold on. Yes!", "Yes, I mean no.", "Yes, or rather no", "Yes. On second thought, no.",
        "Yes. Correction: No.", "Yes. Scratch that, no",
        "Yes, because it rains. Wait, the answer is no.",
        "Yes, it follows. Actually, I think it is no.", "Yes. It rains. So the answer is no.",
        "Yes. But the correct answer to the question is: No", "Yes\n\n**Final answer:** No",
        "Yes... or no", "Yes … no", "Yes or no", "Yes, or maybe no", "Yes, but also no.",
        "Yes (no)", "No yes", "No yes it is", "Yes\nNo", "Yes\n\nNo, it does not follow.",
        "yes 👍 no 👎", "Yes. No, Anne is not in Sweden.", "Yes if it rains, no otherwise",
        "Yes, if it is raining; otherwise, no.", "Yes in theory, but no in practice.",
        "Yes, I cannot answer", "Yes. I'm sorry, but I can't help with that.",
        "No, as an AI, I am unable to answer this question.", "Yes, but I don't know.",
        "No. I am not sure.", "No. I was wrong. It is yes.",
        "No. Let me rethink that: the answer is Yes", "No, I take that back; I think yes.",
        "Yes, it follows. However, no.", "No. In conclusion, the answer is yes.", "No, it's yes",
        "Yes; on balance I lean no.", "Yes. All in all, no.", "Yes, nope, no.",
        "Yes, which makes it a no", "Yes. I'm leaning towards no.", "No, it is in fact yes.",
        "Yes, then no", "Yes then no.", "Yes at first, but no in the end.",
        "No. Actually the answer is yes", "No, the correct answer is yes because it rains",
        "Yes, that's no.", "Yes. It should be no.", "Yes. The answer would be no.",
        "No, I'd say yes", "Yes, I believe it's no.", "Yes, definitely no.", "Yes, though no.",
        "Yes, which means no.", "Yes... uh, no.", "No. Edit: yes.",
        "No. I change my answer to yes.", "Yes. Or is it no?", "Yes, alternatively no",
        "Yes. It rains, so no.", "Yes. It rains and thus the correct answer is no.",
        "Yes because it rains, so the answer is no", "No. Since it rains, the answer is yes.",
        "No. To summarize, the answer is clearly yes.",
    ],
    "capital": ["No. Actually, yes", "No\nyes"],
    "true": [
        "True. No, false.", "False\n\nTrue", "True. Wait... UNKNOWN", "True, make that false.",
        "True? No, false.", "True. It is false.", "False, this is true.",
        "True. The statement is false.", "True. Not true but false.",
        "False. It rains. So it is true.",
    ],
    "letter": [
        "A. Actually, B is correct.", "A, no, B", "A\nB", "(A) Wait, (B)", "A. B is correct.",
        "A. Option B is correct.", "A. B it is.", "A, so it must be B", "A. It could also be B.",
        "A. I'm going with B", "A. The rule says so. It's B.",
    ],
    "number": [
        "5. Wait, 7.", "5\n7", "5, no, 7", "**5**, sorry, **7**", "1, it's 2", "1, then 2",
        "1. The answer is 2",
    ],
    "place": ["New York, wait, New Jersey", "New York\nNew Jersey", "New York. I mean new jersey."],
    "city": [
        "Paris. London.", "Paris... London", "Paris. Actually, London is the right answer.",
        "Rome. It is Paris.",
    ],
    "spanish": ["No. Sí, es así.", "Sí... no", "No\nSÍ", "Sí, pero no."],
    "polish": ["Łódź, wait, Kraków", "ŁÓDŹ\n**KRAKÓW** 🙂"],
    "russian": ["Да. Нет, это не так.", "Да... или нет"],
    "wet": ["Wet. Actually, not wet.", "Not wet\nWet"],
    "valid": [
        "Valid, it's invalid", "Invalid, then valid.", "Invalid. The argument is valid.",
        "Valid. No, the right verdict is invalid.", "Valid. A premise is false, therefore invalid.",
    ],
}  # fmt: skip

KEPT = {
    ("yes", "No"): [
        "No, because if Anne is in Stockholm then yes she is in Sweden",
        "No, since if Anne is in Stockholm, yes, she is in Sweden.", "No. Yes would be wrong.",
        "No. I would not say that the answer is yes.", "No. If it rained, the answer would be yes.",
        "No. Nor does it follow that she left.", "No, I cannot say that it follows.",
        "No, I cannot answer Yes here.", "No, wait, it is still no.", "No, Anne is in Sweden.",
        "No, that is not true", "No, nah, definitely no.", "No, which makes it a yes in name only",
        "No. It is not yes.", "No. It would be yes only if it rained.",
        "No. When it rains, the answer is yes.", "No. Bob thinks it rains, so the answer is yes.",
        "No, as Anne said yes.",
    ],
    ("yes", "Yes"): [
        "Yes. The answer is not no.", "Yes, no doubt.", "Yes. No doubt about it.",
        "Yes! No other city fits.", "Yes. So no contradiction arises.",
        "Yes. There is actually no other way.", "Yes, actually no premise denies it.",
        "Yes, yes, it does.", "**YES** 🎉", '"yes," she is.',
        "Yes\n\nQuestion: Is it dry?\nAnswer: No", "Yes\nQ: Is it dry?\nA:\nNo", "Yes, sorry.",
        "Yes, the answer is yes.", "Yes, since no fish flies", "Yes, there is no doubt",
        "Yes, that is no surprise.", "Yes, then no one is there.",
        "Yes, which makes it a nice city.", "Yes. It rains, so no other rule is needed.",
        "Yes, but no one knows.", "Yes. Finally, no premise denies it.", "Yes. Oh, no problem.",
        "Yes for now.", "Yes. If it did not rain, then no.",
    ],
    ("capital", "No"): ["No. Actually, no."],
    ("capital", ""): ["YES"],
    ("true", "True"): [
        "True. The conclusion is not false.", "True, it is false that fish fly.",
        "True. Premise 2 says that it is false.", "True. Bob says that fish fly. That is false.",
        "True, so the negation is false.",
    ],
    ("true", "False"): [
        "False, true statements differ", "False, this is true only of birds.",
        "False. The first premise is true.",
        "False, because while premise 1 is true, premise 2 is false.",
    ],
    ("letter", "A"): [
        "A because B is wrong", "A. B is wrong.", "A. B, C and D are wrong.",
        "A. Actually, a better one is hard to find.", "A rather than B", "A (not B)",
        "A. Option B is wrong.", "A, so B is wrong.", "A, then B follows from it.",
        "A. It is a city, and B is a river.",
    ],
    ("letter", "C"): ["C\n\nA. Paris is in France.\nB. London is not."],
    ("number", "5"): ["5, since 7 is too many"],
    ("number", "7"): ["7\n\n1. It rains.\n2. It pours."],
    ("number", "1"): [
        "1, it is 2 - 1", "1. So 2+1 is 3.", "1. It is 2.5 minus 1.5", "1. It is 2% of 50",
    ],
    ("place", "New York"): ["New York. New Jersey is another state.", "NEW YORK!"],
    ("city", "Paris"): [
        "Paris. London, Rome and Bern are not in France.", "Paris, not London",
        "Paris. The capital of England is London.", "Paris. I'd say London is bigger.",
    ],
    ("spanish", "Sí"): ["Sí, no hay duda.", "«Sí»."],
    ("polish", "Łódź"): ["Łódź – nie Kraków"],
    ("russian", "Да"): ["Да, нет сомнений."],
    ("wet", "Not wet"): ["Not wet. Wet things drip."],
    ("valid", "Valid"): ["Valid. It is invalid only if a premise is false."],
    ("valid", "Invalid"): [
        "Invalid. Unlike modus ponens, which is valid.",
        "Invalid. If it rained, it would be valid.",
    ],
}  # fmt: skip
"""Texts by their kind of options and the option that they give, if any."""


def judged(kind, text):
    names = dict.fromkeys(OPTIONS[kind].values())
    options = tuple(
        AnswerOption(name, tuple(form for form, own in OPTIONS[kind].items() if own == name))
        for name in names
    )
    return Choice(options, gold=options[0].name).judge(text)


@pytest.mark.parametrize("kind, text", [(k, text) for k in TAKEN_BACK for text in TAKEN_BACK[k]])
def test_a_reply_that_takes_its_option_back_has_no_answer(kind, text):
    assert judged(kind, text).outcome == "unparsed"


@pytest.mark.parametrize("kind, option, text", [(*k, text) for k in KEPT for text in KEPT[k]])
def test_an_explanation_keeps_the_option_that_begins_it(kind, option, text):
    assert judged(kind, text).answer == option


@pytest.mark.parametrize(
    "piece", ["\n", " wait", "so ", ". and ", "no, ", "Yes\n", "answer to ", "yes if ", ", so no "]
)
def test_long_replies_are_judged_in_linear_time(piece):
    def seconds(count):
        start = time.process_time()
        judged("yes", "Yes if it " + piece * count)
        return time.process_time() - start

    seconds(10)
    assert seconds(20_000) < 2
