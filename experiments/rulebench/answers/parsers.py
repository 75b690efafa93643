"""Which parser reads the answers of an item."""

import re
from collections.abc import Sequence

from interp.prompts.answers import Parser
from interp_experiments.rulebench.answers.categories import category
from interp_experiments.rulebench.answers.charges import charge
from interp_experiments.rulebench.answers.kinships import kinship
from interp_experiments.rulebench.answers.letters import letter
from interp_experiments.rulebench.answers.numbers import number
from interp_experiments.rulebench.answers.truths import truth
from interp_experiments.rulebench.items import (
    CAIL,
    CLUTRR,
    KINSHIP,
    SALAD,
    STRING_GAME,
    ULOGIC,
    Item,
    Kind,
)


def parser_of(kind: Kind, item: Item, labels: Sequence[str]) -> Parser:
    """The parser of an item's answers.

    Args:
        kind: of the item's set.
        item: its question names the two people that are asked about (CLUTRR).
        labels: the answers of the set, among which charges are looked for (CAIL2018).
    """
    if kind in (CLUTRR, KINSHIP):
        names = _ASKED.search(item.question)
        return kinship(names[1], names[2]) if names else kinship("", "")
    if kind is CAIL:
        return charge(tuple(labels))
    return {ULOGIC: truth, SALAD: category, STRING_GAME: number}.get(kind, letter)


_ASKED = re.compile(r"Who is \[?([\w.'-]+)\]? to \[?([\w.'-]+?)\]?\?")
