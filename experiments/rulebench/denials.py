"""Tells which of the answers that a text mentions it gives: not those denied, withdrawn or joined.

Every parser finds candidates, such as "true" in "It is not true."; the functions here sort out
those that the words around them turn into something else.
"""

import re
from collections.abc import Callable, Sequence

from interp.extend.prompts import Unanswered

Found = str | Unanswered | None
"""An answer, or the reason why there is none; None if neither has been found yet."""

Value = Callable[[re.Match[str]], str]

_DENIED_BEFORE = re.compile(
    r"""
    (?: \b(?:not|never|neither|nor|no(?:\s+longer)?|cannot|hardly|barely|scarcely|by\s+no\s+means
          |none|nothing|opposite
          |(?:all|none|any|every|any(?:thing|one)|every(?:thing|one))\s+but|far\s+from|rather\s+than
          |instead\s+of|other\s+than|except(?:\s+for)?|apart\s+from|unlike|un-?|non-?
          |(?:false|wrong|incorrect|untrue|impossible|unlikely)\s+(?:that|to\s+say)
          |(?<!no\s)(?<!not\s)doubt(?:s|ed|ing)?
          |(?:rul|exclud|eliminat|reject|discard|den)(?:e|es|y|ies|s|ed|ing)?(?:\s+out)?)
      | n['’]t | [¬~!]
    )
    (?:[\s-]+(?:the|an?|his|her|their|its|my|is|be|being|been|to|of|that|it|this|here|there
        |he|she|they|choose|pick|select|take|go|with|about|in|as|for|by|either
        |option|choice|answer|category|rule|say|saying|said|mean|true|case|considered|called|named
        |equal|equals|necessarily|quite|exactly|just|simply|correct|right|an\s+answer|statement
        |\w+ly|\w+['’]s?))*
    [\s\-]*[("'\[]*\Z
    """,
    re.VERBOSE | re.IGNORECASE,
)
_VERDICT = (
    r"(?:\w+ly\s+)?(?:not\b|wrong|incorrect|false|untrue|invalid|impossible|mistaken|inaccurate|a\s+"
    r"mistake|an\s+error|ruled\s+out|excluded|eliminated|rejected|unlikely|out\s+of\s+the\s+question)"
)
_DENIED_AFTER = re.compile(
    rf"""
    [)\]"']* \s*
    (?: (?:of\s+\w+\s+|to\s+\w+\s+)?
        (?:(?:is|was|would\s+be|must\s+be|can\s+be|should\s+be|seems|looks)\s+{_VERDICT}
          |(?:is|was|does|do|can|could|would|should|must|will)(?:n['’]?t\b|\s+(?:\w+ly\s+)?(?:not|never)\b)
          |cannot\b|can['’]t\b|won['’]t\b)
      | (?:[^.!?\n]*[.!?,;:—–-])?\s*(?:(?:no|but|however|wait|actually|hmm|oh)[,!.]*\s+)*
        (?:that|this|which)(?:\s+(?:is|was|would\s+be)|['’]s)\s+
        (?:\w+ly\s+)?(?:not\s+(?:right|correct|true|it)|wrong|incorrect|false|mistaken|a\s+mistake)\b
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LINKS = (
    r"(?:the|an?|his|her|option|choice|category|rule|answer|either|both|maybe|perhaps|possibly|rather"
    r"|even|also|else)"
)
_OR = re.compile(
    r"[)\]\"'.]*\s*[,(]?\s*(?:or\b|nor\b|and/or\b|/|\||&|∨|(?:vs|versus)\b)", re.IGNORECASE
)
_OR_ALSO = re.compile(rf",?\s*n?or(?:\s+{_LINKS}\b)*\s*[(\[\"']*", re.IGNORECASE)
_JOINS = re.compile(
    r"[)\]\"'.]*\s*[,(]?\s*(?:or|nor|and|and/or|/|\||&|\+|-|–|∨|∧|to|vs\.?|versus|plus"
    r"|as well as|along with|together with)"
    rf"(?:\s+{_LINKS}\b)*\s*[(\[\"']*",
    re.IGNORECASE,
)
_LISTS = re.compile(rf"[)\]\"'.]*\s*[,;](?:\s*{_LINKS}\b)*\s*[(\[\"']*", re.IGNORECASE)
_LIST_ENDS = re.compile(r"[)\]\"'.]*\s*(?:\Z|\n|[.,;!?/)]|(?:or|and)\b)", re.IGNORECASE)


def is_denied(text: str, match: re.Match[str]) -> bool:
    """Whether a text denies or withdraws what it says at this place; "no" is itself a denial."""
    if match[0].lower() == "no":
        return False
    sentence = re.split(r"[.!?;]\s|\n", text[: match.start()])[-1]
    return bool(_DENIED_BEFORE.search(sentence) or _DENIED_AFTER.match(text, match.end()))


def given(text: str, matches: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """The candidates that a text does not deny, such as neither in "not B or C"."""
    left: list[re.Match[str]] = []
    denied: re.Match[str] | None = None
    for match in matches:
        if is_denied(text, match) or (
            denied
            and _DENIED_BEFORE.search(text[: denied.start()])
            and _OR_ALSO.fullmatch(text, denied.end(), match.start())
        ):
            denied = match
        else:
            left.append(match)
    return left


def first_given(text: str, matches: Sequence[re.Match[str]], value: Value) -> Found:
    """The value of the first candidate that a text does not deny; None without candidates.

    Unparsed if another value is joined to it, or if a text denies them all.
    """
    left = given(text, matches)
    if not left:
        return Unanswered.UNPARSED if matches else None
    return Unanswered.UNPARSED if has_alternative(text, left, 0, value) else value(left[0])


def last_given(text: str, matches: Sequence[re.Match[str]], value: Value) -> Found:
    """The value of the last candidate that a text does not deny; unparsed if "or" joins two.

    As in the authors' parsers, the last one in a list counts.
    """
    left = given(text, matches)
    if not left:
        return None
    last = range(len(left))[-2:]
    joined = any(has_alternative(text, left, at, value, lists=False) for at in last)
    return Unanswered.UNPARSED if joined else value(left[-1])


def has_alternative(
    text: str, left: Sequence[re.Match[str]], at: int, value: Value, *, lists: bool = True
) -> bool:
    """Whether "or", a slash or the like joins the candidate `at` a place to another value.

    If `lists`, a comma joins them, too, if nothing but the list follows.
    """
    end = left[at].end()
    for other in left[at + 1 : at + 2]:
        listed = lists and _LISTS.fullmatch(text, end, other.start())
        if _JOINS.fullmatch(text, end, other.start()) or (
            listed and _LIST_ENDS.match(text, other.end())
        ):
            return value(other) != value(left[at])
    return bool(_OR.match(text, end))
