"""Charges among those of the set (CAIL2018)."""

import hashlib
import re

from interp.prompts.answers import Parser, Unanswered
from interp_experiments.rulebench.reading import (
    Found,
    Ways,
    nothing,
    one_of,
    read,
    with_name,
)


def charge(labels: tuple[str, ...]) -> Parser:
    """The parser of CAIL2018: one of the charges of the set.

    A charge within the name of a longer one does not count, nor does one that is denied.
    """
    longest_first = sorted(labels, key=lambda label: (-len(label), label))
    names = re.compile(rf"(?<!不构成)({'|'.join(map(re.escape, longest_first))})")

    def one(text: str) -> Found:
        return one_of(names.findall(text))

    ways = Ways(one, nothing, nothing, one)

    def parse(text: str) -> str | Unanswered:
        return read(text, ways)

    # Not the labels themselves: there may be hundreds.
    digest = hashlib.sha256("\n".join(longest_first).encode()).hexdigest()[:16]
    return with_name(parse, f"charge among {digest}")
