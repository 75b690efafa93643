"""Finds the option that a generated text gives, unless its surroundings change its meaning.

Only quotation marks, opening brackets, markup and list marks may stand before the option. A sign of
negation, the rest of a word, number or formula, a denial, or another option joined to it stand for
another answer than the option alone, so such a text has no answer; nor has one that later takes the
option back (`later_verdicts`).
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

_QUOTES = "\"'`“”„‟‘’‚‛«»‹›「」『』"
_CLOSING = f"{_QUOTES}*_)]}}>$）】〉》"
_SLASH = "/∕⁄／"
_HYPHEN = r"\-‐‑−﹣－"
_DASH = f"{_HYPHEN}‒–—―"
_WORDS = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven"
    "|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
)
_BEFORE = rf"""(?:
    [\s{_QUOTES}*_#:：=¡(\[{{（【〈《]
  | [.,;?…]++(?=\s) | (?:\.{(2,)}+|…)(?!\d)
  | [\-–—•·‣◦▪●+>|](?=\s+[\W_]*[^\W\d_])   # a list mark; "- 5" may be a number below zero
  | <(?=[^<>\n]*>) | \$(?=[^$\n]*\$)
  | [✅✔✓☑👉]
)*?"""
_ATTACHED = re.compile(
    rf"""
    [^\W_] | _[^\W_] | ['’ʼ][^\W\d_]                       # the rest of a word
  | [{_HYPHEN}](?!-) | \.(?=\d|[a-z]) | [@&~∼〜～]\w | [#%‰^+°′″({{]  # C#, A-, A+, P(x)
  | \?                                                    # a question
    """,
    re.VERBOSE,
)
_AUXILIARY = "is|was|are|were|can|could|would|does|do|did|will|should|may|might|must"
_BEHIND = re.compile(
    rf"""
    \s*(?:[{_SLASH}÷×∧∨⊕⊻⇒⇔→↔≠≤≥≡∩∪⊂⊃∖] | <?->|<?=>|&&|\|\||!=|== | <[\s\d])   # a formula
  | (?:[,;]?\s+|\s*(?:\.{{2,}}|[…–—-])\s*)or\b
  | \s+(?:{_AUXILIARY})(?:n['’]?t\b|\s+(?:\w+ly\s+)?(?:not|never)\b)
  | \s+(?:cannot|can['’]t|won['’]t)\b
  | \s+(?:is|was|would\s+be|must\s+be|seems|looks)\s+(?:\w+ly\s+)?
    (?:wrong|incorrect|false|untrue|invalid|impossible|mistaken|inaccurate|ruled\s+out)\b
  | \s+not(?=\s*(?:$|[.,;!?])|\s+(?:really|at\s+all|quite|correct|true|right)\b)
  | (?:\s+|-)(?:hundred|thousand|million|billion|trillion|dozen|per\s?cent|point\s+\w+
            |and\s+an?\s+(?:half|third|quarter)|hal(?:f|ves)|thirds?|quarters?)\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BEHIND_NUMBER = re.compile(
    rf"""
    [.,٫٬:'’·*^]\d | ! | [^\S\n]?[%‰％€£¥°] | [^\S\n]?\$(?!\$) | [^\S\n]+\d
  | \s*[{_DASH}+*×·^<>~〜～]\s*[\d(]
  | \s+(?:to|through|minus|plus|times|over|by|of|in|out\s+of|and|x|divided\s+by)\s+
    (?:\d|(?:{_WORDS})\b)
  | (?:\s+|-)(?:(?:{_WORDS})\b|squared\b|cubed\b|factorial\b)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BEHIND_LETTER = re.compile(r"\s*(?:and|&)\s+[(\"'*]*[A-HJ-Z](?![\w'’])")
_NUMBER = re.compile(rf"(?:\d|\b(?:{_WORDS}))\Z", re.IGNORECASE)
_JOINED = (
    r"(?:,?\s*\b(?:and/or|n?or|and|versus|vs\.?|to|oder|und|ou|et|u|o|y|e|eller|och|или|и)\s+"
    rf"|\s*[{_SLASH}&|\\+]\s*|[.:](?=\S)|\s*(?:或者?|还是|還是|和|または|か))"
)
_LISTED = rf"\s*[,;、，；{_DASH}]\s*"
_LIST_ENDS = rf"(?=[{re.escape(_CLOSING)}.!?]*\s*(?:\Z|\n|[,;、，；/|]|\b(?:or|and)\b))"


def option_at_start(text: str, names: Mapping[str, str]) -> str | None:
    """The option whose form begins a text, in whole words; the longest form wins.

    None if no form begins the text, or if the text changes the option, corrects it, hedges between
    options or declines to answer.

    Args:
        text: the generated text; case matters, but invisible characters do not.
        names: the option of each form.
    """
    text = _visible(text)
    options = {_spaced(form): name for form, name in names.items()}
    begins, joined = _patterns(tuple(options))
    beginning = begins.match(text)
    if beginning is None:
        return None
    form, rest = _spaced(beginning["form"]), _after(beginning, text[beginning.end() :])
    if _goes_on(form, rest):
        return None
    behind = rest.lstrip(_CLOSING)
    other = joined.match(behind)
    if options[_spaced(other["form"])] != options[form] if other else _is_changed(form, behind):
        return None
    from interp.prompts.later_verdicts import is_taken_back  # compiling its patterns takes long

    return None if is_taken_back(options[form], behind, options) else options[form]


_CHANGED = re.compile(
    r"""
    \?                                                      # a question
  | n['’]t\b | \b(?:no|not|nor|never|neither|none|cannot|without|except|unlike|instead|rather)\b
  | \b(?:or|either|if|unless|whether|otherwise|maybe|perhaps|possibly|might|may|could|would|were)\b
  | \b(?:wrong|incorrect|false|untrue|invalid|mistaken|inaccurate|impossible|improbable)\b
  | \b(?:un(?:sure|able|certain|clear|known|likely)|doubt\w*|sorry|wait|actually|guess\w*)\b
  | \b(?:says?|said|claims?|claimed|thinks?|thought|believes?|believed|suppos\w+|assum\w+)\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Words by which a sentence that names an option may mean another answer."""


def only_option_named(text: str, names: Mapping[str, str]) -> str | None:
    """The only option that a text names anywhere, in whole words; None if it names none or several.

    It is also None if the text, apart from the option, denies, doubts, supposes, reports or asks
    anything (`_CHANGED`), since readers would then have to decide what it means. Arguments are as
    for `option_at_start`.
    """
    text = _visible(text)
    forms = {_spaced(form): name for form, name in names.items()}
    named = re.compile(rf"(?<!\w)(?<!\w[{_HYPHEN}'’])(?:{_any_of(forms)})(?!\w)")
    mentions = [(_spaced(match[0]), text[match.end() :]) for match in named.finditer(text)]
    if len({forms[form] for form, _ in mentions}) != 1 or _CHANGED.search(named.sub(" ", text)):
        return None
    for form, rest in mentions:
        if _goes_on(form, rest) or _is_changed(form, rest.lstrip(_CLOSING)):
            return None
    return forms[mentions[0][0]]


def _any_of(forms: Iterable[str]) -> str:
    longest_first = sorted(forms, key=len, reverse=True)
    return "|".join(r"\s+".join(map(re.escape, form.split())) for form in longest_first)


def _visible(text: str) -> str:
    return "".join(
        one for one in text if unicodedata.category(one) != "Cf" and one not in "\ufe0e\ufe0f"
    )


def _spaced(form: str) -> str:
    return " ".join(_visible(form).split())


@lru_cache(maxsize=4096)
def _patterns(forms: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of a beginning, and of another form that is joined to it or listed after it."""
    one = _any_of(forms)
    form = rf"(?x:{_BEFORE})(?P<form>{one})"
    apart = r"(?![^\W_])"
    joined = rf"(?:{_JOINED}|(?={_LISTED}(?x:{_BEFORE})(?:{one}){apart}{_LIST_ENDS}){_LISTED})"
    return re.compile(form), re.compile(f"{joined}{form}{apart}")


def _after(beginning: re.Match[str], rest: str) -> str:
    """The text behind a form, without marks that belong to the form itself, as in "$5$"."""
    rest = rest.removeprefix("\u20e3")  # a digit in a box
    opened = beginning[0].removesuffix(beginning["form"])
    return rest.lstrip(_CLOSING) if rest[:1] in tuple("$_") and rest[0] in opened else rest


def _goes_on(form: str, rest: str) -> bool:
    """Whether the form is only the beginning of a longer word, number or formula."""
    if rest and unicodedata.category(rest[0]).startswith("M"):
        return True
    return bool(_ATTACHED.match(rest) or (_NUMBER.search(form) and _BEHIND_NUMBER.match(rest)))


def _is_changed(form: str, behind: str) -> bool:
    """Whether the text behind the form and its closing marks denies it or makes it a part."""
    patterns = [_BEHIND]
    if _NUMBER.search(form):
        patterns.append(_BEHIND_NUMBER)
    if len(form) == 1 and form.isalpha():
        patterns.append(_BEHIND_LETTER)
    return any(pattern.match(behind) for pattern in patterns)
