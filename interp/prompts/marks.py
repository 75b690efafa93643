"""The marks around thoughts and answers, as models and the tools that run them write them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

MARK = re.compile(
    r"[<\[◁][|｜▁/\w:]{0,40}(?:think|thought|channel)[|｜▁\w]{0,40}[>\]▷]"
    r"|<[|/\w:]{0,40}(?:reasoning|rationale|analysis|scratchpad|monologue|\bcot\b)[|\w]{0,40}>"
    r"|<unused9[45]>|<\|inner_(?:prefix|suffix)\|>"
    r"|\[BEGIN FINAL RESPONSE\]",
    re.IGNORECASE,
)
"""Marks that begin or end a thought: <think>, [THINK], <|START_THINKING|>, <|channel|> ...

Their length is limited, since a search without a limit can take minutes in a long word.
"""

_ENDS = {
    "<|channel>": "<channel|>",
    "<unused94>": "<unused95>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "": "[begin final response]",
}
"""Ends of thoughts, by what begins them, where they are not told by a slash or the word "end"."""

_START = re.compile(r"(?<![a-z])(?:start|begin)(?![a-z])", re.IGNORECASE)
_END = re.compile(r"/|(?<![a-z])end(?![a-z])", re.IGNORECASE)

_WORDS = re.compile(
    r"Here(?: is|['’]s| are) my (?:thought process|reasoning steps):", re.IGNORECASE
)
"""Words that begin a thought without a mark (Granite, Apriel)."""

_FINAL = re.compile(
    r"<\|channel\|>final *(?:<\|constrain\|>\w{1,40})?<\|message\|>"
    r"|\Aanalysis(?s:.)*?assistantfinal"
    r"|\AHere(?: is|['’]s) my thought process:(?s:.)*?Here(?: is|['’]s) my response:"
)
"""What stands before the answer in channels (gpt-oss), as written and without special tokens, and
in words (Granite)."""

_CLOSED = re.compile(r"\s?(?:<\|(?:return|end)\|>|\[END FINAL RESPONSE\](?:\s?<\|end\|>)?)\Z")

_TAGGED = re.compile(
    r"<(?:\|(?:begin_of_|start_(?:of_)?))?(?P<word>(?:final_)?answer|response|output|solution"
    r"|conclusion|box)(?: [^<>]{0,80})?\|?>"
    r"(?P<answer>.*?)(?:</(?P=word)>|<\|end_(?:of_)?(?P=word)\|>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_BOXED = re.compile(
    r"\\f?box(?:ed)?\s{0,3}\{(?P<answer>(?:[^{}]|\{(?:[^{}]|\{[^{}]{0,200}\}){0,200}\}){0,400})\}"
)
_TYPEFACE = re.compile(r"\\(?:text\w{0,9}|math\w{0,9}|mbox|operatorname)\s{0,3}\{([^{}]*)\}")
"""LaTeX around the words of an answer, such as \\text{Yes}."""


_ANY = re.compile(
    r"<[|｜][^<>|｜\s]{1,40}[|｜]?>|</?[a-z][\w:.-]{0,40}>|\[/?[A-Z]{2}[A-Z_ ]{0,40}\]"
    r"|[◁◀]/?\w{1,40}[▷▶]",
    re.IGNORECASE,
)
"""What looks like a mark."""

_PAIRED = re.compile(
    r"[<\[{«⟨【〔◁◀][|｜]?(?P<end>/|end_(?:of_)?)?(?:(?:start|begin)_(?:of_)?)?"
    r"(?P<word>[^\W\d][\w.:-]{0,40})(?: [^<>\[\]{}\n]{0,80})?[|｜]?[>\]}»⟩】〕▷▶]",
    re.IGNORECASE,
)
_PLAIN = re.compile("a|br?|code|div|em|h[1-6]|i|li|ol|p(re)?|span|strong|su[bp]|ul?")
"""What looks like one of a pair of marks, and words of pairs that only format a text."""

MOST_PAIRS = 5
"""Number of different pairs of unknown marks that are told."""

_ENDED = re.compile(r"(?:<\|?[^<>\s]{1,40}>|\s){1,20}\Z")


def ends_thought(mark: str) -> bool:
    """Whether a mark ends a thought: </think>, [/THINK], <|end_of_thought|>, <channel|>."""
    return mark.lower() in _ENDS.values() or _END.search(mark) is not None


def begins_thought(text: str) -> bool:
    """Whether a text ends with a mark that begins a thought, as some templates write it."""
    last = list(MARK.finditer(text))[-1:]
    return any(mark.end() == len(text) and not ends_thought(mark[0]) for mark in last)


def end_of(begin: str) -> str:
    """The mark that ends what another begins; empty for the name of a channel."""
    if end := _ENDS.get(begin.lower()):
        return end
    if "channel" in begin.lower():
        return ""
    turned = _START.sub(lambda match: "END" if match[0].isupper() else "end", begin)
    return turned if turned != begin else f"{begin[0]}/{begin[1:]}"


def answer_start(text: str) -> int | None:
    """Where the answer begins in a text without white space around it.

    It is 0 if no mark tells of a thought, and None if a thought begins but does not end. For texts
    of models whose own marks are not known (`models.thinking` finds those).
    """
    if final := _FINAL.search(text):
        return final.end()
    first = MARK.match(text)
    begun = first is not None and not ends_thought(first[0])
    ends = [mark for mark in MARK.finditer(text) if ends_thought(mark[0])]
    expected = end_of(first[0]).lower() if first and begun else ""
    end = next((mark for mark in ends if mark[0].lower() == expected), ends[0] if ends else None)
    if end is not None:
        return end.end()
    return None if begun or _WORDS.match(text) else 0


def without_thought(text: str) -> str:
    """The text after its thoughts; empty if a thought begins but does not end."""
    text = text.strip()
    while start := answer_start(text):
        text = text[start:].strip()
        if not MARK.match(text):
            break
    return "" if start is None else _CLOSED.sub("", text).strip()


def marked_answer(text: str) -> str:
    r"""What a text marks as its answer (<answer>Yes</answer>, \boxed{\text{Yes}}).

    It is the text itself if this marks no answer, or several that differ.
    """
    for marks in (_TAGGED, _TAGGED, _BOXED):  # such as a box within an answer
        # Without typeface, twice, and white space around it.
        answers = {
            _TYPEFACE.sub(r"\1", _TYPEFACE.sub(r"\1", mark["answer"])).strip()
            for mark in marks.finditer(text)
        }
        if len(answers) == 1:
            text = answers.pop()
    return text


def unknown_marks(texts: Sequence[str]) -> dict[str, int]:
    """The marks that mark no answer, and in how many texts they are.

    They are in at least half of the texts, or begin a pair of marks before further text. A mark
    that begins a thought at the start of a text is known, and marks at its end are those of a turn.
    """
    counts: Counter[str] = Counter()
    paired: dict[str, None] = {}
    for text in map(str.strip, texts):
        begun = MARK.match(text)
        inner = marked_answer(_ENDED.sub("", text[begun.end() if begun else 0 :]))
        pairs = dict.fromkeys(_pairs(inner))
        counts.update(dict.fromkeys([*_ANY.findall(inner), *pairs], 1))
        paired |= pairs
    few = [*paired][:MOST_PAIRS]
    return {mark: count for mark, count in counts.items() if 2 * count >= len(texts) or mark in few}


def _pairs(text: str) -> Iterator[str]:
    """The first mark of each pair that text follows: <plan> ... </plan>, 【思考】 ... 【回答】."""
    begun: dict[str, str] = {}
    for mark in _PAIRED.finditer(text):
        word = mark["word"].lower()
        kind = "【〔" if mark[0][0] in "【〔" and not mark["end"] else word
        if (mark["end"] or kind != word) and kind in begun and mark.end() < len(text):
            yield begun[kind]
        elif not mark["end"] and not _PLAIN.fullmatch(word):
            begun.setdefault(word, mark[0])
            begun.setdefault(kind, mark[0])
