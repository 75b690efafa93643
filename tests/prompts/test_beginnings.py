"""What may stand beside an option in a text without changing its meaning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.beginnings import only_option_named, option_at_start

KINDS = {
    "number": ["5", "7", "10", "-1", "50"],
    "truth": ["Yes", "No", "True", "False"],
    "letter": ["A", "B", "C", "D"],
    "formula": ["P", "Q", "not P"],
    "word": ["twenty", "one", "Not wet", "Wet"],
}


def judged(kind, text):
    return option_at_start(text, {form: form for form in KINDS[kind]})


MINUS = "-‐‑‒–—―−﹣－➖⁻˗"
NEGATIONS = ["¬", "!", "~", "∼", "not ", "non-", "Not ", "~~", "❌ ", "[ ] ", "☐ ", "≠"]


@pytest.mark.parametrize("sign", [*MINUS, *(f"{sign} " for sign in MINUS), "+", "±", "~", "√", "$"])
def test_a_sign_before_a_number_is_no_part_of_the_number_alone(sign):
    assert judged("number", f"{sign}5") is None
    assert judged("number", f"{sign}**5**") is None


@pytest.mark.parametrize("negation", NEGATIONS)
@pytest.mark.parametrize("kind, form", [("truth", "True"), ("letter", "A"), ("formula", "Q")])
def test_a_negation_before_an_option_is_not_skipped(negation, kind, form):
    assert judged(kind, negation + form) is None


GOES_ON = [
    ".5", ",5", ",000", "'000", " 000", "%", " %", " percent", "/7", "⁄7", " / 7", "-7", "–7",
    " - 7", " to 7", " or 7", " and 7", "½", "²", "^2", "!", ":30", " + 2", "*2", " × 2", "th",
    " million", " and a half", " out of 7", "e3", "°", "€", " €", "?", "~7", " 1/2", "‰", ", 7",
    "\u0338", "\u0305", "; 7", " minus two", " squared", "**/**7**", ") or (7)", "==",
]  # fmt: skip


@pytest.mark.parametrize("rest", GOES_ON)
def test_the_rest_of_a_number_is_read(rest):
    assert judged("number", f"5{rest}") is None


JOINS = [
    "/", " / ", " or ", " and ", " | ", " & ", "|", "+", ".", ":", ",", ", or ", " vs ",
    " nor ", "-", " – ", "\\", " and/or ", " oder ", " ou ", "** / **", '" or "', ") or (", "或",
    "；",
]  # fmt: skip


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("one, other", [("Yes", "No"), ("False", "True")])
def test_two_options_that_are_joined_are_no_answer(join, one, other):
    assert judged("truth", one + join + other) is None
    assert judged("truth", f"({one}){join}({other})") is None


CHANGED = {
    "truth": ["Yes or maybe", "Yes?", "No-one", "Yesterday", "Nope", "Yes is not right",
        "Yes isn't"],
    "letter": ["C++", "C#", "A+", "A-", "A's", "A^c", "A(x)", "B is incorrect", "A and E",
        "A, B, and C"],
    "formula": ["P → Q", "P ∧ Q", "P -> Q", "Q || P", "P or not P", "Q & P", "-P"],
    "word": ["twenty-one", "twenty one", "one hundred", "one-third", "one million",
        "one point two"],
}  # fmt: skip


@pytest.mark.parametrize("kind, text", [(k, text) for k in CHANGED for text in CHANGED[k]])
def test_what_stands_behind_an_option_can_change_it(kind, text):
    assert judged(kind, text) is None


AROUND = [
    ("(", ")"), ('"', '"'), ("**", "**"), ("*", "*"), ("`", "`"), ("“", "”"), ("«", "»."),
    ("[", "]"), ("<", ">"), ("_", "_"), ("__", "__"), ("'", "'"), ("$", "$"), ("{", "}"),
    ("\ufeff", ""), ("\u200e", "\u200f"), ("\n\n", "\n"), (": ", "."), ("... ", "..."),
    ("> ", ""), ("- ", ""), ("• ", ";"), ("# ", ""), ("✅ ", ""), ("", "</s>"),
    ("", " (since it is so)"), ("", ", because it is so"), ("", " - because"), ("", "—because"),
    ("", ": it is"),
]  # fmt: skip


@pytest.mark.parametrize("before, after", AROUND)
def test_marks_and_reasons_around_an_option_are_skipped(before, after):
    assert judged("truth", f"{before}Yes{after}") == "Yes"
    if before not in ("> ", "- ", "• "):  # "- 5" may be a number below zero
        assert judged("number", f"{before}5{after}") == "5"


ORDINARY = {
    ("number", "5"): ["5 apples", "5, since 7 is too many"],
    ("number", "50"): ["50."],
    ("number", "-1"): ["-1"],
    ("truth", "Yes"): ["Yes, no doubt", "Yes and it rains"],
    ("letter", "A"): ["A) Paris", "A and I think so", "A because B is wrong"],
    ("formula", "not P"): ["not  P."],
    ("word", "Not wet"): ["Not\u00a0wet"],
}


@pytest.mark.parametrize("kind, form, text", [(*k, text) for k in ORDINARY for text in ORDINARY[k]])
def test_an_option_is_found_in_ordinary_answers(kind, form, text):
    assert judged(kind, text) == form


@pytest.mark.parametrize(
    "form", ["C++", "n/a", "1/2", "-1", "5%", "C#", "Yes!", "A-", "1.5", "10,000"]
)
def test_signs_of_an_option_are_its_own(form):
    names = {form: "signs", "C": "plain", "n": "plain", "1": "plain", "5": "plain", "A": "plain"}
    assert option_at_start(f"**{form}**, I think", names) == "signs"


@given(st.text(".-*_$<>?, \nYesNo/5¬", max_size=300))
def test_any_text_is_judged_in_time(text):
    assert judged("truth", text) in (None, *KINDS["truth"])


STATES = {"New York": "NY", "NYC": "NY", "New Jersey": "NJ", "Texas": "TX"}
FOLLOWS = {form: form for form in ("It follows", "It does not follow", "It cannot be determined")}


NAMED = {
    "NJ": ["Anna lives in New Jersey.", "The state is **New\nJersey**"],
    "NY": ["She is a NYC girl: New York!"],
    None: [
        "Anna lives in New Jersey. Ben lives in New York.", "She is New York-born.",
        "Anna lives in New Jersey or in Delaware.", "Anna does not live in New Jersey.", "",
        "Anna doesn't live in New Jersey.", "In which state? New Jersey", "She is a New Yorker.",
        "If she moved, New Jersey.", "They say she lives in New Jersey.", "New Jersey is wrong.",
        "It might be New Jersey.", "She likes non-New York things.", "She lives in new jersey.",
        "She lives in New Delhi.",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name, text", [(name, text) for name in NAMED for text in NAMED[name]])
def test_a_text_that_names_a_single_option(name, text):
    assert only_option_named(text, STATES) == name


def test_words_of_an_option_are_its_own():
    assert only_option_named("I say: It does not follow.", FOLLOWS) is None  # it reports
    assert only_option_named("Thus: It does not follow.", FOLLOWS) == "It does not follow"
    assert only_option_named("Thus: It cannot be determined", FOLLOWS) == "It cannot be determined"


@given(st.text(".-*_$<>?, \nNewYorkJersey'", max_size=300))
def test_any_text_that_names_an_option_has_exactly_its_form(text):
    found = only_option_named(text, STATES)
    spaced = " ".join(text.split())
    assert found is None or sum(form in spaced for form in STATES) == 1


def test_only_options_that_begin_alike_may_be_named_later():
    def choice(*names):
        return Choice(tuple(AnswerOption(name, (name,)) for name in names), names[0])

    said = "Anna lives in New Jersey."
    assert choice("New York", "New Jersey", "Texas").judge(said).answer == "New Jersey"
    assert choice("New York", "New Jersey").judge("New York. Not New Jersey.").answer == "New York"
    assert choice("New Jersey", "Texas").judge(said).answer == ""
    assert choice("Yes", "No").judge("I say Yes").answer == ""
