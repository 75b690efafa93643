"""One table of marks of thoughts and answers, in any case."""

import re
import time

import pytest

from interp.prompts.answers import AnswerOption, Choice, FreeText, Label
from interp.prompts.marks import (
    MARK,
    MOST_PAIRS,
    begins_thought,
    end_of,
    ends_thought,
    marked_answer,
    unknown_marks,
    without_thought,
)

PAIRS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<Thought>": "</Thought>",
    "<reasoning>": "</reasoning>",
    "<analysis>": "</analysis>",
    "<cot>": "</cot>",
    "<inner_monologue>": "</inner_monologue>",
    "<｜begin▁of▁thinking｜>": "<｜end▁of▁thinking｜>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|thinking_start|>": "<|thinking_end|>",
    "<|channel>": "<channel|>",
    "<unused94>": "<unused95>",
    "<|inner_prefix|>": "<|inner_suffix|>",
}


@pytest.mark.parametrize("begin", PAIRS)
@pytest.mark.parametrize("change", [str, str.upper, str.lower])
def test_a_mark_and_its_end_are_known_in_any_case(begin, change):
    opens, closes = change(begin), change(PAIRS[begin])
    assert MARK.fullmatch(opens) and MARK.fullmatch(closes)
    assert not ends_thought(opens) and ends_thought(closes)
    assert end_of(opens).lower() == closes.lower()
    assert without_thought(f"{opens}\nYes, hm.\n{closes}\n\nNo") == "No"
    assert without_thought(f"Yes, hm.{closes}No") == "No"
    assert without_thought(f"{opens}\nYes, hm.") == ""
    assert begins_thought(f"Q? {opens}") and not begins_thought(f"{opens}Q? {closes}")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (
            "Here are my reasoning steps:\nHm.\n[BEGIN FINAL RESPONSE]\nYes\n[END FINAL RESPONSE]",
            "Yes",
        ),
        ("Here are my reasoning steps:\nYes, at first", ""),
        ("Here is my thought process:\nHm.\nHere is my response: Yes", "Yes"),
        ("<think>A <reasoning>x</reasoning> tag.</think><reasoning>y</reasoning>Yes", "Yes"),
        ("Yes.", "Yes."),
        ("Let us think [again]. Yes", "Let us think [again]. Yes"),
    ],
)
def test_words_and_several_thoughts(text, answer):
    assert without_thought(text) == answer


CHOICE = Choice((AnswerOption("Yes", ("Yes",)), AnswerOption("No", ("No",))), gold="Yes")


JUDGED = {
    "Yes": [
        "<answer>\nYes\n</answer>", "It rains. <final_answer>Yes</final_answer>", "<answer>Yes",
        '<answer id="1">Yes</answer>', r"\[\fbox{Yes}\]", r"It rains, so $\boxed{\text{Yes}}$.",
        "<answer><|begin_of_box|>Yes<|end_of_box|></answer>", r"\[\boxed{Yes}\]",
        "<|START_RESPONSE|>Yes<|END_RESPONSE|>", r"Yes, since \boxed{x} is wet.",
    ],
    "No": [
        "<ANSWER>No</ANSWER>", "<|begin_of_solution|>No.<|end_of_solution|>",
        r"\boxed{\textbf{\text{No}}}",
    ],
    "": [
        r"\boxed{Yes} or \boxed{No}", "<answer>Yes</answer><answer>No</answer>",
        r"Yes, at first sight. \boxed{\text{No}}", "<answer>perhaps</answer>",
    ],
}  # fmt: skip


@pytest.mark.parametrize("answer, text", [(own, text) for own in JUDGED for text in JUDGED[own]])
def test_marked_answers_are_judged(answer, text):
    assert CHOICE.judge(text).answer == answer


def test_marked_answers_of_other_kinds_are_judged():
    assert FreeText(("12",)).judge(r"So \boxed{12}").correct
    assert Label(("wet", "dry"), "wet").judge("<answer>wet</answer>").correct
    assert marked_answer("12") == "12"


def test_marks_that_nobody_knows_are_counted():
    texts = ["<muse>Hm.</muse>Yes"] * 3 + ["Yes"]
    assert unknown_marks(texts) == {"<muse>": 3, "</muse>": 3}
    known = ["<think>Hm", "<answer>Yes</answer>", "Yes<|im_end|>", "Yes</s>"]
    assert unknown_marks(known) == {}
    assert unknown_marks([]) == {}


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("<plan>Hm.</plan>Yes", "<plan>"),
        ("Well. <tool_call n=1>Hm</tool_call> Yes", "<tool_call n=1>"),
        ("【思考】Hm【/思考】Yes", "【思考】"),
        ("【思考】Hm【回答】Yes", "【思考】"),
        ("<|begin_plan|>Hm<|end_plan|>Yes", "<|begin_plan|>"),
        ("[PLAN]Hm[/PLAN]Yes", "[PLAN]"),
        ("<b>Yes</b>, I think", None),
        ("<plan>Hm</plan>", None),
        ("[1] Yes [1] no", None),
    ],
)
def test_a_pair_of_unknown_marks_is_told_however_rare(text, mark):
    assert unknown_marks([text, "Yes", "No", "No"]) == ({mark: 1} if mark else {})


def test_only_some_of_many_pairs_are_told():
    texts = [f"<m{n}>Hm.</m{n}>Yes" for n in range(50)]
    assert len(unknown_marks(texts)) == MOST_PAIRS


def test_long_texts_take_little_time():
    start = time.process_time()
    hard = ("\\boxed{", "<answer>", "<|", "[", "{", " ", "</think", "\\text{", "<a", "<a>", "【a】")
    for piece in hard:
        text = piece * (400_000 // len(piece))
        without_thought(text)
        marked_answer(text)
        unknown_marks([text])
    assert time.process_time() - start < 20
    assert re.compile(MARK.pattern)
