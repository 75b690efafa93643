"""Literals and rules in English, by templates (Section 4.1)."""

from collections.abc import Sequence

from interp_experiments.robustlr.language import Literal, Operator, Rule

RULE_STYLES = (
    "If {body}, then {head}.",
    "If {body} then {head}.",
    "{head} if {body}.",
    "{head}, if {body}.",
)
"""The templates of a rule."""


def sentence(told: Literal | Rule) -> str:
    """A fact, statement or rule as a sentence with a capital and a full stop."""
    if isinstance(told, Literal):
        words = f"{clause(told)}."
    else:
        body, head = joined(told.body, told.operator), joined(told.head, "and")
        words = RULE_STYLES[told.style].format(body=body, head=head)
    return words[0].upper() + words[1:]


def joined(literals: Sequence[Literal], operator: Operator) -> str:
    """Literals joined by "and" or "or"; adjectives of one subject follow it together.

    After a negated adjective "is" is repeated: "Anna is not tall and is kind" has one reading,
    where "Anna is not tall and kind" may deny both.
    """
    first, *others = literals
    words = clause(first)
    for before, literal in zip(literals, others, strict=False):
        shared = _is_adjective(before) and _is_adjective(literal)
        if shared and before.predicate.subject == literal.predicate.subject:
            words += f" {operator} {'' if before.positive else 'is '}{_said(literal)}"
        else:
            words += f" {operator} {clause(literal)}"
    return words


def clause(literal: Literal) -> str:
    """A literal as a clause, such as "Anna is not tall"."""
    predicate = literal.predicate
    if predicate.object is None:
        return f"{predicate.subject} is {_said(literal)}"
    denied = "" if literal.positive else "not "
    if literal.inverted:
        return f"the {predicate.word} of {predicate.object} is {denied}{predicate.subject}"
    return f"{predicate.subject} is {denied}the {predicate.word} of {predicate.object}"


def _is_adjective(literal: Literal) -> bool:
    return literal.predicate.object is None


def _said(literal: Literal) -> str:
    return f"{'' if literal.positive else 'not '}{literal.predicate.word}"
