"""The code blocks of the documentation, and the commands in them.

A fence without a language is a shell session, as for Sphinx (`highlight_language` in docs/conf.py):
a line that begins with "$ " is a command, and all others are output.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"(?ms)^(?P<indent> *)```(?P<language>\S*)\n(?P<text>.*?)^(?P=indent)```$")
_COMMAND = re.compile(r"(?m)^\$ (?P<line>(?:.*\\\n)*.*)$")
_ASSIGNMENT = re.compile(r"[A-Z_]+=.*")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    """The fence's language; "" for a shell session, "{...}" for a Sphinx directive."""
    text: str
    line: int
    """Line of the page on which the text begins."""


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(fence["language"], fence["text"], text.count("\n", 0, fence.start("text")) + 1)
        for fence in _FENCE.finditer(text)
    ]


def commands_of(block: Block) -> list[list[str]]:
    """The command lines of a shell session as lists of words, without leading assignments."""
    if block.language not in ("", "console"):
        return []
    lines = (found["line"].replace("\\\n", " ") for found in _COMMAND.finditer(block.text))
    commands = (shlex.split(line, comments=True) for line in lines)
    return [words[_assignments(words) :] for words in commands]


def output_of(block: Block) -> list[str]:
    """The output lines of a shell session."""
    return _COMMAND.sub("", block.text).splitlines()


def _assignments(words: list[str]) -> int:
    """The number of leading words that set variables, such as HF_HUB_OFFLINE=1."""
    return next((i for i, word in enumerate(words) if not _ASSIGNMENT.fullmatch(word)), len(words))
