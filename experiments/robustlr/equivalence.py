"""The logical equivalence sets: rules in another form that says the same (Section 3.4)."""

from dataclasses import replace

from interp.errors import UserError
from interp_experiments.robustlr.language import Rule, Theory
from interp_experiments.robustlr.solver import clauses_of

EQUIVALENCE_SETS = {"C-ES": "equiv_type1", "D1-ES": "equiv_type2", "D2-ES": "equiv_type3"}
"""Name of a set to the version of its paraphrases. The authors' data say "type1"; which type is
which equivalence is this project's choice, in the paper's order."""


def contrapositive(rule: Rule) -> Rule:
    """Write p ⇒ q as ¬q ⇒ ¬p.

    By De Morgan's laws a body of "or" becomes a head of "and", and a head of "and" a body of "or".

    Raises:
        UserError: a body of "and", whose negation would be a disjunction behind "then".
    """
    if len(rule.body) > 1 and rule.operator == "and":
        raise UserError(
            f"the contrapositive of {rule} has a disjunction on its right, which the language "
            "lacks; expected a body of one literal or of literals joined by or"
        )
    body = tuple(one.negated for one in rule.head)
    head = tuple(one.negated for one in rule.body)
    return replace(rule, body=body, head=head, operator="or" if len(body) > 1 else "and")


def contraposed(theory: Theory) -> Theory:
    """The theory with the contrapositive of every rule (C-ES).

    Raises:
        UserError: a rule whose contrapositive the language lacks.
    """
    return replace(theory, rules=tuple(map(contrapositive, theory.rules)))


def with_one_head(theory: Theory, one: Rule, other: Rule) -> Theory:
    """Write p ⇒ q and p ⇒ r as p ⇒ q ∧ r, in the place of the first (D1-ES)."""
    return theory.with_rule(one, replace(one, head=one.head + other.head)).with_rule(other)


def with_one_body(theory: Theory, one: Rule, other: Rule) -> Theory:
    """Write p ⇒ q and r ⇒ q as p ∨ r ⇒ q, in the place of the first (D2-ES)."""
    merged = replace(one, body=one.body + other.body, operator="or")
    return theory.with_rule(one, merged).with_rule(other)


def equivalence_between(base: Theory, other: Theory) -> str | None:
    """The set to which a pair of theories belongs; None if they are no such paraphrases.

    All three equivalences leave the clauses of a theory as they are.
    """
    numbers = {one: n for n, one in enumerate(base.predicates() | other.predicates(), start=1)}
    clauses, theirs = (
        {frozenset(clause.literals) for clause in clauses_of(theory, numbers)}
        for theory in (base, other)
    )
    if clauses != theirs:
        return None
    gone, new = set(base.rules) - set(other.rules), set(other.rules) - set(base.rules)
    if len(gone) == 2 and len(new) == 1:
        return "D1-ES" if len(next(iter(new)).head) > 1 else "D2-ES"
    return "C-ES" if len(gone) == len(base.rules) == len(other.rules) else None
