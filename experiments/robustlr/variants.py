"""Variants of a theory: minimal edits (contrast sets) and paraphrases (equivalence sets).

A base theory proves the statement q, or its negation, by a last rule p ⇒ q or p ⇒ ¬q. An edit
(Tables 1 and 9 to 13) changes this rule and its facts; t is a predicate that the theory does not
mention. The labels of the edits of a False base are the negated labels of the edits of a True base.
(The labels in the first row of the paper's Tables 12 and 13, and in the second row of Table 13, are
wrong for the printed rules; here they are corrected, following Table 11.)
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from interp_experiments.robustlr.language import Literal, Operator, Rule, Theory, Verdict
from interp_experiments.robustlr.solver import clauses_of

TRUE, FALSE, UNKNOWN = Verdict.TRUE, Verdict.FALSE, Verdict.UNKNOWN


@dataclass(frozen=True, slots=True)
class Edit:
    """One row of a table of perturbations."""

    version: str
    """Operator and row number, as in the authors' theory ids."""
    body: OneOf["p", "p and t", "p or t", "not p"]
    denies: bool
    """Whether the head of the rule is negated."""
    facts: OneOf["p", "p, t", "p, not t", "not p, not t"]
    label: Verdict
    """The label if the base is True."""
    group: str

    def expected(self, base: Verdict) -> Verdict:
        """The label of the edit, given the label of the base."""
        return self.label if base is TRUE else self.label.negated


CONTRAST_SETS: Mapping[str, tuple[Edit, ...]] = {
    "C-CS": (
        Edit("conj0", "p", False, "p", TRUE, "base"),
        Edit("conj1", "p and t", False, "p", UNKNOWN, "conj"),
        Edit("conj2", "p and t", False, "p, t", TRUE, "conj"),
        Edit("conj3", "p and t", False, "p, not t", UNKNOWN, "conj+neg"),
        Edit("conj4", "p and t", True, "p", UNKNOWN, "conj+neg"),
        Edit("conj5", "p and t", True, "p, t", FALSE, "conj+neg"),
        Edit("conj6", "p and t", True, "p, not t", UNKNOWN, "conj+neg"),
    ),
    "D-CS": (
        Edit("disj0", "p", False, "p", TRUE, "base"),
        Edit("disj1", "p or t", False, "p", TRUE, "disj"),
        Edit("disj2", "p or t", False, "p, t", TRUE, "disj"),
        Edit("disj3", "p or t", False, "not p, not t", UNKNOWN, "disj+neg"),
        Edit("disj4", "p or t", True, "p", FALSE, "disj+neg"),
        Edit("disj5", "p or t", True, "p, t", FALSE, "disj+neg"),
        Edit("disj6", "p or t", True, "not p, not t", UNKNOWN, "disj+neg"),
    ),
    "N-CS": (
        Edit("neg0", "p", False, "p", TRUE, "base"),
        Edit("neg1", "p", True, "p", FALSE, "neg"),
        Edit("neg2", "not p", False, "p", UNKNOWN, "neg"),
        Edit("neg3", "not p", True, "p", UNKNOWN, "neg"),
    ),
}
"""The edits of each contrast set, the base first."""


def editable(theory: Theory, rule: Rule, name: str) -> bool:
    """Whether a set's edits keep the rule within the language and the labels correct.

    A body must keep its operator. In D-CS the body consists of facts, since edits state their
    negations; in N-CS it is one literal.
    """
    if name == "C-CS":
        return rule.operator == "and"
    if name == "D-CS":
        joined = len(rule.body) == 1 or rule.operator == "or"
        return joined and set(rule.body) <= set(theory.facts)
    return len(rule.body) == 1


def edited(theory: Theory, rule: Rule, unseen: Literal, edit: Edit) -> Theory:
    """The theory with one edit; every other sentence keeps its wording and its place."""
    denied = tuple(one.negated for one in rule.body)
    parts: dict[str, tuple[tuple[Literal, ...], Operator]] = {
        "p": (rule.body, rule.operator),
        "not p": (denied, rule.operator),
        "p and t": ((*rule.body, unseen), "and"),
        "p or t": ((*rule.body, unseen), "or"),
    }
    facts = {
        "p": theory.facts,
        "p, t": (*theory.facts, unseen),
        "p, not t": (*theory.facts, unseen.negated),
        "not p, not t": (
            *(one.negated if one in rule.body else one for one in theory.facts),
            *(one.negated for one in rule.body if one not in theory.facts),
            unseen.negated,
        ),
    }
    body, operator = parts[edit.body]
    head = tuple(one.negated for one in rule.head) if edit.denies else rule.head
    changed = theory.with_rule(rule, replace(rule, body=body, head=head, operator=operator))
    return replace(changed, facts=facts[edit.facts])


EQUIVALENCE_SETS = {"C-ES": "equiv_type1", "D1-ES": "equiv_type2", "D2-ES": "equiv_type3"}
"""The version name of each set's paraphrases. The authors' data number the types; here the numbers
follow the order of the paper's equivalences."""


def contrapositive(rule: Rule) -> Rule:
    """Write p ⇒ q as ¬q ⇒ ¬p.

    By De Morgan's laws, a body with "or" becomes a head with "and", and vice versa. A body joined
    by "and" has no contrapositive in the language: it would be a disjunction after "then".
    """
    body = tuple(one.negated for one in rule.head)
    head = tuple(one.negated for one in rule.body)
    return replace(rule, body=body, head=head, operator="or" if len(body) > 1 else "and")


def contraposed(theory: Theory) -> Theory:
    """The theory with the contrapositive of every rule (C-ES)."""
    return replace(theory, rules=tuple(map(contrapositive, theory.rules)))


def equivalence_between(base: Theory, other: Theory) -> str | None:
    """The equivalence set to which two theories belong; None if `other` does not paraphrase `base`.

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
