"""Finds out whether a reply that begins with one option goes on to another, or takes it back.

The rule: a reply that corrects itself, hedges between options or declines to answer has no answer,
neither the first option nor the last, since readers would differ. These count:

- another option in place of a verdict: it fills a sentence or a line ("Yes", then "No" below), a
  word like "no" begins a sentence ("Yes. No, it does not"), or it is called right;
- another option after words that introduce a verdict ("so", "then", "it is", "I'd say", "the
  answer is") at the beginning of a sentence, after a correction ("wait", "actually", "I mean")
  anywhere, or at the end of an explanation ("it rains, so no") that neither supposes something nor
  reports what somebody says;
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
_START = r"(?:\A|(?<=[.;!…。！\n])(?!(?<=\.)\d))"
_MAY_BE = r"(?:should|must|would|could|may|might|can|has\s+to)\s+(?:also\s+)?be"
_BE = rf"(?:is|was|are|seems|looks|{_MAY_BE})"
_ADVERB = (
    r"(?:(?:actual|clear|definite|certain|probab|possib|like|obvious|sure|real|simp|final|eventual"
    r"|ultimate|alternative|consequent|technical|logical|apparent|evident|undoubted|absolute|tru"
    r"|according|current|correct)ly|therefore|thus|hence|instead|indeed|now|then|still|also|again"
    r"|rather|maybe|perhaps|of\s+course|after\s+all|in\s+(?:fact|the\s+end|short|conclusion|other"
    r"\s+words)|on\s+balance|all\s+in\s+all|to\s+(?:be\s+(?:clear|precise|exact|sure)|conclude|summari[sz]e|sum\s+up)|overall)"
)
_COPULA = rf"\s*(?:\s{_BE}(?:\s+{_ADVERB})?|:|=)"
_ANSWER = (
    r"(?:(?:the|my)\s+)?(?:(?:final|correct|right|real|actual|true|best|new|revised|updated)\s+)*"
    rf"(?:answer|verdict|choice|option)(?:\s+to\s+[^.,:\n]{{1,60}}?)?(?:{_COPULA})?"
)
_I_SAY = (
    r"(?:i(?:['’](?:d|ll|m)|\s+(?:would|will|am|have\s+to))?\s+(?:(?:now|also|rather|still)\s+)?"
    r"(?:say|think|believe|guess|suppose|choose|pick|select|answer|conclude|go(?:ing)?\s+(?:with|for)"
    r"|lean(?:ing)?(?:\s+towards?)?|change\s+my\s+(?:answer|mind)\s+to))"
)
_HENCE = (
    r"(?:so|therefore|thus|hence|but|yet|then|however|meaning"
    r"|(?:which|that)\s+(?:means|makes\s+(?:it|that|this))(?:\s+an?)?)"
)
_LEADS = (
    rf"(?:{_ANSWER}|the\s+(?:statement|claim|conclusion|argument){_COPULA}|{_ADVERB}|{_HENCE}|{_I_SAY}"
    rf"|it\s+{_BE}|it['’]s|{_MAY_BE}|is\s+(?:it|that)|not\s+\w+,?\s+but"
    r"|and|or|oder|ou|o|eller|или|aber|dann|mais|puis|pero|entonces|luego|но|though|although|well|no"
    r"|h+mm*|u+[hm]+|e+r+m*|oh|ah|ok(?:ay)?|i\.e|revised|edit|first|later)"
)
_CORRECTION = (
    r"(?:nope|nah|wait(?:\s+a\s+\w+)?|hold\s+on|actually|sorry|apologies|w?h?oops|i\s+meant?|rather"
    r"|correction|on\s+(?:second\s+thoughts?|reflection)|(?:scratch|strike)\s+that|never\s*mind"
    r"|my\s+(?:mistake|bad)|kidding|make\s+(?:that|it)|or\s+(?:maybe|perhaps|possibly)"
    r"|i\s+was\s+(?:wrong|mistaken)|changed\s+my\s+mind|i\s+take\s+(?:that|it)\s+back"
    r"|let\s+me\s+(?:re)?(?:think|consider|check|correct)(?:\s+(?:that|this|it|myself))?)"
)
_THIS = rf"th(?:at|is)(?:['’]s|\s+{_BE})"
_FILLERS = rf"(?:{_LEADS}|{_CORRECTION}|{_THIS}|to)"
_CLAUSE = r"(?<=[,;:–—])\s*"
_INTRODUCED = (
    rf"(?P<introduced>(?:{_START}{_MARKS}{_LEADS}|\A{_MARKS}{_THIS})(?!\w){_MARKS}"
    rf"(?:{_LEADS}(?!\w){_MARKS}){{0,3}}"
    rf"|(?<!\w){_CORRECTION}(?!\w){_MARKS}(?:{_FILLERS}(?!\w){_MARKS}){{0,4}}"
    rf"|(?P<concluded>{_CLAUSE}{_HENCE}(?!\w){_MARKS}(?:{_LEADS}(?!\w){_MARKS}){{0,3}}"
    rf"|(?:{_CLAUSE}|(?<!\w)(?:{_HENCE}|and){_MARKS}(?:{_ADVERB}\s+)?){_ANSWER}(?!\w){_MARKS}))"
)
_SUPPOSED = re.compile(
    r"\b(?:if|when(?:ever)?|unless|whether|suppos\w+|assum\w+|provided|imagine|otherwise|were|would"
    r"|could|might|may|says|said|thinks|thought|claims|claimed|believes|argues)\b[^.!?…\n]*\Z",
    re.IGNORECASE,
)

_CLAIMED = re.compile(
    r"""\W{0,4}\s+(?:is|was|seems|looks|would\s+be|must\s+be|fits)\s+(?:(?!not\b|in|n['’]t)\w+\s+){0,2}
    (?:correct|right|true|better|best|valid|answer)(?!\w)
    |\W{0,4}\s+it\s+is(?=\W*(?:\Z|[.!\n]))""",
    re.VERBOSE | re.IGNORECASE,
)
_OWN_CLAUSE = re.compile(
    r"""(?!\w|['’-]\w|[.,:]\d|[^\S\n]*(?:[%^]|[-+×÷*/=<>≤≥]+[^\S\n]*\d)|[^\S\n]+[^\w\s]{0,3}
    (?!(?:it|this|they|he|she|the|we|you|i|there|because|since|as|after\s+all|in\s+the\s+end|but
    |and|instead|here)(?!\w))\w)""",
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
    r"\A\W{0,8}(?:if|when|unless|provided|assuming|in|under|for|at)\b[^.!?\n]{1,200}?"
    rf"[,;.]\s*(?:(?:but|and|otherwise|else)(?!\w){_MARKS}){{0,2}}"
)
_CASE = re.compile(
    r"\W{0,4}(?:\s(?:if|when|unless|in|under|for|at|otherwise)(?!\w)|[.!\n]|\Z)", re.IGNORECASE
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
    if not _any_form(tuple(options)).search(behind):
        return False
    verdicts, cases = _patterns(tuple(options.items()))
    named = {form.casefold(): name for form, name in options.items()} | dict(options)
    for match in [*verdicts.finditer(behind), *cases.finditer(behind)]:
        form = " ".join(match["form"].split())
        other = named.get(form, named.get(form.casefold(), option))
        after = behind[match.end() :]
        ends = _CASE if match.re is cases else _ending(form, introduced=bool(match["introduced"]))
        if other == option or not (ends.match(after) or _CLAIMED.match(after)):
            continue
        concluded = match.re is verdicts and match["concluded"] is not None
        if not (concluded and _SUPPOSED.search(behind, max(0, match.start() - 300), match.start())):
            return True
    return False


def _ending(form: str, *, introduced: bool) -> re.Pattern[str]:
    """What stands behind a form that is a verdict."""
    if introduced or _EXCLAIMED.fullmatch(form):
        return _OWN_CLAUSE
    return _OWN_LINE if _LIST_MARK.fullmatch(form) else _OWN_SENTENCE


@lru_cache(maxsize=4096)
def _any_form(forms: tuple[str, ...]) -> re.Pattern[str]:
    """Any form in whole words. Most replies name no other: they need no slow `_patterns`."""
    anywhere = "|".join(rf"(?:(?<!\w)|(?=\W)){_words(form)}(?!\w)" for form in forms)
    return re.compile(anywhere, re.IGNORECASE)


def _words(form: str) -> str:
    return r"\s+".join(map(re.escape, form.split()))


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
        words = _words(form)
        exact = len(form) == 1 or len(named[form.casefold()]) > 1
        written.append(rf"(?-i:{words})" if exact else words)
    form = rf"(?P<form>{'|'.join(written)})(?!\w)"
    verdict = rf"(?:{_INTRODUCED}|{_START}{_MARKS}){form}"
    return re.compile(verdict, re.IGNORECASE), re.compile(_TWO_CASES + form, re.IGNORECASE)
