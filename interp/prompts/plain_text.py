"""Messages as plain text, and the white space between a text and the word that follows it."""

import unicodedata
from collections.abc import Iterable


def paragraphs(turns: Iterable[tuple[str, str]]) -> list[str]:
    """What models without a chat template read for each turn (role, content) before a prompt.

    The system message is a paragraph, and so is each question with its answer.
    """
    return [said + (gap(said) if role == "user" else "\n\n") for role, said in turns]


def gap(text: str) -> str:
    """The separator that ordinary writing puts between a string and the next word.

    It is a space, except after white space, an opening bracket or quotation mark, or Chinese or
    Japanese script, where it is empty.
    """
    return " " if _is_set_off(text) else ""


def _is_set_off(text: str) -> bool:
    if not text or text[-1].isspace():
        return False
    last, kind = text[-1], unicodedata.category(text[-1])
    # Marks that both open and close quotations, emphasis, code and formulas.
    if last in "\"'`*$" or kind in ("Pi", "Pf"):
        before = text.rstrip(last)
        if before.endswith((f"{last}:", f"{last}=")):  # {"answer":"
            return False
        if before.endswith((":", "=")):  # closing in "**Answer:**", opening in <a href="
            return before.rpartition("\n")[2].count(text[len(before) :]) % 2 == 1
        return _is_set_off(before)
    wide = unicodedata.east_asian_width(last) in ("W", "F") and (kind == "Lo" or kind[0] == "P")
    korean = unicodedata.name(last, "").startswith("HANGUL")
    return kind != "Ps" and (korean or not wide)
