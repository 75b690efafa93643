"""Reads a generated text: its answer, its refusal, or the rule that it applies.

Every parser looks at the words after the last "Answer:" or "the answer is", then at the beginning
of the text, then at the whole text. Two answers joined by "or" do not count, nor does an answer
that a truncated text merely mentions, or that the text denies, withdraws or follows with another
one as its verdict (`interp.prompts.later_verdicts`). A text that declines to
answer is a refusal, unless it also gives an answer. If the model invents another question, the text
from there on is ignored. The authors' parsers use the last (CLUTRR, SALAD) or first (DEER) words
that look like an answer.

Failures are those in Section 4.6 of the paper, plus a third class: a text that names no rule. The
authors' parser counts such a text as a wrong application of the first rule.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from interp.extend.prompts import Unanswered, is_taken_back
from interp_experiments.rulebench.denials import Found, Value


@dataclass(frozen=True)
class Ways:
    """Functions that find the answer to a kind of question in different places of a text."""

    stated: Callable[[str], Found]
    """Behind a marker, such as "Answer:"."""
    loose: Callable[[str], Found]
    """Anywhere in the text, if the model has not refused."""
    opening: Callable[[str], Found] = lambda text: None
    """At the beginning of a text without a marker."""
    declared: Callable[[str], Found] = lambda text: None
    """Anywhere in the text, if worded unambiguously."""
    named: Callable[[str], Iterable[re.Match[str]]] = re.compile(r"(?!)").finditer
    """All places where a text names an answer; by default, no second one is searched for."""
    value: Value = re.Match.group


def read(text: str, ways: Ways) -> str | Unanswered:
    """The answer in a text, or the reason why it has none."""
    text = plain(text)
    markers = list(_MARKER.finditer(text))
    last = text[markers[-1].end() :] if markers else ""
    if markers:
        answer = ways.stated(_SENTENCE_END.split(last, maxsplit=1)[0])
        withdrawn = _WITHDRAWN.search(last)
        # "No, that is not true" withdraws nothing.
        if isinstance(answer, str) and withdrawn and (answer != "false" or withdrawn["turn"]):
            answer = Unanswered.UNPARSED
    else:
        answer = ways.opening(text)
    if isinstance(answer, str) and _goes_on_to_another(answer, last if markers else text, ways):
        answer = Unanswered.UNPARSED
    if answer is None:
        answer = ways.declared(text)
    if answer is None and _REFUSAL.search(text):
        return Unanswered.REFUSED
    if answer is None and (_CUT_OFF.search(text) or (markers and not last)):
        return Unanswered.UNPARSED
    return answer or ways.loose(text) or Unanswered.UNPARSED


def _goes_on_to_another(answer: str, text: str, ways: Ways) -> bool:
    """Whether the text asks about an answer where it first names it, or then gives another one."""
    places = list(ways.named(text))
    mentions = [place for place in places if ways.value(place) == answer]
    forms = {place[0]: ways.value(place) for place in places}
    forms |= {
        f"{one} {form}": forms[form] for form in forms for one in ("the", "a", "an", "his", "her")
    }
    behind = text[mentions[0].end() :] if mentions else ""
    return behind.startswith("?") or is_taken_back(answer, behind, forms)


def plain(text: str) -> str:
    """A text up to the first turn that the model invents, without markup and quotation marks."""
    reply = _NEXT_TURN.split(text, maxsplit=1)[0].replace("’", "'")
    reply = re.sub(r"(?<=\d)[ \t]*\*[ \t]*(?=\d)", " × ", reply)
    return re.sub(r"[ \t]+", " ", re.sub(r"[*_`\[\]\"“”]", "", reply)).strip()


def one_of(answers: Sequence[str]) -> Found:
    """The answer, if all answers found agree; unparsed if they differ, None if there are none."""
    different = set(answers)
    if len(different) > 1:
        return Unanswered.UNPARSED
    return answers[0] if answers else None


_NEXT_TURN = re.compile(r"\n\s*(?:questions?|rules|user|human|context|story)\s*:", re.IGNORECASE)
_MARKER = re.compile(
    r"\b(?:answer|option|choice)\s*(?:(?:is|would be|must be|should be)\b\s*)?[:=]\s*"
    r"|\b(?:answer|option|choice) (?:is|would be|must be|should be)\b:?\s*"
    r"|(?:答案|罪名)\s*(?:应该|应当)?[是为]?\s*[:：]?\s*(?=\S)",
    re.IGNORECASE,
)
_CUT_OFF = re.compile(
    r"\b(?:is|are|the|an?|and|so|his|her|has|therefore|because|which)[ .]*$"
    r"|\b(?:be|or|nor|not|that|if|then|but|whether|when|while|since)$",
    re.IGNORECASE,
)
_WITHDRAWN = re.compile(
    r"\A[^.!?\n]*[.!?;,\n]\s*(?P<turn>(?:no|but|however|wait|actually|hmm|oh)[,!.]*\s+)*"
    r"(?:that|this|which)(?:\s+(?:is|was|would be)|'s)\s+"
    r"(?:\w+ly\s+)?(?:not\s+(?:right|correct|true)|wrong|incorrect|false|mistaken|a\s+mistake)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"\n|[.!?](?=\s|$)|。")
_REFUSAL = re.compile(
    r"\bI(?:'m| am) (?:very |truly |so )?(?:sorry|unable|not able|afraid)\b|\bsorry,"
    r"|\b(?:I|we) (?:cannot|can't|can not|could not|couldn't|won't|will not|do not|don't) (?:\w+ )?"
    r"(?:answer|determine|tell|say|know|help|assist|provide|conclude|infer|comply|decide|judge"
    r"|classify|calculate|compute|identify|continue|fulfill|engage)\b"
    r"|\b(?:cannot|can't|can not|could not) be "
    r"(?:determined|answered|inferred|concluded|established|known)\b"
    r"|\bnot (?:\w+ )?enough information\b|\binsufficient information\b"
    r"|\b(?:not possible|impossible) to (?:determine|tell|say|answer|know)\b|\bas an AI\b"
    r"|\bno way to (?:determine|tell|know)\b|抱歉|对不起|(?:无法|不能)(?:判断|确定|回答)",
    re.IGNORECASE,
)


_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"),
    "tenth",
)
_CARDINALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_PLACES = {
    word: place for words in (_ORDINALS, _CARDINALS) for place, word in enumerate(words, start=1)
}

_NAMED = re.compile(
    rf"\b(?P<before>(?:based on|by|using|use|according to|applying|apply|following|follow|under"
    rf"|from|is) (?:the )?)?"
    rf"(?:(?P<ordinal>{'|'.join(_ORDINALS)}|\d+(?:st|nd|rd|th)) rule"
    rf"|rule ?(?:number |no\. ?|id:? ?|#)?(?P<cardinal>\d+|{'|'.join(_CARDINALS)}))\b"
    r"(?P<denied>,? (?:does not|doesn't|do not|cannot|can not|can't|is not|isn't|fails))?"
    r"(?P<after> (?:fits|applies|matches|holds|can be applied|can be used|is the one))?",
    re.IGNORECASE,
)
_APPLIED_ID = re.compile(r"applied ?rule(?: ?id)?:? ?#?(\d+)", re.IGNORECASE)


def named_rule(text: str) -> int | None:
    """The place of the rule that a text applies, from 1; None if that is unclear.

    It is the first that, by the text, fits or was applied, or the only one that it does not reject.
    """
    text = plain(text)
    if id_ := _APPLIED_ID.search(text):
        return int(id_[1])
    mentions = [match for match in _NAMED.finditer(text) if not match["denied"]]
    applied = [match for match in mentions if match["before"] or match["after"]]
    places = [_place(match) for match in applied[:1] or mentions]
    return places[0] if len(set(places)) == 1 else None


def _place(match: re.Match[str]) -> int:
    word = (match["ordinal"] or match["cardinal"]).lower()
    return _PLACES.get(word) or int(re.sub(r"\D", "", word))
