"""Finds out whether a reply that begins with one option goes on to another, or takes it back.

The rule: a reply that corrects itself, hedges between options or declines to answer has no answer,
neither the first option nor the last, since readers would differ. These count:

- another option in place of a verdict: it fills a sentence or a line ("Yes", then "No" below), a
  word like "no" begins a sentence ("Yes. No, it does not"), or it is called right;
- another option after words that introduce a verdict ("so", "but", "the answer is") at the
  beginning of a sentence, or after a correction ("wait", "actually", "I mean") anywhere;
- two cases with two options ("Yes if it rains, no otherwise");
- a sentence that declines to answer ("Yes, I cannot answer").

An option within a sentence is part of the explanation: "No, because if so, then yes, it rains",
"Yes. The answer is not no.", "Yes. No doubt.", "A. B is wrong." The next speaker's question ends
the reply.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

_MARKS = r"(?:[^\w¬~∼+&/\\|<=-]|-(?=\s)){0,8}"  # no sign that changes what follows
_START = r"(?:\A|(?<=[.;!…。！\n]))"
_ANSWER = (
    r"(?:(?:the|my)\s+)?(?:(?:final|correct|right|real|actual)\s+)?(?:answer|verdict)"
    r"(?:\s+to\s+[^.,:\n]{1,60}?)?\s*(?:is|should\s+be|must\s+be|:|=)"
)
_LEADS = (
    rf"(?:{_ANSWER}|so|therefore|thus|hence|but|however|and|or|oder|ou|o|eller|или|also|well|no|h+mm*"
    r"|maybe|perhaps|possibly|in\s+(?:fact|conclusion|other\s+words)|to\s+be\s+clear|i\s+think)"
)
_CORRECTION = (
    r"(?:wait(?:\s+a\s+\w+)?|hold\s+on|actually|sorry|apologies|w?h?oops|i\s+meant?|rather"
    r"|correction|on\s+(?:second\s+thoughts?|reflection)|(?:scratch|strike)\s+that|never\s*mind"
    r"|my\s+(?:mistake|bad)|kidding|make\s+(?:that|it)|or\s+(?:maybe|perhaps|possibly)"
    r"|i\s+was\s+(?:wrong|mistaken)|changed\s+my\s+mind|i\s+take\s+(?:that|it)\s+back"
    r"|let\s+me\s+(?:re)?(?:think|consider|check|correct)(?:\s+(?:that|this|it|myself))?)"
)
_FILLERS = (
    rf"(?:{_LEADS}|{_CORRECTION}|i\s+(?:believe|guess)|(?:it|that|this)(?:['’]s|\s+is)"
    r"|(?:it\s+|that\s+)?should\s+be|to)"
)
_INTRODUCED = (
    rf"(?P<introduced>{_START}{_MARKS}(?:{_LEADS}(?!\w){_MARKS}){{1,4}}"
    rf"|(?<!\w){_CORRECTION}(?!\w){_MARKS}(?:{_FILLERS}(?!\w){_MARKS}){{0,4}})"
)

_CLAIMED = re.compile(
    r"""\W{0,4}\s+(?:is|was|seems|looks|would\s+be|must\s+be|fits)\s+(?:(?!not\b|in|n['’]t)\w+\s+){0,2}
    (?:correct|right|true|better|best|valid|answer)(?!\w)""",
    re.VERBOSE | re.IGNORECASE,
)
_OWN_CLAUSE = re.compile(
    r"""(?!\w|['’-]\w|[^\S\n]+[^\w\s]{0,3}
    (?!(?:it|that|this|they|he|she|the|we|you|i|there)(?!\w))\w)""",
    re.VERBOSE | re.IGNORECASE,
)
_OWN_SENTENCE = re.compile(r"[^\w\n]{0,8}?(?:[.!…。！](?=\W|\Z)|\n|\Z)")
_OWN_LINE = re.compile(r"[^\w\n]{0,8}(?:\n|\Z)")
_LIST_MARK = re.compile(r"\w|\d+")
_EXCLAIMED = re.compile(
    "yes|no|true|false|right|wrong|(?:in)?correct|oui|non|ja|nein|s[ií]|sim|não|да|нет",
    re.IGNORECASE,
)
"""Words that are a whole verdict even if the sentence goes on, unlike a name or a letter."""

_TWO_CASES = (
    r"\A\W{0,8}(?:if|when|unless|provided|assuming|in|under)\b[^.!?\n]{1,200}?"
    rf"[,;.]\s*(?:(?:but|and|otherwise|else)(?!\w){_MARKS}){{0,2}}"
)
_CASE = re.compile(
    r"\W{0,4}(?:\s(?:if|when|unless|in|under|otherwise)(?!\w)|[.!\n]|\Z)", re.IGNORECASE
)

_DECLINED = re.compile(
    rf"""{_START}{_MARKS}(?:(?:but|however|though|and|sorry|as\s+an\s+ai[^,.\n]{{0,40}}
        |i(?:['’]m|\s+am)\s+(?:sorry|afraid))(?!\w){_MARKS}){{0,3}}
    (?:i(?:['’]m|\s+am)?\s+(?:cannot|can['’]?t|can\s+not|(?:unable|not\s+able)\s+to|won['’]?t
          |will\s+not|refuse\s+to|decline\s+to)\s+
       (?:(?:answer|help|assist|comply|respond)(?:\s+(?:this|that|the|your|with|you|to)\b[^.!?\n]*)?
         |say|tell|decide|know)
      |i\s+(?:do\s+not|don['’]?t)\s+know | i(?:['’]m|\s+am)\s+(?:not\s+sure|unsure))
    (?=\s*(?:[.,;!?\n]|\Z))""",
    re.VERBOSE | re.IGNORECASE,
)
_NEXT_SPEAKER = re.compile(r"\n[^\S\n]*(?:Q|Question|User|Human)\b[^\n:]{0,20}:", re.IGNORECASE)


def is_taken_back(option: str, behind: str, options: Mapping[str, str]) -> bool:
    """Whether the text behind an option gives another one as its verdict, or no verdict.

    Args:
        option: the option that begins the reply.
        behind: the rest of the reply, without the marks that close the option.
        options: the option of each form; longer forms are found regardless of case.
    """
    if following := _NEXT_SPEAKER.search(behind):
        behind = behind[: following.start()]
    if _DECLINED.search(behind):
        return True
    verdicts, cases = _patterns(tuple(options.items()))
    named = {form.casefold(): name for form, name in options.items()} | dict(options)
    for found in [*verdicts.finditer(behind), *cases.finditer(behind)]:
        form = " ".join(found["form"].split())
        other = named.get(form, named.get(form.casefold(), option))
        after = behind[found.end() :]
        ends = _CASE if found.re is cases else _ending(form, introduced=bool(found["introduced"]))
        if other != option and (ends.match(after) or _CLAIMED.match(after)):
            return True
    return False


def _ending(form: str, *, introduced: bool) -> re.Pattern[str]:
    """What stands behind a form that is a verdict."""
    if introduced or _EXCLAIMED.fullmatch(form):
        return _OWN_CLAUSE
    return _OWN_LINE if _LIST_MARK.fullmatch(form) else _OWN_SENTENCE


@lru_cache(maxsize=4096)
def _patterns(options: tuple[tuple[str, str], ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of a form in place of a verdict, and of a form for a second case.

    Case counts for single characters ("a" is an article) and if nothing else tells options apart.
    """
    named: dict[str, set[str]] = {}
    for form, name in options:
        named.setdefault(form.casefold(), set()).add(name)
    written = []
    for form in sorted(dict(options), key=len, reverse=True):
        words = r"\s+".join(map(re.escape, form.split()))
        exact = len(form) == 1 or len(named[form.casefold()]) > 1
        written.append(rf"(?-i:{words})" if exact else words)
    form = rf"(?P<form>{'|'.join(written)})(?!\w)"
    verdict = rf"(?:{_INTRODUCED}|{_START}{_MARKS}){form}"
    return re.compile(verdict, re.IGNORECASE), re.compile(_TWO_CASES + form, re.IGNORECASE)
